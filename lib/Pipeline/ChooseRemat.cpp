//===- ChooseRemat.cpp - rematerialization within a budget -------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "meshwright/Pipeline.h"
#include "meshwright/Remat.h"
#include "meshwright/Report.h"

#include "Exec/Exec.h"

#include "mlir/IR/Diagnostics.h"
#include "llvm/Support/FormatVariadic.h"

#include <cmath>

using namespace mlir;
using llvm::createStringError;
using llvm::Error;
using llvm::Expected;

namespace meshwright {

namespace {
/// What the plan of a candidate says.
struct Planned {
  double arena = 0;      ///< bytes of a rank
  double persistent = 0; ///< of them in parameters and states
  double again = 0;      ///< FLOPs of a step run again
};
} // namespace

/// The plan of a copy of `module`, which is at stage `local`, under `policy`.
static Expected<Planned> planWith(ModuleOp module, PipelineOptions options,
                                  const RematPolicy &policy) {
  options.remat = policy.str();
  OwningOpRef<ModuleOp> copy(module.clone());
  PassManager manager(module.getContext());
  if (Error error = buildPipeline(manager, options, Stage::local, Stage::exec))
    return std::move(error);
  if (failed(manager.run(*copy)))
    return createStringError("compilation with --remat " + options.remat + " failed");
  Expected<Plan> plan = buildPlan(*copy);
  if (!plan)
    return plan.takeError();
  Planned planned{double(plan->arenaBytes), 0, plan->recomputedFlops};
  if (auto lines = (*copy)->getAttrOfType<DictionaryAttr>(exec::memoryAttr))
    for (const char *category : {"parameter", "optimizer"})
      if (auto bytes = lines.getAs<IntegerAttr>(category))
        planned.persistent += double(bytes.getInt());
  return planned;
}

Expected<std::string> chooseRemat(ModuleOp module, const PipelineOptions &options, double budget,
                                  llvm::raw_ostream &log) {
  std::vector<RematCandidate> candidates = rematCandidates(module);
  double persistent = 0, smallest = HUGE_VAL;
  std::string smallestPolicy;
  auto plan = [&](const RematCandidate &candidate) {
    Expected<Planned> planned = planWith(module, options, candidate.policy);
    if (planned && planned->arena < smallest) {
      smallest = planned->arena;
      smallestPolicy = candidate.policy.str();
    }
    return planned;
  };
  std::vector<RematCandidate> tooLarge;
  for (const RematCandidate &candidate : candidates) {
    // What is kept lies beside all parameters when the forward ends.
    if (persistent + candidate.bytes > budget) {
      tooLarge.push_back(candidate);
      continue;
    }
    Expected<Planned> planned = plan(candidate);
    if (!planned)
      return planned.takeError();
    persistent = planned->persistent;
    if (planned->arena > budget)
      continue;
    log << llvm::formatv("remat auto: {0} fits {1:N0} bytes into {2:N0} and computes {3:E3} FLOPs a "
                         "step again",
                         candidate.policy.str(), int64_t(planned->arena), int64_t(budget),
                         planned->again);
    double bound = leastRematCost(module, budget - persistent);
    if (candidate.cost > 0)
      log << llvm::formatv(
          "; no choice within the budget can cost less than {0:F1}% of what this one does",
          100 * std::min(1.0, bound / candidate.cost));
    log << "\n";
    return candidate.policy.str();
  }
  for (const RematCandidate &candidate : tooLarge)
    if (persistent + candidate.bytes < smallest)
      if (Expected<Planned> planned = plan(candidate); !planned)
        return planned.takeError();
  return createStringError(
      llvm::formatv("--remat auto: nothing fits {0:N0} bytes a rank; the smallest plan, --remat {1}, "
                    "needs {2:N0}",
                    int64_t(budget), smallestPolicy, int64_t(smallest)));
}

} // namespace meshwright
