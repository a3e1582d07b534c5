//===- Explain.cpp - why a layout is as fast as it is -----------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Explain.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace meshwright;
using namespace meshwright::planner;
using llvm::formatv;

namespace {
struct Part {
  std::string name;
  double seconds;
};
} // namespace

/// The parts of a step, with what they are of.
static std::map<std::string, double> partsOf(const Candidate &candidate) {
  const TimeParts &parts = candidate.parts;
  const Layout &layout = candidate.layout;
  std::map<std::string, double> list{{"products", parts.products},
                                     {"attention", parts.attention},
                                     {"kernels", parts.kernels},
                                     {"the optimizer", parts.optimizer},
                                     {"launches of kernels", parts.launches},
                                     {"copies from and to the host", parts.copies}};
  for (auto &[kind, seconds] : parts.communication)
    list[formatv("{0} along {1} exposed on {2}", kind.what, kind.axes, kind.level)] += seconds;
  if (layout.pipe > 1)
    list[formatv("bubble of {0} stages with {1} {2}", layout.pipe, layout.microbatches,
                 layout.microbatches == 1 ? "microbatch" : "microbatches")] = parts.bubble;
  return list;
}

/// Those of at least `least` seconds, the largest first.
static std::vector<Part> largest(const std::map<std::string, double> &parts, double least) {
  std::vector<Part> list;
  for (auto &[name, seconds] : parts)
    if (seconds >= least)
      list.push_back({name, seconds});
  llvm::stable_sort(list, [](const Part &a, const Part &b) { return a.seconds > b.seconds; });
  return list;
}

std::string planner::bindingOf(const Candidate &candidate) {
  std::map<std::string, double> parts = partsOf(candidate);
  parts.erase("products");
  parts.erase("attention");
  auto texts = llvm::map_to_vector(largest(parts, 0.05 * candidate.seconds), [&](const Part &part) {
    return formatv("{0} {1:P0}", part.name, part.seconds / candidate.seconds).str();
  });
  return texts.empty() ? "products" : llvm::join(texts, ", ");
}

/// In what a layout differs from the best, as a subject.
static std::string differenceOf(const Problem &problem, const Layout &best, const Layout &layout) {
  std::vector<std::string> texts;
  for (auto [axis, other] : llvm::zip(layout.sizes(), best.sizes()))
    if (axis.second > other.second)
      texts.push_back(formatv("{0}={1}", axis.first, axis.second));
  if (layout.sizes() == best.sizes() && layout.axes() != best.axes())
    texts.push_back(formatv("{0} outermost first",
                            llvm::join(llvm::map_range(layout.axes(), [](auto &axis) {
                                         return axis.first.str();
                                       }), ", ")));
  if (layout.zero != best.zero)
    texts.push_back(formatv("--zero {0}", layout.zero));
  auto rows = [&](const Layout &l) { return problem.batch / l.dataRanks() / l.microbatches; };
  if (rows(layout) != rows(best))
    texts.push_back(
        formatv("{0} {1} at a time", rows(layout), rows(layout) == 1 ? "sequence" : "sequences"));
  if (layout.pipe > 1 && layout.schedule.str() != best.schedule.str())
    texts.push_back("--schedule " + layout.schedule.str());
  if (layout.remat != best.remat)
    texts.push_back("--remat " + (layout.remat.empty() ? "none" : layout.remat));
  if (layout.offload != best.offload)
    texts.push_back("--offload " + (layout.offload.empty() ? "none" : layout.offload));
  return llvm::join(texts, ", ");
}

std::string planner::lossOf(const Problem &problem, const Candidate &best,
                            const Candidate &candidate) {
  std::string difference = differenceOf(problem, best.layout, candidate.layout);
  double lost = candidate.seconds - best.seconds;
  if (lost < 5e-4 * best.seconds)
    return formatv("{0} takes as long, with {1:F1} GB {2}", difference,
                   std::abs(double(candidate.bytes - best.bytes)) / 1e9,
                   candidate.bytes < best.bytes ? "less" : "more");
  std::map<std::string, double> parts = partsOf(candidate), others = partsOf(best);
  std::map<std::string, double> grown;
  for (auto &[name, seconds] : parts)
    grown[name] = seconds - others[name];
  // The bubble of another pipeline has another name.
  for (auto &[name, seconds] : grown)
    if (llvm::StringRef(name).starts_with("bubble"))
      seconds = candidate.parts.bubble - best.parts.bubble;
  auto texts = llvm::map_to_vector(largest(grown, 0.2 * lost), [&](const Part &part) {
    return formatv("{0} +{1:P1}", part.name, part.seconds / best.seconds).str();
  });
  if (texts.size() > 3)
    texts.resize(3);
  return formatv("{0} loses {1:P1}: {2}", difference, lost / best.seconds, llvm::join(texts, ", "));
}
