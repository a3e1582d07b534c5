//===- Pipeline.cpp - the order of the passes --------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "meshwright/Pipeline.h"
#include "AttributeLifetimes.h"
#include "DefaultDevice.h"
#include "Dist/Passes.h"
#include "Dist/Programs.h"
#include "Exec/Passes.h"
#include "InsertedPass.h"
#include "Train/Passes.h"
#include "meshwright/LoadPlugin.h"
#include "meshwright/runtime/Suggestion.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using llvm::Error;
using llvm::Expected;

namespace meshwright {

std::optional<Phase> phaseNamed(StringRef name) {
  for (auto [i, phase] : llvm::enumerate(phaseNames))
    if (name == phase)
      return Phase(i);
  return std::nullopt;
}

StringRef nameOf(Phase phase) { return phaseNames[unsigned(phase)]; }

Expected<Phase> phaseOf(ModuleOp module) {
  auto attr = module->getAttrOfType<StringAttr>(phaseAttr);
  if (!attr)
    return Phase::train;
  if (auto phase = phaseNamed(attr.getValue()))
    return *phase;
  return llvm::createStringError("attribute " + phaseAttr + " is '" + attr.getValue() +
                                 "'; expected one of " +
                                 llvm::join(llvm::ArrayRef(phaseNames), ", "));
}

namespace {
/// Checks that IR from a file has only attributes of its phase.
struct CheckAttributesPass : PassWrapper<CheckAttributesPass, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(CheckAttributesPass)
  explicit CheckAttributesPass(Phase phase) : phase(phase) {}
  StringRef getName() const override { return "meshwright-check-attributes"; }
  StringRef getArgument() const override { return "meshwright-check-attributes"; }
  void runOnOperation() override {
    if (failed(checkAttributeLifetimes(getOperation(), phase)))
      signalPassFailure();
  }
  Phase phase;
};

/// Marks the module as having reached a phase, so that printed IR can be read back and taken up
/// where it was left, and drops what no later pass reads.
struct MarkPhasePass : PassWrapper<MarkPhasePass, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(MarkPhasePass)
  explicit MarkPhasePass(Phase phase) : phase(phase) {}
  StringRef getName() const override { return "meshwright-phase"; }
  StringRef getArgument() const override { return "meshwright-phase"; }
  void runOnOperation() override {
    getOperation()->setAttr(phaseAttr, StringAttr::get(&getContext(), nameOf(phase)));
    getOperation()->removeAttr(dumpedAfterAttr);
    dropExpiredAttributes(getOperation(), phase);
  }
  Phase phase;
};

/// Runs passes on the module, or on each of its programs where devices run different
/// ones; MLIR compiles those in parallel.
struct ProgramsPass : PassWrapper<ProgramsPass, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(ProgramsPass)
  explicit ProgramsPass(OpPassManager passes) : passes(std::move(passes)) {}
  StringRef getName() const override { return "meshwright-programs"; }
  StringRef getArgument() const override { return "meshwright-programs"; }
  void getDependentDialects(DialectRegistry &registry) const override {
    passes.getDependentDialects(registry);
  }
  void runOnOperation() override {
    if (failed(dist::verifyPrograms(getOperation())))
      return signalPassFailure();
    OpPassManager manager(ModuleOp::getOperationName());
    if (dist::hasPrograms(getOperation()))
      manager.nest<ModuleOp>() = passes;
    else
      manager = passes;
    if (failed(runPipeline(manager, getOperation())))
      signalPassFailure();
  }
  OpPassManager passes;
};

/// Runs passes that a user inserts.
struct InsertedPasses : PassWrapper<InsertedPasses, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(InsertedPasses)
  explicit InsertedPasses(OpPassManager passes) : passes(std::move(passes)) {}
  StringRef getName() const override { return "meshwright-inserted"; }
  StringRef getArgument() const override { return "meshwright-inserted"; }
  void getDependentDialects(DialectRegistry &registry) const override {
    passes.getDependentDialects(registry);
  }
  void runOnOperation() override {
    if (failed(runPipeline(passes, getOperation())))
      signalPassFailure();
  }
  OpPassManager passes;
};

/// A pass in the order of all.
struct OrderedPass {
  Phase to; ///< the phase it leads to
  std::unique_ptr<Pass> pass;
  bool runs = true;
  StringRef when = "";      ///< what makes it run, in words; empty: it always does
  bool verifies = false;    ///< whether it checks IR that comes in at its phase
  bool eachProgram = false; ///< whether programs are passed to it one at a time
};

