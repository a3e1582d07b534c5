//===- ZeroSeeds.cpp - sharded storage as seeds -----------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// ZeRO (Rajbhandari et al. 2020), FSDP (Zhao et al. 2023): what ranks that compute
// with the same parameters need not store twice. A tensor is stored as it is computed
// with and, beyond that, cut along the data axes. Updates run on what is stored.
//
//   stage 1  optimizer states; the gradient, summed, and the parameter go into that
//            sharding before the update, the parameter back after it
//   stage 2  also the accumulators: each microbatch's gradient goes into it
//   stage 3  also parameters: every use gets the whole one, layer by layer
//
// A narrow parameter's f32 copy, its master, is one more state. It is what is updated;
// its parts are rounded, and what devices send each other has the narrow type.
//
// Each change is a `dist.constrain` with `boundary`, so that the cut for storage does
// not spread into what is computed.
//
//===----------------------------------------------------------------------===//
#include "Seeds.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::dist;

ShardingAttr dist::withoutLayers(ShardingAttr sharding) {
  return ShardingAttr::get(sharding.getContext(), sharding.getMesh(),
                           sharding.getDims().drop_front(), sharding.getPartial(),
                           sharding.getMax(), sharding.getReplicated(), sharding.getRoot());
}

SmallVector<Update> dist::updatesOf(ModuleOp module) {
  SymbolTable symbols(module);
  SmallVector<Update> updates;
  module.walk([&](train::UpdateOpInterface op) {
    auto get = op.getParameterMutable().get().getDefiningOp<train::GetOp>();
    if (!get)
      return;
    auto variable = symbols.lookup<train::VariableOp>(get.getVariable());
    if (auto of = variable.getOf())
      variable = symbols.lookup<train::VariableOp>(*of);
    updates.push_back({op, variable});
  });
  return updates;
}

void dist::forEachRawGradient(ModuleOp module, OpOperand &use,
                              function_ref<void(OpOperand &, bool)> visit) {
  SymbolTable symbols(module);
  auto go = [&](auto &self, OpOperand &at, bool sliced) -> void {
    Operation *op = at.get().getDefiningOp();
    if (auto accumulate = dyn_cast_or_null<train::AccumulateOp>(op))
      return self(self, accumulate.getValueMutable(), sliced);
    auto repeat = dyn_cast_or_null<train::RepeatOp>(op);
    if (!repeat)
      return visit(at, sliced);
    unsigned i = cast<OpResult>(at.get()).getResultNumber();
    auto callee = symbols.lookup<func::FuncOp>(repeat.getCallee());
    self(self, callee.getBody().front().getTerminator()->getOpOperand(i),
         sliced || i >= repeat.getCarry().size());
  };
  go(go, use, false);
}

namespace {
class ZeroSeeder {
public:
  ZeroSeeder(ModuleOp module, const Mesh &mesh, int64_t stage, ArrayRef<unsigned> axes)
      : module(module), mesh(mesh), stage(stage), axes(axes), symbols(module),
        context(module.getContext()) {}

  LogicalResult run() {
    SmallVector<Update> updates = updatesOf(module);
    for (Update &update : updates)
      computedAs[update.parameter] =
          update.parameter->getAttrOfType<ShardingAttr>(DistDialect::seedAttr);
    for (Update &update : updates) {
      train::VariableOp parameter = update.parameter;
      ShardingAttr computed = computedAs.lookup(parameter);
      FailureOr<ShardingAttr> stored = storageOf(parameter, computed);
      if (failed(stored))
        return failure();
      for (auto variable : module.getOps<train::VariableOp>())
        if (variable.getOf() && *variable.getOf() == parameter.getSymName())
          seed(variable, *stored);
      gradient(update, *stored);
      if (stage < 3) {
        OpOperand &use = update.op.getParameterMutable();
        if (use.get().getDefiningOp<train::GetOp>().getVariable() == parameter.getSymName())
          use.set(constrain(use.get(), *stored, update.op));
        module.walk([&](train::SetOp set) {
          if (set.getVariable() == parameter.getSymName())
            set.getValueMutable().assign(constrain(set.getValue(), computed, set));
        });
        continue;
      }
      seed(parameter, *stored);
      // Uses that compute get the parameter as it is computed with.
      module.walk([&](train::GetOp get) {
        if (get.getVariable() == parameter.getSymName())
          gather(get, computed, update.op);
      });
    }
    return success();
  }

private:
  void seed(Operation *op, ShardingAttr sharding) {
    op->setAttr(DistDialect::seedAttr, sharding);
    op->setAttr(DistDialect::reasonAttr, reason());
  }
  StringAttr reason() { return StringAttr::get(context, "ZeRO stage " + std::to_string(stage)); }

  Value constrain(Value value, ShardingAttr sharding, Operation *before) {
    OpBuilder b(before);
    auto op = ConstrainOp::create(b, value.getLoc(), value.getType(), value, sharding,
                                  /*boundary=*/true);
    op->setAttr(DistDialect::reasonAttr, reason());
    return op;
  }

  /// The first dimension that `n` devices divide beyond those that compute with parts
  /// of it, never the layers'; -1 if there is none.
  int64_t storedDim(train::VariableOp variable, ShardingAttr computed, int64_t n) {
    ArrayRef<int64_t> shape = variable.getTensorType().getShape();
    Sharding sharding = computed.on(mesh);
    for (size_t d = variable.getStacked(); d < shape.size(); ++d)
      if (shape[d] % (mesh.size(sharding.dims[d]) * n) == 0)
        return d;
    return -1;
  }

