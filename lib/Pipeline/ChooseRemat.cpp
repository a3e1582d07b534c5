//===- ChooseRemat.cpp - rematerialization within a budget -------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// Stages of a pipeline have plans of their own, and what one computes again changes
// no other's. So each stage walks through its own candidates, cheapest first, and one
// compilation tries the present candidates of all stages.
//
//===----------------------------------------------------------------------===//
#include "DefaultDevice.h"
#include "Remedies.h"
#include "meshwright/Pipeline.h"
#include "meshwright/Remat.h"
#include "meshwright/Report.h"

#include "Dist/Programs.h"
#include "Exec/Exec.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

#include <cmath>
#include <numeric>

using namespace mlir;
using llvm::createStringError;
using llvm::Error;
using llvm::Expected;

namespace meshwright {

namespace {
/// A stage's plan.
struct Planned {
  double arena = 0;      ///< bytes of a rank, with allowances for what is beside it
  double persistent = 0; ///< of them in parameters, states and allowances
};

/// A stage on its way through its candidates.
struct StageSearch {
  std::vector<schedule::HeldAtBackward> held;
  std::unique_ptr<RematEstimates> estimates;
  std::vector<RematCandidate> candidates;
  size_t at = 0;
  Planned planned;
  bool onHost = false; ///< what is kept is in memory of the host
  /// The smallest plan so far, for a refusal.
  double smallest = HUGE_VAL;
  size_t smallestAt = 0;

  bool isDone(double budget) const { return planned.arena > 0 && planned.arena <= budget; }
  /// Bytes in the arena of what a candidate keeps, at least.
  double keptBytes(size_t candidate) const { return onHost ? 0 : candidates[candidate].bytes; }
  /// Goes on to the next candidate that `budget` could be enough for, if there is one:
  /// what is kept lies beside all parameters when the forward ends.
  bool advance(double budget) {
    while (++at < candidates.size())
      if (planned.persistent + keptBytes(at) <= budget)
        return true;
    return false;
  }
};

class Chooser {
public:
  Chooser(ModuleOp module, CompileOptions options, Phase from, double budget)
      : module(module), options(std::move(options)), from(from), budget(budget) {}

  Expected<std::vector<RematPolicy>> run(llvm::raw_ostream &log);

private:
  Error findStages();
  /// Compiles what all stages try now and fills in their plans.
  Error plan();
  /// The policies of the candidates that `which` picks: one if all stages have the same.
  RematChoice policies(llvm::function_ref<size_t(const StageSearch &)> which) const;
  Error planLeast();
  Error refuse();
  void say(llvm::raw_ostream &log);