/// The passes in the order in which `add` gets them.
class Order {
public:
  void phase(Phase next) { to = next; }
  void add(std::unique_ptr<Pass> pass, bool runs = true, StringRef when = "") {
    entries.push_back({to, std::move(pass), runs, when, /*verifies=*/false, eachProgram});
  }
  void verify(std::unique_ptr<Pass> pass) {
    add(std::move(pass));
    entries.back().verifies = true;
  }

  std::vector<OrderedPass> entries;
  bool eachProgram = false;

private:
  Phase to = Phase::train;
};
} // namespace

/// The stages of the pipeline; 1 without an axis for them.
static int64_t pipelineStages(const dist::Mesh &mesh) { return mesh.size(mesh.named("pipe")); }

/// Policies of the pipeline's stages as one for each chunk, where they differ.
static Expected<std::vector<RematPolicy>> rematOfChunks(const CompileOptions &o, int64_t stages) {
  const std::vector<RematPolicy> &policies = o.remat.policies;
  if (policies.size() == 1)
    return policies;
  if (int64_t(policies.size()) != stages)
    return llvm::createStringError(
        "--remat '" + optionText(o.remat) + "' has " + llvm::Twine(policies.size()) +
        " policies; give one, or one for each of the " + llvm::Twine(stages) + " pipeline stages");
  std::vector<RematPolicy> chunks;
  for (int64_t stage : assignChunks(o.schedule, stages))
    chunks.push_back(policies[stage]);
  return chunks;
}

/// The entry of the pass at the place of `inserted`; refuses a place that is none, several or idle.
static Expected<size_t> placeOf(const InsertedPass &inserted, const std::vector<OrderedPass> &order) {
  std::vector<StringRef> names;
  std::vector<size_t> found;
  const OrderedPass *idle = nullptr;
  for (auto [i, entry] : llvm::enumerate(order)) {
    names.push_back(entry.pass->getArgument());
    if (names.back() != inserted.place)
      continue;
    if (entry.runs)
      found.push_back(i);
    else
      idle = &entry;
  }
  if (found.size() == 1)
    return found.front();
  if (found.size() > 1) {
    auto behind = llvm::map_range(found, [&](size_t i) { return (i ? names[i - 1] : "").str(); });
    return refuseInserted(inserted, "'" + inserted.place + "' runs " + llvm::Twine(found.size()) +
                                        " times; name a pass that runs once, such as those before it: " +
                                        llvm::join(behind, ", "));
  }
  if (idle)
    return refuseInserted(inserted, "'" + inserted.place +
                                        "' does not run with these flags; it is for " + idle->when);
  std::string near = nearestName(inserted.place, names);
  return refuseInserted(inserted, "the compiler runs no pass '" + inserted.place + "'" +
                                      (near.empty() ? "" : "; did you mean '" + near + "'?") +
                                      (near.empty() ? "; " : " ") +
                                      "'meshwright-opt --meshwright-pass-order' lists its passes");
}

/// Adds what users insert, in the order in which they give it.
static Error insertPasses(const CompileOptions &o, std::vector<OrderedPass> &order) {
  // By the pass that it is placed at: what is inserted is no place itself.
  std::vector<std::vector<OrderedPass>> before(order.size()), after(order.size());
  for (StringRef text : o.insertedPasses) {
    Expected<InsertedPass> inserted = parseInsertedPass(text);
    if (!inserted)
      return inserted.takeError();
    Expected<size_t> place = placeOf(*inserted, order);
    if (!place)
      return place.takeError();
    Expected<OpPassManager> passes = makeInsertedPass(*inserted);
    if (!passes)
      return passes.takeError();
    const OrderedPass &at = order[*place];
    OrderedPass entry{at.to, std::make_unique<InsertedPasses>(std::move(*passes))};
    entry.eachProgram = at.eachProgram;
    (inserted->isAfter ? after : before)[*place].push_back(std::move(entry));
  }
  std::vector<OrderedPass> all;
  for (auto [i, entry] : llvm::enumerate(order)) {
    std::move(before[i].begin(), before[i].end(), std::back_inserter(all));
    all.push_back(std::move(entry));
    std::move(after[i].begin(), after[i].end(), std::back_inserter(all));
  }
  order = std::move(all);
  return Error::success();
}

