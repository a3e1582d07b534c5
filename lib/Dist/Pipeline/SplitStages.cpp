//===- SplitStages.cpp - one program for each pipeline stage -----------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Dist/Passes.h"
#include "Dist/Programs.h"
#include "Dist/Remat/LayerPairs.h"
#include "StagePrograms.h"

#include "llvm/ADT/StringSwitch.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::dist;

namespace meshwright::dist {
#define GEN_PASS_DEF_DISTSPLITSTAGES
#include "Dist/Passes.h.inc"
} // namespace meshwright::dist

/// Adds the symbols that `op` and what is inside it name, and those that they name.
static void collect(Operation *op, SymbolTable &symbols, DenseSet<Operation *> &known) {
  op->walk([&](Operation *inner) {
    inner->getAttrDictionary().walk([&](SymbolRefAttr name) {
      Operation *symbol = symbols.lookup(name.getRootReference());
      if (symbol && known.insert(symbol).second)
        collect(symbol, symbols, known);
    });
  });
}

namespace {
/// When devices with copies of a value each send a part of it.
enum class Sharing { never, cheaper, always };

class Splitter {
public:
  Splitter(ModuleOp module, MeshOp mesh, unsigned axis, schedule::ScheduleKind kind,
           Sharing sharing, StageLinks links)
      : module(module), mesh(mesh), kind(kind), sharing(sharing), links(links),
        stages(mesh.getMesh().axes[axis].size), stageOf(schedule::assignChunks(kind, stages)),
        group(GroupAttr::from(FlatSymbolRefAttr::get(mesh), mesh.getMesh(), {axis})) {}

  LogicalResult run();

private:
  LogicalResult checkLayers();
  /// Whether every stage counts itself what its microbatches read of the counts.
  LogicalResult checkCounts(const MicrobatchOps &ops, const PartFunctions &functions,
                            const MicrobatchOps &counts);
  /// Whether gradients of weights are computed from those of inputs, and not the reverse.
  LogicalResult checkWeights(const MicrobatchOps &ops, const PartFunctions &functions);
  void findHolders(const PartFunctions &functions, const MicrobatchOps &ops);
  ArrayRef<int64_t> holdersOf(StringRef variable);
  void makeProgram(int64_t stage, ArrayRef<StageInputs> inputs);

  ModuleOp module;
  MeshOp mesh;
  schedule::ScheduleKind kind;
  Sharing sharing;
  StageLinks links;
  int64_t stages;
  SmallVector<int64_t> stageOf; ///< of each chunk
  GroupAttr group;
  /// The stages whose layers read a parameter, or what is computed from it before, ascending.
  llvm::StringMap<SmallVector<int64_t>> holders;
};
} // namespace

LogicalResult Splitter::checkLayers() {
  int64_t chunks = chunkCount(module);
  if (chunks != int64_t(stageOf.size()))
    return module.emitError("the layers are split into ")
           << chunks << (chunks == 1 ? " chunk" : " chunks") << " ("
           << train::TrainDialect::chunkAttr << "), but schedule " << kind.str() << " on " << stages
           << " stages has " << stageOf.size()
           << "; train-split-layers splits them, so compile from the model";
  if (sharing == Sharing::never || stages == mesh.getMesh().size())
    return success();
  WalkResult result = module.walk([](train::RepeatOp repeat) {
    if (!train::chunkOf(repeat) || repeat->hasAttr(replicatedAttr))
      return WalkResult::advance();
    repeat.emitOpError("has no ") << replicatedAttr << ", by which devices share out sending "
                                  << "what they have copies of; dist-partition gives it";
    return WalkResult::interrupt();
  });
  return failure(result.wasInterrupted());
}

LogicalResult Splitter::checkCounts(const MicrobatchOps &ops, const PartFunctions &functions,
                                    const MicrobatchOps &counts) {
  train::RepeatOp loop = ops.loop, counted = counts.loop;
  Operation *end = counts.block->getTerminator();
  for (auto &[part, made] : functions)
    for (Value value : made.arguments) {
      auto argument = dyn_cast<BlockArgument>(value);
      SmallVector<Value> work;
      if (argument)
        work.push_back(loop->getOperand(argument.getArgNumber()));
      while (!work.empty()) {
        Value next = work.pop_back_val();
        Operation *op = next.getDefiningOp();
        if (op && op != counted)
          llvm::append_range(work, op->getOperands());
        if (op != counted)
          continue;
        Value sum = end->getOperand(cast<OpResult>(next).getResultNumber());
        std::optional<Part> maker = counts.partOf(sum);
        if (maker && stageOf[maker->chunk] != stageOf[part.chunk])
          return counted.emitOpError("counts on stage ")
                 << stageOf[maker->chunk] << " what stage " << stageOf[part.chunk]
                 << " reads; a stage can only read what its own layers count";
      }
    }
  return success();
}

