//===- ServerSeeds.cpp - a parameter server as seeds ------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// Data parallelism by parameter server (Li et al. 2014), synchronous: workers push
// gradients to the device at coordinate 0 of the data axes, which adds them, updates
// and gives everybody the new parameters. Optimizer states and f32 copies of narrow
// parameters are there alone. Push and pull are a reduce and a broadcast, 2 (N-1)/N of
// the parameters a device as an all_reduce of the gradients.
//
// The gradient goes to the server where the update and its norm read it, after the
// last microbatch; the parameter comes back before it is stored. Both are
// `dist.constrain` with `boundary`; everything between is there because its operands
// are.
//
//===----------------------------------------------------------------------===//
#include "Seeds.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::dist;

namespace {
class ServerSeeder {
public:
  ServerSeeder(ModuleOp module, const Mesh &mesh, ArrayRef<unsigned> axes)
      : module(module), mesh(mesh), axes(axes) {}

  LogicalResult run() {
    VariableIndex index(module);
    for (Update &update : updatesOf(module)) {
      train::VariableOp parameter = update.parameter;
      if (orthogonalizes(update.op))
        return parameter.emitError("parameter @")
               << parameter.getSymName()
               << " is updated on one device, but orthogonalizing its matrices is a call for each "
                  "layer, which all devices make: --data-sync parameter-server does not go with "
                  "--optimizer muon and normuon; use --data-sync all-reduce";
      if (gradientOffsetOf(update, index))
        return parameter.emitError("parameter @")
               << parameter.getSymName()
               << " has its state y - x on one device, but all devices compute with y: --data-sync "
                  "parameter-server does not go with --optimizer schedule-free-adamw; use --data-sync "
                  "all-reduce";
      auto everywhere = parameter->getAttrOfType<ShardingAttr>(DistDialect::seedAttr);
      Sharding sharded = everywhere.on(mesh);
      for (unsigned axis : axes)
        if (sharded.uses(axis))
          return parameter.emitError("parameter @")
                 << parameter.getSymName() << " is sharded along " << mesh.str({axis})
                 << ", over which a parameter server holds all of it; leave the axis out of its "
                    "seed or use --data-sync all-reduce";
      ShardingAttr atServer = rooted(everywhere);
      for (train::VariableOp state : index.statesOf(parameter)) {
        state->setAttr(DistDialect::seedAttr, shardingOfState(state, parameter, atServer));
        state->setAttr(DistDialect::reasonAttr, reason());
      }
      push(update.op.getGradientMutable(), atServer);
      for (train::SetOp set : index.setsOf(parameter))
        set.getValueMutable().assign(constrain(set.getValue(), everywhere, set));
    }
    return success();
  }

private:
  /// Whether the direction of the update is computed in a function of each layer.
  static bool orthogonalizes(train::UpdateOpInterface update) {
    OpOperand *direction = update.getDirection();
    Value value = direction ? direction->get() : Value();
    while (auto mul = value ? value.getDefiningOp<train::MulOp>() : train::MulOp())
      value = mul.getLhs();
    auto repeat = value ? value.getDefiningOp<train::RepeatOp>() : train::RepeatOp();
    return repeat && train::roleOf(repeat) == train::Role::Update;
  }

  StringAttr reason() { return StringAttr::get(module.getContext(), "parameter server"); }

  /// The same on the server alone. Open dimensions get no axis of it: one that is the
  /// root's cannot shard.
  ShardingAttr rooted(ShardingAttr sharding) {
    SmallVector<StringAttr> names, replicated(sharding.getReplicated());
    for (unsigned axis : axes) {
      names.push_back(StringAttr::get(module.getContext(), mesh.axes[axis].name));
      llvm::erase(replicated, names.back());
    }
    return ShardingAttr::get(module.getContext(), sharding.getMesh(), sharding.getDims(), {},
                             /*max=*/false, replicated, names);
  }

  ConstrainOp constrain(Value value, ShardingAttr sharding, Operation *before) {
    OpBuilder b(before);
    auto op = ConstrainOp::create(b, value.getLoc(), value.getType(), value, sharding,
                                  /*boundary=*/true);
    op->setAttr(DistDialect::reasonAttr, reason());
    return op;
  }

  /// The norm reads what the update reads: then one reduction serves both.
  void push(OpOperand &use, ShardingAttr atServer) {
    Value value = use.get();
    if (!pushed.insert(value).second)
      return;
    Operation *op = value.getDefiningOp();
    ConstrainOp there =
        constrain(value, atServer, op ? op->getNextNode() : &value.getParentBlock()->front());
    pushed.insert(there);
    value.replaceAllUsesExcept(there, there);
  }

  ModuleOp module;
  const Mesh &mesh;
  ArrayRef<unsigned> axes;
  llvm::DenseSet<Value> pushed;
};
} // namespace

LogicalResult Seeder::server(ArrayRef<unsigned> axes) {
  return ServerSeeder(module, mesh, axes).run();
}