/// The one definition of the order of the passes.
static Expected<std::vector<OrderedPass>> passOrder(const CompileOptions &o) {
  int64_t stages = pipelineStages(o.mesh);
  int64_t chunks = stages > 1 ? stages * o.schedule.chunksPerStage : 1;
  Expected<std::vector<RematPolicy>> remat = rematOfChunks(o, stages);
  if (!remat)
    return remat.takeError();
  auto every = llvm::map_to_vector(*remat, [](const RematPolicy &policy) { return policy.every; });
  bool groups = llvm::any_of(every, [](int64_t layers) { return layers != 1; });
  const exec::Target &target = o.getTarget();
  Expected<cost::DeviceChoice> device = deviceOf(o);
  if (!device)
    return device.takeError();
  bool overlaps =
      o.overlap == Overlap::automatic ? target.overlapsByDefault() : o.overlap == Overlap::on;
  bool loops = o.collectiveMatmul == Toggle::on;
  constexpr int64_t leastSlice = 1 << 20;

  Order order;
  order.verify(train::createTrainVerifyModel());

  order.phase(Phase::step);
  order.add(train::createTrainAdapt({o.lora}), o.lora.rank > 0, "--lora");
  order.add(train::createTrainFreeze({o.freeze}), !o.freeze.patterns.empty(), "--freeze");
  order.add(train::createTrainSplitLayers({chunks, o.cuts, every}), chunks > 1 || groups,
            "--mesh pipe, --remat every:K");
  order.add(train::createTrainMixedPrecision({o.precision, o.gradDtype}));
  order.add(train::createTrainQuantizeWeights(), o.frozenWeights == FrozenWeights::int8, "--frozen-weights int8");
  order.add(train::createTrainQuantizeProducts({o.fp8Recipe}), o.precision.isFp8(),
            "--precision fp8");
  order.add(train::createTrainCountBatch());
  order.add(train::createTrainAutodiff({o.residuals}));
  GradientCompression compression = o.compressionInBlocks();
  order.add(train::createTrainBlockGradients({compression}), bool(compression), "--grad-compression");
  order.add(train::createTrainAccumulate());
  order.add(train::createTrainBuildOptimizer({o.optimizer, o.momentsDtype, o.optimizerGroups, o.muonScale, o.muonCoefficients, o.ema, o.evalEma,
                                              compression}));
  order.add(createCanonicalizerPass());
  order.verify(train::createTrainVerify());
  order.add(createSymbolDCEPass());

  order.phase(Phase::dist);
  ContextParallel context = o.contextParallel;
  if (context == ContextParallel::automatic && o.mesh.size(o.mesh.named("context")) > 1 &&
      !target.hasPartialAttention())
    context = ContextParallel::gather;
  order.add(dist::createDistApplyStrategy({o.mesh, o.zero, o.dataSync, o.sequenceParallel, o.tensor2d, context}));
  order.add(dist::createDistSplitReductions());
  order.add(dist::createDistPad({target.getRowAlignment()}));
  order.add(dist::createDistPropagate({o.explainSharding}));
  order.verify(dist::createDistVerify());

  order.phase(Phase::local);
  order.add(dist::createDistPartition());
  order.add(dist::createDistRingAttention({o.contextBalance, *device}));
  order.add(dist::createDistBalanceAttention({o.contextBalance}));
  order.add(dist::createDistCountAttention());
  order.add(dist::createDistDivideLoss({o.lossParts, (*device)->productRows}));
  order.add(createCanonicalizerPass());

  order.phase(Phase::stages);
  order.add(dist::createDistRematerialize({llvm::to_vector(*remat), *device}));
  order.add(dist::createDistSplitStages({o.schedule, "cheaper", *device}));
  order.add(dist::createDistSplitServers());

  order.phase(Phase::schedule);
  bool pairs = overlaps && !o.replay && !isOffload(o.offload.activations) && !isOffload(o.offload.parameters);
  order.add(dist::createDistSchedule({o.schedule, pairs}));
  // Before buckets, but after collectives of sums have become one.
  order.add(dist::createDistOptimizeCollectives({/*bucketBytes=*/0, leastSlice, *device}), loops, "--collective-matmul");
  order.add(dist::createDistLoopCollectives(), loops, "--collective-matmul");
  order.add(dist::createDistOptimizeCollectives({/*bucketBytes=*/25 << 20, leastSlice, *device}));
  order.add(dist::createDistDecomposeCollectives({o.collectiveAlgorithm, *device}));
  order.verify(dist::createDistVerifyCommunication());

  order.phase(Phase::exec);
  order.add(exec::createAssignTarget(target.getName(), o.targetFlags));
  order.eachProgram = true;
  order.add(exec::createExecSliceCollectives({/*minBytes=*/leastSlice, /*sums=*/isOffload(o.offload.parameters)}));
  order.add(exec::createExecContiguousCollectives());
  order.add(exec::createExecFuseAccumulate());
  order.add(exec::createExecFuseEpilogues());
  order.add(exec::createExecSliceUpdates({int64_t(o.offloadBuffer.count)}), o.offload.slicesUpdates(),
            "--offload");
  order.add(exec::createExecFormKernels());
  order.add(exec::createExecDecomposeKernels());
  order.add(exec::createExecMergeLaunches());
  order.add(exec::createExecScheduleKernels());
  order.add(exec::createExecInlineRepeats());
  order.add(exec::createExecOrder());
  order.add(exec::createExecFillWaits(), overlaps, "--overlap");
  order.add(exec::createExecAssignValueIds(), o.replay, "--replay");
  order.add(exec::createExecChooseLibraries());
  order.add(exec::createExecBufferize());
  order.add(exec::createExecOffload({o.offload.optimizer, o.offload.activations, o.offload.parameters}), o.offload.any(),
            "--offload");
  order.add(exec::createExecHalveMasters(), o.masters == MasterStorage::halves && !o.replay,
            "--masters");
  order.add(exec::createExecCarryInSlots());
  order.add(exec::createExecPairTasks(), pairs, "--overlap");
  order.add(exec::createExecOverlapCollectives(), overlaps, "--overlap");
  order.add(exec::createExecAssignOffsets());
  order.eachProgram = false;
  order.add(exec::createExecNumberCollectives());
  order.verify(exec::createExecVerify());
  if (Error error = insertPasses(o, order.entries))
    return std::move(error);
  return std::move(order.entries);
}

