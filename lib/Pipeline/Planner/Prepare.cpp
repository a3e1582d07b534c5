//===- Prepare.cpp - what a search begins with ------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Prepare.h"

#include "llvm/ADT/StringExtras.h"

using namespace meshwright;
using namespace meshwright::planner;
using llvm::createStringError;
using llvm::Expected;
using llvm::StringRef;

/// Reads "tensor=4,pipe=1"; unlike a mesh of devices it may say that an axis has one.
static llvm::Error readAxes(StringRef text, std::map<std::string, int64_t> &axes) {
  static const llvm::SmallVector<StringRef> known = {"pipe", "replica", "data", "context", "expert", "tensor"};
  for (StringRef item : llvm::split(text, ',')) {
    auto [name, size] = item.split('=');
    int64_t count = 0;
    if (!llvm::is_contained(known, name))
      return createStringError("of --mesh " + text + ", " + notAmong(name, known));
    if (size.getAsInteger(10, count) || count < 1)
      return createStringError("of --mesh " + text + ", '" + item +
                               "' needs a size from 1 on, such as " + name + "=2");
    if (!axes.insert({name.str(), count}).second)
      return createStringError("--mesh " + text + " names " + name + " twice");
  }
  return llvm::Error::success();
}

Expected<std::map<std::string, int64_t>> planner::addKept(StringRef flags,
                                                          std::vector<std::string> &words) {
  std::map<std::string, int64_t> axes;
  llvm::SmallVector<StringRef> kept;
  llvm::SplitString(flags, kept);
  for (size_t i = 0; i < kept.size(); ++i) {
    StringRef word = kept[i];
    bool isMesh = word.consume_front("--mesh=") || word == "--mesh";
    if (!isMesh) {
      words.push_back(word.str());
      continue;
    }
    if (word == "--mesh") {
      if (i + 1 == kept.size())
        return createStringError("--keep: --mesh needs axes, such as tensor=4");
      word = kept[++i];
    }
    if (llvm::Error error = readAxes(word, axes))
      return std::move(error);
  }
  return axes;
}

Expected<Problem> planner::prepare(const CompileOptions &options, int64_t devices,
                                   std::map<std::string, int64_t> axes,
                                   mlir::MLIRContext &context) {
  for (const char *flag : {"mesh", "sequence-parallel", "tensor-2d"})
    if (options.given.count(flag))
      return createStringError("--" + llvm::Twine(flag) + " is what plan looks for; leave it out" +
                               (flag == StringRef("mesh")
                                    ? ", or hold some of its axes: --keep '--mesh tensor=4'"
                                    : ""));
  const cost::Cluster &cluster = *options.cluster;
  std::optional<int64_t> size = cluster.size();
  if (devices == 0)
    devices = size.value_or(0);
  if (devices == 0)
    return createStringError("--devices is missing: cluster " + cluster.name +
                             " has any number of them");
  if (devices > dist::Mesh::mostDevices)
    return createStringError("--devices " + llvm::Twine(devices) + " must be at most " +
                             llvm::Twine(dist::Mesh::mostDevices) + ", the most that a mesh has");
  if (size && devices > *size)
    return createStringError("--devices " + llvm::Twine(devices) + " are more than the " +
                             llvm::Twine(*size) + " of cluster " + cluster.name);
  if (options.batch == 0)
    return createStringError("--batch is missing: the sequences of an optimizer step");
  if (options.batch < 0 || options.batch > INT32_MAX)
    return createStringError("--batch " + llvm::Twine(options.batch) +
                             " must be from 1 to 2147483647");
  ModelReader reader(options, context);
  Expected<ModelFacts> model = reader.read();
  if (!model)
    return model.takeError();
  Problem problem{options, cluster, std::move(*model), devices, options.batch, std::move(axes)};
  for (const Layout &layout : layoutsOf(problem))
    reader.addCut(problem.model, layout.chunks());
  return problem;
}