LogicalResult Splitter::checkWeights(const MicrobatchOps &ops, const PartFunctions &functions) {
  for (auto &[part, made] : functions)
    for (Value value : made.arguments)
      if (std::optional<Part> maker = ops.partOf(value);
          maker && maker->kind == schedule::TaskKind::weight && part.kind != schedule::TaskKind::weight)
        return value.getDefiningOp()->emitOpError("computes a gradient of weights, which schedule ")
               << kind.str() << " postpones, but gradients of the inputs of chunk " << part.chunk
               << " need it, as where layers add embeddings of their own; use --schedule 1f1b, "
                  "gpipe or interleaved:V";
  auto has = [&](int64_t chunk, schedule::TaskKind task) {
    return llvm::any_of(functions, [&](const auto &entry) {
      return entry.first.chunk == chunk && entry.first.kind == task;
    });
  };
  for (int64_t chunk = 0; chunk < int64_t(stageOf.size()); ++chunk)
    if (kind.splitsBackward() && has(chunk, schedule::TaskKind::backward) &&
        !has(chunk, schedule::TaskKind::weight))
      return func::FuncOp(ops.function).emitError("schedule ")
             << kind.str() << " postpones gradients of weights, but chunk " << chunk
             << " has none that can wait, as where it has the head alone; use --schedule 1f1b, gpipe or "
                "interleaved:V, or --cuts that give it a layer";
  return success();
}

void Splitter::findHolders(const PartFunctions &functions, const MicrobatchOps &ops) {
  for (auto &[part, made] : functions) {
    int64_t stage = stageOf[part.chunk];
    auto hold = [&](train::GetOp get) {
      auto variable = module.lookupSymbol<train::VariableOp>(get.getVariable());
      SmallVector<int64_t> &known = holders[variable.getOf().value_or(get.getVariable())];
      if (!llvm::is_contained(known, stage))
        known.insert(llvm::lower_bound(known, stage), stage);
    };
    func::FuncOp(made.function).walk(hold);
    for (Value value : made.arguments)
      if (auto argument = dyn_cast<BlockArgument>(value); argument && ops.loop)
        llvm::for_each(readsBehind(ops.loop->getOperand(argument.getArgNumber())), hold);
      else if (ops.isOfState(value))
        llvm::for_each(readsBehind(value), hold);
  }
}

/// A state is where its parameter is; what nobody reads is on the first stage.
ArrayRef<int64_t> Splitter::holdersOf(StringRef name) {
  auto variable = module.lookupSymbol<train::VariableOp>(name);
  StringRef parameter = variable.getOf() ? *variable.getOf() : name;
  SmallVector<int64_t> &known = holders[parameter];
  if (known.empty())
    known.push_back(0);
  return known;
}

void Splitter::makeProgram(int64_t stage, ArrayRef<StageInputs> inputs) {
  OpBuilder builder = OpBuilder::atBlockEnd(module.getBody());
  auto program = ModuleOp::create(builder, module.getLoc(), "stage" + std::to_string(stage));
  StringRef axis = group.getAxes()[0];
  program->setAttr(coordinatesAttr, builder.getDictionaryAttr(builder.getNamedAttr(
                                        axis, builder.getI64IntegerAttr(stage))));
  for (const StageInputs &input : inputs)
    emitStage(input, stage, program);
  // Then what they name, in its old order before them.
  SymbolTable symbols(module);
  DenseSet<Operation *> named{mesh};
  collect(program, symbols, named);
  builder.setInsertionPointToStart(program.getBody());
  for (Operation &op : module.getOps())
    if (named.contains(&op) && !isa<ModuleOp>(op))
      builder.clone(op);
}

LogicalResult Splitter::run() {
  if (failed(checkLayers()))
    return failure();
  SmallVector<func::FuncOp> functions = llvm::to_vector(llvm::make_filter_range(
      module.getOps<func::FuncOp>(), [](func::FuncOp f) { return f.isPublic(); }));
  std::vector<MicrobatchOps> ops;
  std::vector<PartFunctions> parts;
  std::optional<MicrobatchOps> counts; // of @step
  PartFunctions countParts;
  for (func::FuncOp function : functions) {
    FailureOr<MicrobatchOps> found = findParts(function, stageOf.size());
    if (failed(found))
      return failure();
    if (kind.splitsBackward())
      splitWeights(*found);
    StringRef name = function.getSymName();
    parts.push_back(makeFunctions(*found, name == "step" ? "" : (name + ".").str()));
    if (failed(checkWeights(*found, parts.back())))
      return failure();
    findHolders(parts.back(), *found);
    ops.push_back(std::move(*found));
    if (!findLoop(function, train::Role::Count))
      continue;
    FailureOr<MicrobatchOps> before = findParts(function, stageOf.size(), train::Role::Count);
    if (failed(before))
      return failure();
    counts = std::move(*before);
    countParts = makeFunctions(*counts, "count.");
    if (failed(checkCounts(ops.back(), parts.back(), *counts)))
      return failure();
  }
  std::vector<StageAssignment> after;
  for (MicrobatchOps &one : ops)
    after.push_back(
        assignStages(one, stageOf, stages, [&](StringRef name) { return holdersOf(name); }));
  std::vector<llvm::DenseMap<Value, StageInputs::Shares>> shares(ops.size());
  llvm::DenseMap<Value, StageInputs::Shares> countShares;
  auto share = [&](const PartFunctions &functionsOf) {
    return findShares(functionsOf, mesh, group,
                      sharing == Sharing::cheaper ? std::optional(links) : std::nullopt);
  };
  if (sharing != Sharing::never) {
    for (auto [functionsOf, sharesOf] : llvm::zip(parts, shares))
      sharesOf = share(functionsOf);
    countShares = share(countParts);
  }
  SmallVector<StageInputs> inputs;
  for (auto [one, functionsOf, afterOf, sharesOf] : llvm::zip(ops, parts, after, shares))
    inputs.push_back({one, functionsOf, &afterOf, stageOf, stages, group, sharesOf});
  std::optional<StageInputs> beforehand;
  if (counts) {
    beforehand.emplace(
        StageInputs{*counts, countParts, nullptr, stageOf, stages, group, countShares});
    for (StageInputs &of : inputs)
      if (of.ops.function == counts->function) {
        of.counts = &*beforehand;
        // Channels of both loops are apart.
        for (Operation &op : *counts->block)
          of.firstChannel += op.getNumResults();
      }
  }
  for (int64_t stage = 0; stage < stages; ++stage)
    makeProgram(stage, inputs);
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(*module.getBody())))
    if (isa<func::FuncOp, train::VariableOp>(op))
      op.erase();
  module.walk([](Operation *op) { op->removeAttr(replicatedAttr); });
  return verifyPrograms(module);
}