Error checkInsertedPasses(const CompileOptions &options, Phase from, Phase to) {
  if (options.insertedPasses.empty())
    return Error::success();
  CompileOptions plain = options;
  plain.insertedPasses.clear();
  Expected<std::vector<OrderedPass>> order = passOrder(plain);
  if (!order)
    return order.takeError();
  for (StringRef text : options.insertedPasses) {
    Expected<InsertedPass> inserted = parseInsertedPass(text);
    if (!inserted)
      return inserted.takeError();
    Expected<size_t> place = placeOf(*inserted, *order);
    if (!place)
      return place.takeError();
    Phase at = (*order)[*place].to;
    // The verifier of the phase that IR is at runs alone.
    if (at > from && at <= to)
      continue;
    return refuseInserted(*inserted, "'" + inserted->place + "' leads to phase " + nameOf(at) +
                                         (at > to ? ", which --emit " + options.emit + " stops before"
                                                  : ", which the input has reached; compile an "
                                                    "earlier phase"));
  }
  return Error::success();
}

void printPassOrder(raw_ostream &os) {
  std::optional<Phase> last;
  for (const OrderedPass &entry : llvm::cantFail(passOrder({}))) {
    if (entry.to != last)
      os << (last ? "\n" : "") << nameOf(entry.to) << ":";
    last = entry.to;
    os << " " << entry.pass->getArgument();
    if (!entry.when.empty())
      os << " (" << entry.when << ")";
  }
  os << "\n";
}

/// Refuses flags for a pipeline where there is none.
static Error checkPipelineFlags(const CompileOptions &options, Phase from) {
  auto refuse = [](const llvm::Twine &flag) {
    return llvm::createStringError(flag +
                                   ": there are no pipeline stages; --mesh pipe=2 makes two");
  };
  std::string cuts = optionText(options.cuts), schedule = optionText(options.schedule);
  bool without = from < Phase::dist && pipelineStages(options.mesh) == 1;
  if (without && !cuts.empty())
    return refuse("--cuts " + cuts);
  if (without && schedule != optionText(schedule::ScheduleKind()))
    return refuse("--schedule " + schedule);
  if (from > Phase::train && !cuts.empty())
    return llvm::createStringError("--cuts " + cuts +
                                   ": the input is past phase train, where layers are split");
  if (options.remat.automatic)
    return llvm::createStringError("--remat " + optionText(options.remat) +
                                   " is found by compiling; a pipeline takes policies");
  return Error::success();
}