  /// Numbers of devices that divide every parameter.
  std::string whatWorks() {
    std::string works;
    for (int64_t n = 2; n <= 4096; ++n)
      if (llvm::all_of(computedAs, [&](auto &entry) {
            return storedDim(cast<train::VariableOp>(entry.first), entry.second, n) >= 0;
          }))
        works += (works.empty() ? "" : ", ") + std::to_string(n);
    return works.empty() ? "no number of devices works for this model: use --zero 0"
                         : "numbers of devices that work for this model: " + works;
  }

  /// The data axes added to the first dimension they divide.
  FailureOr<ShardingAttr> storageOf(train::VariableOp variable, ShardingAttr computed) {
    ArrayRef<int64_t> shape = variable.getTensorType().getShape();
    int64_t n = mesh.size(axes);
    if (int64_t d = storedDim(variable, computed, n); d >= 0) {
      SmallVector<DimAttr> dims(computed.getDims());
      SmallVector<StringAttr> cut(dims[d].getAxes());
      for (unsigned axis : axes)
        cut.push_back(StringAttr::get(context, mesh.axes[axis].name));
      dims[d] = DimAttr::get(context, cut, false);
      return ShardingAttr::get(context, computed.getMesh(), dims, {}, false);
    }
    InFlightDiagnostic error = variable.emitError("parameter @")
                               << variable.getSymName() << " of shape [";
    llvm::interleaveComma(shape.drop_front(variable.getStacked()), error);
    return error
           << "] has no dimension that divides by the " << n << " devices along " << mesh.str(axes)
           << " and the axes that cut it already, as --zero " << stage
           << " needs; " << whatWorks();
  }

  /// What a value goes back to for computing: as its seed says; dimensions the seed
  /// leaves open get no data axes.
  ShardingAttr whole(ShardingAttr computed) {
    if (!computed.hasOpenDim())
      return computed;
    SmallVector<StringAttr> names(computed.getReplicated());
    for (unsigned axis : axes)
      if (auto name = StringAttr::get(context, mesh.axes[axis].name);
          !llvm::is_contained(names, name))
        names.push_back(name);
    return ShardingAttr::get(context, computed.getMesh(), computed.getDims(), {}, false, names);
  }

  void gradient(Update &update, ShardingAttr stored) {
    OpOperand &use = update.op.getGradientMutable();
    if (stage == 1) {
      // The norm reads what the update reads: then one reduction serves both.
      Value value = use.get();
      if (ConstrainOp done = constrained.lookup(value)) {
        use.set(done);
        return;
      }
      Value cut = constrain(value, stored, nextOf(value));
      constrained[value] = cast<ConstrainOp>(cut.getDefiningOp());
      value.replaceAllUsesExcept(cut, cut.getDefiningOp());
      return;
    }
    SmallVector<std::pair<OpOperand *, bool>> raw;
    forEachRawGradient(module, use, [&](OpOperand &at, bool sliced) {
      raw.push_back({&at, sliced});
    });
    for (auto [at, sliced] : raw) {
      Value value = at->get();
      Value cut = constrain(value, sliced ? withoutLayers(stored) : stored, nextOf(value));
      value.replaceAllUsesExcept(cut, cut.getDefiningOp());
    }
  }

  static Operation *nextOf(Value value) {
    Operation *op = value.getDefiningOp();
    return op ? op->getNextNode() : &value.getParentBlock()->front();
  }

  /// Gives all uses of a stored parameter but the update the whole one: in a layer
  /// that gets slices, inside it.
  void gather(Value value, ShardingAttr computed, train::UpdateOpInterface update) {
    SmallVector<OpOperand *> here;
    for (OpOperand &use : value.getUses()) {
      if (&use == &update.getParameterMutable())
        continue;
      auto repeat = dyn_cast<train::RepeatOp>(use.getOwner());
      unsigned i = use.getOperandNumber();
      if (!repeat || i < repeat.getCarry().size() ||
          i >= repeat.getCarry().size() + repeat.getEach().size()) {
        here.push_back(&use);
        continue;
      }
      auto layer = symbols.lookup<func::FuncOp>(repeat.getCallee());
      BlockArgument argument = layer.getArgument(repeat.getCalleeArgument(i));
      if (gathered.insert(argument).second)
        gather(argument, withoutLayers(computed), update);
    }
    if (here.empty())
      return;
    Operation *first = here.front()->getOwner();
    for (OpOperand *use : here)
      if (use->getOwner()->isBeforeInBlock(first))
        first = use->getOwner();
    Value all = constrain(value, whole(computed), first);
    for (OpOperand *use : here)
      use->set(all);
  }

  ModuleOp module;
  const Mesh &mesh;
  int64_t stage;
  ArrayRef<unsigned> axes;
  SymbolTable symbols;
  MLIRContext *context;
  /// Of each parameter, what its seed was before.
  llvm::MapVector<Operation *, ShardingAttr> computedAs;
  llvm::DenseMap<Value, ConstrainOp> constrained;
  llvm::DenseSet<Value> gathered;
};
} // namespace

LogicalResult Seeder::zero(int64_t stage, ArrayRef<unsigned> axes) {
  if (stage == 0 || mesh.size(axes) == 1)
    return success();
  return ZeroSeeder(module, mesh, stage, axes).run();
}