  ModuleOp module;
  CompileOptions options;
  Phase from;
  double budget, again = 0;
  std::string others; ///< what is computed again whatever the policies are
  std::vector<StageSearch> stages;
};
} // namespace

/// Compiles a copy of `module`.
static Expected<OwningOpRef<ModuleOp>> compileCopy(ModuleOp module, const CompileOptions &options,
                                                   Phase from, Phase to) {
  OwningOpRef<ModuleOp> copy(module.clone());
  PassManager manager(module.getContext());
  if (Error error = buildPipeline(manager, options, from, to))
    return std::move(error);
  if (failed(manager.run(*copy)))
    return createStringError("compilation with --remat " + optionText(options.remat) + " failed");
  return copy;
}

Error Chooser::findStages() {
  options.remat = {};
  Expected<OwningOpRef<ModuleOp>> local = compileCopy(module, options, from, Phase::local);
  if (!local)
    return local.takeError();
  int64_t count = options.mesh.size(options.mesh.named("pipe"));
  Expected<cost::DeviceChoice> device = deviceOf(options);
  if (!device)
    return device.takeError();
  stages.resize(count);
  if (count == 1) {
    stages[0].held = {{0, {1}}};
  } else {
    Expected<schedule::PipelineSchedule> schedule = makeSchedule(
        options.schedule, count, train::moduleSize(module, train::microbatchesAttr).value_or(1));
    if (!schedule)
      return schedule.takeError();
    for (int64_t s = 0; s < count; ++s)
      stages[s].held = heldAtBackward(*schedule, s);
  }
  for (StageSearch &stage : stages) {
    stage.onHost = isOffload(options.offload.activations);
    // Layers that do not fill a group are split off on floor 1.
    stage.estimates = std::make_unique<RematEstimates>(
        **local, stage.held, /*anyGroups=*/from == Phase::train, **device);
    stage.candidates = stage.estimates->candidates();
  }
  return Error::success();
}

RematChoice Chooser::policies(llvm::function_ref<size_t(const StageSearch &)> which) const {
  RematChoice choice;
  choice.policies.clear();
  // Prices as they are written, so that what is said to be found is what was tried.
  for (const StageSearch &stage : stages)
    choice.policies.push_back(
        llvm::cantFail(parsePolicy(stage.candidates[which(stage)].policy.str())));
  if (llvm::all_equal(llvm::map_to_vector(choice.policies, [](auto &p) { return p.str(); })))
    choice.policies.resize(1);
  return choice;
}

Error Chooser::plan() {
  options.remat = policies([](const StageSearch &stage) { return stage.at; });
  Expected<OwningOpRef<ModuleOp>> compiled = compileCopy(module, options, from, Phase::exec);
  if (!compiled)
    return compiled.takeError();
  Expected<CompiledPlan> whole = buildPlan(**compiled);
  if (!whole)
    return whole.takeError();
  again = whole->recomputedFlops;
  others.clear();
  for (const plan::Recomputed &row : whole->recomputed.value_or(std::vector<plan::Recomputed>()))
    if (row.reason != "remat")
      others += llvm::formatv(", {0:E3} of them for {1}", row.flops, row.reason);
  std::vector<Planned> plans(stages.size());
  for (auto [number, program] : llvm::enumerate(whole->programs)) {
    // Servers and workers are programs of one stage.
    Planned &planned = plans[stages.size() > 1 ? number : 0];
    double beside = double(bytesOf(program.allowances)), needed = double(program.arenaBytes) + beside;
    if (needed <= planned.arena)
      continue;
    planned = {needed, beside};
    for (const plan::MemoryLine &line : program.memory)
      if (line.category == stringifyCategory(exec::Category::Parameter) ||
          line.category == stringifyCategory(exec::Category::Optimizer))
        planned.persistent += double(line.bytes);
  }
  for (auto [stage, planned] : llvm::zip(stages, plans)) {
    stage.planned = planned;
    if (planned.arena < stage.smallest) {
      stage.smallest = planned.arena;
      stage.smallestAt = stage.at;
    }
  }
  return Error::success();
}

/// Plans the candidates of each stage that keep least by their estimates, before others are tried.
Error Chooser::planLeast() {
  constexpr size_t tries = 3;
  std::vector<std::pair<size_t, Planned>> before;
  std::vector<std::vector<size_t>> least(stages.size());
  for (auto [stage, order] : llvm::zip(stages, least)) {
    before.push_back({stage.at, stage.planned});
    order.resize(stage.candidates.size());
    std::iota(order.begin(), order.end(), size_t(0));
    llvm::stable_sort(order, [&](size_t a, size_t b) {
      return stage.candidates[a].bytes < stage.candidates[b].bytes;
    });
  }
  auto fits = [&](const StageSearch &stage) { return stage.smallest <= budget; };
  for (size_t i = 0; i < tries && !llvm::all_of(stages, fits); ++i) {
    for (auto [stage, order] : llvm::zip(stages, least))
      stage.at = fits(stage) ? stage.smallestAt : order[std::min(i, order.size() - 1)];
    if (Error error = plan())
      return error;
  }
  for (auto [stage, was] : llvm::zip(stages, before))
    std::tie(stage.at, stage.planned) = was;
  return Error::success();
}

Error Chooser::refuse() {
  double smallest = 0;
  for (const StageSearch &stage : stages)
    smallest = std::max(smallest, stage.smallest);
  RematChoice choice = policies([](const StageSearch &stage) { return stage.smallestAt; });
  std::string message = llvm::formatv("--remat auto: nothing fits {0:N0} bytes a rank; the smallest "
                                      "plan, --remat {1}, needs {2:N0}",
                                      int64_t(budget), optionText(choice), int64_t(smallest));
  return llvm::make_error<NothingFits>(message, choice, smallest, budget);
}

void Chooser::say(llvm::raw_ostream &log) {
  double arena = 0, cost = 0, bound = 0;
  for (StageSearch &stage : stages) {
    arena = std::max(arena, stage.planned.arena);
    cost += stage.candidates[stage.at].cost;
    bound += stage.onHost ? 0
                          : std::min(stage.candidates[stage.at].cost,
                      stage.estimates->leastCost(budget - stage.planned.persistent));
  }
  log << llvm::formatv("remat auto: {0} fits: {1:N0} of {2:N0} bytes, {3:E3} FLOPs per step are "
                       "recomputed{4}",
                       optionText(options.remat), int64_t(arena), int64_t(budget), again, others);
  if (cost > 0 && bound > 0)
    log << llvm::formatv("; lower bound for all policies within the budget: {0:F1}% of this cost",
                         100 * bound / cost);
  log << "\n";
}

Expected<std::vector<RematPolicy>> Chooser::run(llvm::raw_ostream &log) {
  if (Error error = findStages())
    return std::move(error);
  // Where the least kept needs little more than the budget, others might fit.
  constexpr double near = 1.1;
  for (bool first = true;; first = false) {
    if (Error error = plan())
      return std::move(error);
    auto isTooLarge = [&](const StageSearch &stage) { return stage.smallest > budget; };
    if (first && llvm::any_of(stages, isTooLarge)) {
      if (Error error = planLeast())
        return std::move(error);
      if (llvm::any_of(stages, [&](const StageSearch &s) { return s.smallest > near * budget; }))
        return refuse();
    }
    bool fits = true;
    for (StageSearch &stage : stages)
      if (!stage.isDone(budget)) {
        fits = false;
        if (!stage.advance(budget)) {
          if (isTooLarge(stage))
            return refuse();
          stage.at = stage.smallestAt;
        }
      }
    if (fits)
      break;
  }
  say(log);
  return options.remat.policies;
}

Expected<ResidualChoice> chooseResiduals(ModuleOp module, CompileOptions options, double budget) {
  options.explainSharding.clear();
  options.residuals = ResidualChoice::written;
  if (options.remat.automatic)
    options.remat = {}; // The least work, if it fits.
  auto compiled = compileCopy(module, options, Phase::train, Phase::exec);
  Expected<CompiledPlan> plan = compiled ? buildPlan(**compiled) : compiled.takeError();
  if (!plan)
    return plan.takeError();
  return double(plan->deviceBytes) <= budget ? ResidualChoice::written : ResidualChoice::least;
}

Expected<std::vector<RematPolicy>> chooseRemat(ModuleOp module, CompileOptions options, Phase from,
                                               double budget, llvm::raw_ostream &log) {
  options.explainSharding.clear();
  return Chooser(module, std::move(options), from, budget).run(log);
}

} // namespace meshwright