/// Appends the passes that run and that `wanted` picks.
static void append(OpPassManager &manager, std::vector<OrderedPass> &order,
                   llvm::function_ref<bool(const OrderedPass &)> wanted) {
  OpPassManager programs(ModuleOp::getOperationName());
  auto addPrograms = [&] {
    if (programs.size())
      manager.addPass(std::make_unique<ProgramsPass>(std::move(programs)));
    programs = OpPassManager(ModuleOp::getOperationName());
  };
  for (OrderedPass &entry : order) {
    if (!entry.pass || !entry.runs || !wanted(entry))
      continue;
    if (entry.eachProgram) {
      programs.addPass(std::move(entry.pass));
      continue;
    }
    addPrograms();
    manager.addPass(std::move(entry.pass));
  }
  addPrograms();
}

Error buildPipeline(OpPassManager &manager, const CompileOptions &options, Phase from, Phase to) {
  if (Error error = checkPipelineFlags(options, from))
    return error;
  Expected<std::vector<OrderedPass>> order = passOrder(options);
  if (!order)
    return order.takeError();
  // IR that comes in from a file is checked first: somebody may have edited it.
  manager.addPass(std::make_unique<CheckAttributesPass>(from));
  append(manager, *order, [&](const OrderedPass &entry) { return entry.to == from && entry.verifies; });
  for (unsigned phase = unsigned(from) + 1; phase <= unsigned(to); ++phase) {
    append(manager, *order, [&](const OrderedPass &entry) { return entry.to == Phase(phase); });
    manager.addPass(std::make_unique<MarkPhasePass>(Phase(phase)));
  }
  return Error::success();
}

Error buildPipeline(OpPassManager &manager, const CompileOptions &options, StringRef first,
                    StringRef last) {
  Expected<std::vector<OrderedPass>> order = passOrder(options);
  if (!order)
    return order.takeError();
  enum { Before, Inside, Behind } at = Before;
  append(manager, *order, [&](const OrderedPass &entry) {
    StringRef name = entry.pass->getArgument();
    if (at == Before && name == first)
      at = Inside;
    bool wanted = at == Inside;
    if (wanted && name == last)
      at = Behind;
    return wanted;
  });
  return at == Behind ? Error::success()
                      : llvm::createStringError("no passes run from " + first + " to " + last);
}

namespace {
/// The flags that passes read, as options of a pipeline.
struct PipelineFlags : PassPipelineOptions<PipelineFlags> {
  PipelineFlags() {
    for (const Flag &flag : compileFlags())
      if (flag.ofPasses)
        flags.push_back({&flag, std::make_unique<Option<std::string>>(*this, flag.name,
                                                                      llvm::cl::desc(flag.help),
                                                                      llvm::cl::ValueOptional)});
  }

  std::vector<std::pair<const Flag *, std::unique_ptr<Option<std::string>>>> flags;
  Option<std::string> from{*this, "from", llvm::cl::desc("the phase the input is at"),
                           llvm::cl::init("train")};
  Option<std::string> to{*this, "to", llvm::cl::desc("the last phase"), llvm::cl::init("exec")};
};
} // namespace

void registerPipeline() {
  auto build = [](OpPassManager &manager, StringRef text,
                  llvm::function_ref<LogicalResult(const llvm::Twine &)> report) {
    PipelineFlags flags;
    if (failed(flags.parseFromString(text)))
      return failure();
    auto from = phaseNamed(flags.from), to = phaseNamed(flags.to);
    if (!from || !to)
      return report("'" + (from ? flags.to : flags.from) + "' is no phase; phases are " +
                    llvm::join(llvm::ArrayRef(phaseNames), ", "));
    if (*from > *to)
      return report("phase " + flags.from + " comes after phase " + flags.to);
    CompileOptions options;
    for (auto &[flag, value] : flags.flags)
      if (value->hasValue())
        if (Error error = flag->read(*value, options))
          return report(toString(std::move(error)));
    if (Error error = buildPipeline(manager, options, *from, *to))
      return report(toString(std::move(error)));
    return success();
  };
  registerPassPipeline("meshwright-pipeline", "The passes from one phase to another", build,
                       [](auto handler) { handler(PipelineFlags()); });
}

} // namespace meshwright
