//===- Changes.cpp - what makes a layout smaller ----------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Explain.h"
#include "Parallel.h"

#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FormatVariadic.h"

using namespace meshwright;
using namespace meshwright::planner;
using llvm::formatv;

namespace {
struct Change {
  std::string name;
  CompileOptions options;
  std::optional<int64_t> bytes;
};
} // namespace

/// Changes that the search does not make itself.
static std::vector<Change> changesOf(const Problem &problem, const Layout &layout) {
  const CompileOptions &given = problem.options;
  std::vector<Change> changes;
  auto add = [&](const llvm::Twine &name, const Layout &other, auto change) {
    CompileOptions options = optionsOf(given, problem.batch, other);
    options.memoryLimit = {};
    options.given.erase("memory-limit");
    change(options);
    changes.push_back({name.str(), std::move(options), std::nullopt});
  };
  auto nothing = [](CompileOptions &) {};
  // What is kept may be what needs the memory.
  if (problem.isKept("zero") && given.zero < 3) {
    Layout other = layout;
    other.zero = 3;
    add("--zero 3 instead of " + llvm::Twine(given.zero), other, nothing);
  }
  if (problem.isKept("remat"))
    add("--remat full instead of " + optionText(given.remat), layout,
        [](CompileOptions &o) { llvm::cantFail(parseOption("full", o.remat)); });
  int64_t most = problem.batch / layout.dataRanks() / given.sequencesTogether();
  if (problem.isKept("microbatches") && given.microbatches < most) {
    Layout other = layout;
    other.microbatches = most;
    add("--microbatches " + llvm::Twine(most), other, nothing);
  }
  if (given.precision == MixedPrecision::f32)
    add("--precision bf16", layout, [](CompileOptions &o) { o.precision = MixedPrecision::bf16; });
  if (given.precision == MixedPrecision::bf16 && given.gradDtype == GradientType::f32)
    add("--grad-dtype bf16", layout, [](CompileOptions &o) { o.gradDtype = GradientType::bf16; });
  if (given.optimizer->hasNarrowStates() && given.momentsDtype == MomentType::f32)
    add("--moments-dtype bf16", layout,
        [](CompileOptions &o) { o.momentsDtype = MomentType::bf16; });
  // Of the optimizer, activations and parameters, where the search does not decide that.
  constexpr MemorySpace none = MemorySpace::Device, host = MemorySpace::Host;
  for (Offload offload : {Offload{host, none, none}, Offload{none, host, none}, Offload{host, host, none},
                          Offload{host, none, host}, Offload{host, host, host}}) {
    for (MemorySpace Offload::*kind : {&Offload::optimizer, &Offload::activations, &Offload::parameters})
      if (isOffload(given.offload.*kind))
        offload.*kind = given.offload.*kind;
    if (!problem.searchesOffload() && optionText(offload) != optionText(given.offload))
      add("--offload " + optionText(offload), layout, [&](CompileOptions &o) {
        o.offload = offload;
        o.given.insert("offload");
      });
  }
  auto twice = [&](int64_t Layout::*axis, llvm::StringRef name) {
    Layout other = layout;
    other.*axis *= 2;
    add(formatv("twice the devices, {0}={1}", name, other.*axis).str(), other, nothing);
  };
  if (problem.batch % (2 * layout.dataRanks() * given.sequencesTogether()) == 0)
    twice(&Layout::data, "data");
  if (problem.model.heads % (2 * layout.tensor) == 0)
    twice(&Layout::tensor, "tensor");
  if (problem.model.layers >= 2 * layout.pipe)
    twice(&Layout::pipe, "pipe");
  return changes;
}

/// Those that help, those that help most first, a line for each.
static std::string changesFor(const Problem &problem, const Candidate &smallest, unsigned threads) {
  std::vector<Change> changes = changesOf(problem, smallest.layout);
  forEachAtOnce(changes.size(), threads,
                [&](size_t i) { changes[i].bytes = bytesOf(changes[i].options); });
  llvm::erase_if(changes, [&](const Change &change) {
    return !change.bytes || *change.bytes >= smallest.bytes;
  });
  llvm::stable_sort(changes, [](const Change &a, const Change &b) { return a.bytes < b.bytes; });
  std::string text;
  llvm::StringSet<> said;
  for (const Change &change : changes) {
    if (!said.insert(change.name).second)
      continue;
    double missing = double(*change.bytes) - problem.capacity();
    text += formatv("\n  {0}: {1:N0} bytes less, {2}", change.name, smallest.bytes - *change.bytes,
                    missing > 0 ? formatv("{0:N0} too many", int64_t(missing)).str() : "fits");
  }
  return text;
}

/// Device counts near that of the problem that divide the model; if none of the next few does, the
/// largest power of two below that does.
static std::string countsNear(const Problem &problem) {
  constexpr int64_t furthest = 1024;
  Problem other = problem;
  int64_t most = problem.cluster.size().value_or(dist::Mesh::mostDevices);
  std::string text;
  auto add = [&](int64_t devices) {
    other.devices = devices;
    if (devices >= 1 && devices <= most && !layoutsOf(other).empty())
      text += (text.empty() ? "" : " and ") + std::to_string(devices);
  };
  for (int64_t offset = 1; offset <= std::min(furthest, problem.devices) && text.empty(); ++offset) {
    add(problem.devices - offset);
    add(problem.devices + offset);
  }
  for (int64_t power = dist::Mesh::mostDevices; power >= 1 && text.empty(); power /= 2)
    if (power < problem.devices)
      add(power);
  return text;
}

llvm::Error planner::nothingFits(const Problem &problem, const Found &found, unsigned threads) {
  std::string devices = formatv("{0} devices", problem.devices);
  if (found.layouts == 0) {
    std::string near = countsNear(problem);
    return llvm::createStringError(
        "there is no layout of " + devices + ": " + "no mesh of them divides the batch of " +
        llvm::Twine(problem.batch) + " sequences" +
        (problem.options.sequencesTogether() > 1 ? " in pairs" : "") + ", the " + llvm::Twine(problem.model.layers) +
        " layers and " + llvm::Twine(problem.model.heads) +
        " heads of the model with the flags that are kept" +
        (near.empty() ? "" : "; " + near + " can be divided"));
  }
  if (found.others.empty())
    return llvm::createStringError("no layout of " + devices + " compiles" +
                                   (found.example.empty()
                                        ? "; the time limit was reached, raise --seconds"
                                        : ", e.g.: " + llvm::Twine(found.example)));
  const Candidate &smallest = found.others.front();
  double capacity = problem.capacity();
  std::string changes = changesFor(problem, smallest, threads);
  std::string none = formatv("no layout of {0} fits", devices), others;
  if (!found.complete) {
    none = formatv("the search ended with {0} of {1} layouts of {2} compiled, of which none fits", found.compiled, found.layouts, devices);
    others = formatv("; 'meshwright plan' with more {0} tries others", found.isOutOfTime ? "--seconds" : "--layouts");
  }
  return llvm::createStringError(
      none +
      formatv(" into the {0:N0} bytes of a device: the smallest, {1}, needs {2:N0} bytes, {3:N0} too many",
              int64_t(capacity), smallest.layout.str(), smallest.bytes, int64_t(double(smallest.bytes) - capacity))
          .str() +
      others +
      (changes.empty() ? "; no single change makes it smaller"
                       : "; single changes to it, each compiled:" + changes));
}