/// An op that a seed of the program shards over `axis`, or null.
static Operation *firstShardedOver(ModuleOp module, StringRef axis) {
  Operation *found = nullptr;
  module.walk([&](Operation *op) {
    auto names = [&](ArrayRef<StringAttr> axes) {
      return llvm::any_of(axes, [&](StringAttr name) { return name.getValue() == axis; });
    };
    op->getAttrDictionary().walk([&](Attribute attr) {
      auto dim = dyn_cast<DimAttr>(attr);
      auto group = dyn_cast<GroupAttr>(attr);
      if (!found && ((dim && names(dim.getAxes())) || (group && names(group.getAxes()))))
        found = op;
    });
  });
  return found;
}

namespace {
class SplitStagesPass : public dist::impl::DistSplitStagesBase<SplitStagesPass> {
public:
  using DistSplitStagesBase::DistSplitStagesBase;

private:
  void runOnModule() override {
    ModuleOp module = getOperation();
    MeshOp mesh = lookupMesh(module);
    if (!mesh)
      return signalPassFailure();
    int axis = mesh.getMesh().find("pipe");
    if (axis < 0 || mesh.getMesh().axes[axis].size == 1)
      return;
    if (Operation *sharded = firstShardedOver(module, "pipe")) {
      sharded->emitOpError(
          "is sharded over mesh axis 'pipe', along which the stages of the pipeline are; "
          "seeds can use any other axis");
      return signalPassFailure();
    }
    if (module.walk([&](train::RepeatOp repeat) {
          return repeat.getTimes() && train::isOverMicrobatches(repeat) ? WalkResult::interrupt() : WalkResult::advance();
        }).wasInterrupted()) {
      module.emitError("steps may have fewer microbatches than the program (input ")
          << train::microbatchesInput << " of @loss), but the schedule of a pipeline is of a fixed number: use a mesh without "
          << "the axis 'pipe', or leave out --batch-ramp";
      return signalPassFailure();
    }
    // Before each microbatch is written out.
    if (std::optional<int64_t> count = train::moduleSize(module, train::microbatchesAttr)) {
      llvm::Expected<schedule::PipelineSchedule> made =
          schedule::makeSchedule(schedule, mesh.getMesh().axes[axis].size, *count);
      if (!made) {
        module.emitError(llvm::toString(made.takeError()));
        return signalPassFailure();
      }
      // Programs are written out, some milliseconds a task.
      constexpr int64_t mostTasks = 1 << 16;
      int64_t most = mostTasks / made->chunks();
      if (schedule.name == schedule::ScheduleKind::interleaved)
        most -= most % made->stages();
      if (*count > most) {
        module.emitError("schedule ")
            << schedule.str() << " on " << made->stages() << " stages with " << *count
            << " microbatches has " << *count * made->chunks() << " forward tasks, more than the "
            << mostTasks << " that programs are written out for; use at most " << most
            << " microbatches";
        return signalPassFailure();
      }
    }
    auto sharing = llvm::StringSwitch<std::optional<Sharing>>(scatterGather)
                       .Case("never", Sharing::never)
                       .Case("cheaper", Sharing::cheaper)
                       .Case("always", Sharing::always)
                       .Default(std::nullopt);
    if (!sharing) {
      module.emitError("scatter-gather '") << scatterGather << "' must be never, cheaper or always";
      return signalPassFailure();
    }
    StageLinks links{device->network, device->machine};
    if (between > 0)
      links.between.bandwidth = between;
    if (inside > 0)
      links.inside.bandwidth = inside;
    if (latency > 0)
      links.between.latency = links.inside.latency = latency;
    if (failed(Splitter(module, mesh, axis, schedule, *sharing, links).run()))
      signalPassFailure();
  }
};
} // namespace
