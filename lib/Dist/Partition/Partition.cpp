//===- Partition.cpp - from global tensors to one device's program ----------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Dist/Partition/LocalIndices.h"
#include "NarrowGradients.h"
#include "Dist/Partition/ReshardPath.h"
#include "Dist/Passes.h"
#include "Dist/Propagation/ValueBinding.h"
#include "Dist/Wire.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::dist;

namespace meshwright::dist {
#define GEN_PASS_DEF_DISTPARTITION
#include "Dist/Passes.h.inc"
} // namespace meshwright::dist

namespace {
class Partitioner {
public:
  Partitioner(ModuleOp module, MeshOp meshOp)
      : module(module), meshOp(meshOp), meshName(FlatSymbolRefAttr::get(meshOp)),
        mesh(meshOp.getMesh()) {}

  LogicalResult run() {
    FailureOr<Structure> structure = structureOf(module);
    if (failed(structure) || failed(checkTypes(*structure)) || failed(narrowGradients(module)))
      return failure();
    for (func::FuncOp function : structure->functions) {
      keepReplication(function);
      function.walk([&](train::AttentionGradOp op) { keepCopies(op); });
      function.walk([&](train::CostOpInterface op) { keepRepeated(op); });
    }
    makeIndicesLocal(module, meshOp);
    SmallVector<ReshardOp> reshards;
    module.walk([&](ReshardOp op) { reshards.push_back(op); });
    // Last first: the operand of one may be the result of another, whose type says
    // where it is until it is lowered.
    for (ReshardOp op : llvm::reverse(reshards))
      if (failed(lower(op)))
        return failure();

    for (auto variable : module.getOps<train::VariableOp>()) {
      variable->setAttr(DistDialect::globalAttr, TypeAttr::get(variable.getType()));
      variable.setType(local(variable.getTensorType()));
    }
    for (BlockArgument argument : structure->inputs) {
      auto function = cast<func::FuncOp>(argument.getOwner()->getParentOp());
      if (!argument.getOwner()->isEntryBlock() || isCallee(function, *structure))
        continue;
      function.setArgAttr(argument.getArgNumber(), DistDialect::globalAttr,
                          TypeAttr::get(argument.getType()));
    }
    // Ops read their rules from their types, so making the types local is all there
    // is to it.
    for (func::FuncOp function : structure->functions) {
      function.walk([&](Block *block) {
        for (BlockArgument argument : block->getArguments())
          argument.setType(local(argument.getType()));
        for (Operation &op : *block)
          for (Value result : op.getResults())
            result.setType(local(result.getType()));
      });
      Block &body = function.getBody().front();
      function.setType(FunctionType::get(module.getContext(), body.getArgumentTypes(),
                                         body.getTerminator()->getOperandTypes()));
    }
    updateSizes(module);
    return success();
  }

private:
  /// The axes along which devices hold copies of `value`.
  SmallVector<StringRef> axesOfCopies(Value value) {
    Sharding sharding = dist::shardingOf(value.getType()).on(mesh);
    SmallVector<StringRef> axes;
    for (auto [axis, named] : llvm::enumerate(mesh.axes))
      if (named.size > 1 && !sharding.uses(axis))
        axes.push_back(named.name);
    return axes;
  }

  /// Keeps along which axes devices compute the same gradient: local types do not say it.
  void keepCopies(train::AttentionGradOp op) {
    llvm::SetVector<StringRef> axes;
    for (Value result : op->getResults())
      axes.insert_range(axesOfCopies(result));
    if (!axes.empty())
      op->setAttr(copiedAttr, Builder(op.getContext()).getStrArrayAttr(axes.getArrayRef()));
  }

  /// Keeps along which axes devices compute the same product: local types do not say it.
  void keepRepeated(train::CostOpInterface op) {
    if (isa<train::KernelOpInterface>(*op) || op->getNumResults() == 0)
      return;
    SmallVector<StringRef> axes = axesOfCopies(op->getResult(0));
    for (Value value : llvm::concat<Value>(op->getOperands(), op->getResults()))
      if (dist::shardingOf(value.getType()))
        llvm::erase_if(axes, [&](StringRef axis) {
          return dist::shardingOf(value.getType()).on(mesh).uses(mesh.find(axis));
        });
    if (!axes.empty())
      op->setAttr(repeatedAttr, Builder(op.getContext()).getStrArrayAttr(axes));
  }

  /// Where stages may exchange values, which is beside their layers, keeps along which axes
  /// those are replicated: local types do not say it.
  void keepReplication(func::FuncOp function) {
    auto isCut = [](train::RepeatOp repeat) { return train::chunkOf(repeat).has_value(); };
    if (llvm::none_of(function.getOps<train::RepeatOp>(), isCut))
      return;
    Builder b(module.getContext());
    for (Operation &op : function.getBody().front()) {
      auto repeat = dyn_cast<train::RepeatOp>(op);
      SmallVector<Attribute> results;
      for (Value result : repeat ? repeat.getCarried() : op.getResults())
        results.push_back(b.getStrArrayAttr(axesOfCopies(result)));
      if (!results.empty())
        op.setAttr(replicatedAttr, b.getArrayAttr(results));
    }
  }

  /// Whether a caller passes values to the function.
  static bool isCallee(func::FuncOp function, const Structure &structure) {
    return llvm::any_of(structure.bindings, [&](const ValueBinding &h) {
      auto argument = dyn_cast_or_null<BlockArgument>(h.to);
      return argument && argument.getOwner() == &function.getBody().front();
    });
  }

