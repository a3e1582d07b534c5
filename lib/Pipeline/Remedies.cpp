//===- Remedies.cpp - what would make a plan fit ----------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Remedies.h"

#include "meshwright/Report.h"
#include "meshwright/Strategy.h"

#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Path.h"

using namespace mlir;

namespace meshwright {

char NothingFits::ID = 0;

namespace {
struct Remedy {
  std::string flags;
  CompileOptions options;
};
} // namespace

/// Single changes, the least costly first: they cost little, then communication, then copies to the
/// host, then ranks.
static std::vector<Remedy> remediesFor(const CompileOptions &options) {
  std::vector<Remedy> remedies;
  auto add = [&](std::string flags, auto change) {
    Remedy &remedy = remedies.emplace_back(Remedy{std::move(flags), options});
    change(remedy.options);
  };
  int64_t most = options.batch / dist::batchParts(options.mesh) / options.sequencesTogether();
  for (int64_t more : {2 * options.microbatches, most})
    if (more > options.microbatches && more <= most && most % more == 0 &&
        (remedies.empty() || remedies.back().options.microbatches != more))
      add("--microbatches " + std::to_string(more),
          [&](CompileOptions &o) { o.microbatches = more; });
  if (options.zero < 3 && options.mesh.size(options.mesh.named("data")) > 1)
    add("--zero 3", [](CompileOptions &o) { o.zero = 3; });
  Offload offload = options.offload;
  for (MemorySpace Offload::*more : {&Offload::optimizer, &Offload::activations, &Offload::parameters}) {
    if (isOffload(offload.*more))
      continue;
    offload.*more = MemorySpace::Host;
    add("--offload " + optionText(offload), [&](CompileOptions &o) { o.offload = offload; });
  }
  if (options.mesh.named("tensor").empty())
    add("--mesh " + (options.mesh.axes.empty() ? "" : optionText(options.mesh) + ",") +
            "tensor=2, with twice the ranks",
        [](CompileOptions &o) { o.mesh.axes.push_back({"tensor", 2}); });
  return remedies;
}

std::string describeRemedies(const CompileOptions &options, const NothingFits &refused,
                             MLIRContext &context) {
  // No single change makes a plan a small part of what it was.
  constexpr double most = 16;
  if (llvm::sys::path::extension(options.model) == ".mlir" || refused.bytes > most * refused.budget)
    return "";
  std::string text;
  unsigned found = 0;
  for (Remedy &remedy : remediesFor(options)) {
    remedy.options.remat = refused.smallest;
    remedy.options.memoryLimit =
        options.remat.budget.text.empty() ? options.memoryLimit : options.remat.budget;
    remedy.options.explainSharding.clear();
    remedy.options.dumpIr.clear();
    remedy.options.certify = Certify::none;
    llvm::raw_null_ostream log;
    auto module = compileTo(Phase::exec, remedy.options, context, log);
    llvm::Expected<CompiledPlan> plan = module ? buildPlan(**module) : module.takeError();
    if (!plan) {
      llvm::consumeError(plan.takeError()); // A remedy that the model does not allow is none.
      continue;
    }
    if (double(plan->deviceBytes) > refused.budget)
      continue;
    text += llvm::formatv("\n  {0}: {1:N0} bytes a rank with --remat {2}", remedy.flags,
                          plan->deviceBytes, optionText(refused.smallest))
                .str();
    if (++found == 3)
      break;
  }
  return text.empty() ? "\n  none of more microbatches, --zero 3, --offload and mesh axis tensor is "
                        "enough alone"
                      : "\nwhat fits, the least costly first:" + text;
}

} // namespace meshwright