  LogicalResult checkType(Operation *op, Type type, const Twine &what) {
    ShardingAttr sharding = dist::shardingOf(type);
    if (!sharding)
      return op->emitOpError() << what << " of type " << type
                               << " has no sharding; run dist-propagate first";
    ArrayRef<int64_t> shape = cast<RankedTensorType>(type).getShape();
    Sharding sharded = sharding.on(mesh);
    int d = firstUneven(shape, sharded, mesh);
    if (d < 0)
      return success();
    return op->emitOpError() << what << " has " << shape[d] << " elements in dimension " << d
                             << ", which do not divide by the " << mesh.size(sharded.dims[d])
                             << " devices along " << mesh.str(sharded.dims[d])
                             << "; choose a size or a mesh that divides";
  }

  LogicalResult checkTypes(const Structure &structure) {
    for (auto variable : module.getOps<train::VariableOp>())
      if (failed(checkType(variable, variable.getType(), "variable")))
        return failure();
    for (func::FuncOp function : structure.functions) {
      auto check = [&](Value value, Operation *op) {
        return checkType(op, value.getType(), describe(value));
      };
      for (BlockArgument argument : function.getArguments())
        if (failed(check(argument, function)))
          return failure();
      WalkResult result = function.walk([&](Operation *op) {
        for (Value value : op->getResults())
          if (failed(check(value, op)))
            return WalkResult::interrupt();
        return WalkResult::advance();
      });
      if (result.wasInterrupted())
        return failure();
    }
    return success();
  }

  RankedTensorType local(Type type) {
    auto tensor = cast<RankedTensorType>(type);
    ShardingAttr sharding = dist::shardingOf(type);
    if (!sharding)
      return tensor; // made by `lower`, local already
    return RankedTensorType::get(localShape(tensor.getShape(), sharding.on(mesh), mesh),
                                 tensor.getElementType());
  }

  /// Whether the value that is moved is made or read by an op between tokens and rows.
  static bool movesSlots(ReshardOp op) {
    auto isOf = [](Operation *other, Value value) {
      auto rows = dyn_cast_or_null<train::SlotsOpInterface>(other);
      return rows && rows.getSlots() == value;
    };
    return isOf(op.getX().getDefiningOp(), op.getX()) ||
           llvm::any_of(op.getY().getUsers(), [&](Operation *user) { return isOf(user, op.getY()); });
  }

  LogicalResult lower(ReshardOp op) {
    Sharding from = dist::shardingOf(op.getX().getType()).on(mesh);
    Sharding to = dist::shardingOf(op.getY().getType()).on(mesh);
    auto steps = findReshardPath(from, to, op.getX().getType().getShape(), mesh);
    if (!steps)
      return op.emitOpError("cannot make ")
             << to.str(mesh) << " of " << from.str(mesh) << ": "
             << llvm::toString(steps.takeError());
    OpBuilder b(op);
    Value value = op.getX();
    RankedTensorType type = local(value.getType());
    auto kind = from.max ? train::ReduceKind::Max : train::ReduceKind::Sum;
    Attribute wire = op->getAttr(wireAttr);
    auto narrow = [&] {
      if (wire)
        value.getDefiningOp()->setAttr(wireAttr, wire);
    };
    bool slots = movesSlots(op);
    for (const ReshardStep &step : *steps) {
      GroupAttr group = GroupAttr::from(meshName, mesh, step.axes);
      SmallVector<int64_t> shape(type.getShape());
      step.resize(shape, mesh);
      type = RankedTensorType::get(shape, type.getElementType());
      Location loc = op.getLoc();
      switch (step.kind) {
      case ReshardStep::Slice:
        value = SliceOp::create(b, loc, type, value, step.dim, group);
        break;
      case ReshardStep::ReduceScatter:
        value = ReduceScatterOp::create(b, loc, type, kind, value, step.dim, group);
        narrow();
        break;
      case ReshardStep::AllToAll:
        value = AllToAllOp::create(b, loc, type, value, step.dim, step.concat, group);
        // Between blocks and sequences a part is the slots of one block.
        if (slots && step.dim < 2 && step.concat < 2)
          value.getDefiningOp()->setAttr(slotsAttr, b.getUnitAttr());
        break;
      case ReshardStep::Permute:
        value = PermuteOp::create(b, loc, type, value, step.source, group);
        break;
      case ReshardStep::AllReduce:
        value = AllReduceOp::create(b, loc, type, kind, value, group);
        narrow();
        break;
      case ReshardStep::AllGather:
        value = AllGatherOp::create(b, loc, type, value, step.dim, group);
        break;
      case ReshardStep::Reduce:
        value = ReduceOp::create(b, loc, type, kind, value, /*root=*/0, group);
        break;
      case ReshardStep::Gather:
        value = GatherOp::create(b, loc, type, value, step.dim, /*root=*/0, group);
        break;
      case ReshardStep::Broadcast:
        value = BroadcastOp::create(b, loc, type, value, /*root=*/0, group);
        break;
      case ReshardStep::Scatter:
        value = ScatterOp::create(b, loc, type, value, step.dim, /*root=*/0, group);
        break;
      case ReshardStep::Forget:
        llvm_unreachable("never on a path");
      }
    }
    if (Attribute axes = op->getAttr(replicatedAttr); axes && !steps->empty())
      value.getDefiningOp()->setAttr(replicatedAttr, axes);
    op.replaceAllUsesWith(value);
    op.erase();
    return success();
  }

  ModuleOp module;
  MeshOp meshOp;
  FlatSymbolRefAttr meshName;
  Mesh mesh;
};

class PartitionPass : public dist::impl::DistPartitionBase<PartitionPass> {
  void runOnModule() override {
    MeshOp mesh = lookupMesh(getOperation());
    if (!mesh || failed(Partitioner(getOperation(), mesh).run()))
      signalPassFailure();
  }
};
} // namespace
