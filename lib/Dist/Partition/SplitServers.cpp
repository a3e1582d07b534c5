//===- SplitServers.cpp - one program for servers, one for workers ----------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// Partitioned, a value of a root is in everybody's program, and on all devices but
// the root it is nothing. What that makes is nothing either, down to the broadcast
// that gives all of them the root's. The server's program is the whole; a worker's
// lacks these values, the ops that make them and the variables that hold them.
//
//===----------------------------------------------------------------------===//
#include "Dist/Passes.h"
#include "Dist/Programs.h"
#include "Dist/Propagation/FactorAxes.h"
#include "Dist/Propagation/ValueBinding.h"

#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::dist;

namespace meshwright::dist {
#define GEN_PASS_DEF_DISTSPLITSERVERS
#include "Dist/Passes.h.inc"
} // namespace meshwright::dist

namespace {
/// Which values and variables are a root's, in a partitioned module.
class Roots {
public:
  Roots(ModuleOp module, const Mesh &mesh) : mesh(mesh) {
    SymbolTable symbols(module);
    for (auto variable : module.getOps<train::VariableOp>()) {
      auto global = variable->getAttrOfType<TypeAttr>(DistDialect::globalAttr);
      ShardingAttr sharding = global ? dist::shardingOf(global.getValue()) : ShardingAttr();
      if (AxisMask mask = sharding ? maskOf(sharding.on(mesh).root) : 0)
        variables[variable.getSymNameAttr()] = mask;
      axes |= variables.lookup(variable.getSymNameAttr());
    }
    for (auto function : module.getOps<func::FuncOp>())
      if (!function.isExternal())
        for (Operation &op : function.getBody().front())
          visit(op);
  }

  /// All root axes of the module.
  AxisMask all() const { return axes; }
  AxisMask of(Value value) const { return values.lookup(value); }
  AxisMask of(StringAttr variable) const { return variables.lookup(variable); }

  /// Whether the op makes or stores what only a root has.
  bool isRoots(Operation *op) const {
    if (auto set = dyn_cast<train::SetOp>(op))
      return of(set.getVariableAttr().getAttr());
    return !givesToRoot(op) && llvm::any_of(op->getResults(), [&](Value v) { return of(v); });
  }
  /// Ends of the root's part of a program: all devices run these.
  static bool givesToRoot(Operation *op) { return isa<ReduceOp, GatherOp>(op); }
  static bool takesFromRoot(Operation *op) { return isa<BroadcastOp, ScatterOp>(op); }

private:
  void visit(Operation &op) {
    AxisMask mask = 0;
    for (Value operand : op.getOperands())
      mask |= of(operand);
    if (auto get = dyn_cast<train::GetOp>(op))
      mask |= of(get.getVariableAttr().getAttr());
    if (givesToRoot(&op))
      mask |= maskOf(cast<CollectiveOpInterface>(op).getGroupAttr().on(mesh));
    axes |= mask;
    if (takesFromRoot(&op))
      mask &= ~maskOf(cast<CollectiveOpInterface>(op).getGroupAttr().on(mesh));
    for (Value result : op.getResults())
      values[result] = mask;
  }

  const Mesh &mesh;
  AxisMask axes = 0;
  llvm::DenseMap<Value, AxisMask> values;
  llvm::DenseMap<StringAttr, AxisMask> variables;
};

class SplitServersPass : public dist::impl::DistSplitServersBase<SplitServersPass> {
  void runOnModule() override {
    if (failed(run()))
      signalPassFailure();
  }

  LogicalResult run() {
    ModuleOp module = getOperation();
    if (hasPrograms(module))
      return success(); // split otherwise already
    MeshOp meshOp = lookupMesh(module);
    if (!meshOp)
      return failure();
    Mesh mesh = meshOp.getMesh();
    AxisMask axes;
    {
      Roots roots(module, mesh);
      axes = roots.all();
      if (!axes || failed(check(module, mesh, roots)))
        return failure(axes != 0);
      for (auto function : module.getOps<func::FuncOp>())
        if (!function.isExternal() && failed(reduceToRoots(function, mesh, roots)))
          return failure();
    }
    SmallVector<Operation *> everybodys;
    for (Operation &op : *module.getBody())
      if (&op != meshOp)
        everybodys.push_back(&op);
    OpBuilder b = OpBuilder::atBlockEnd(module.getBody());
    auto program = [&](const Twine &name, ArrayRef<NamedAttribute> coordinates) {
      auto nested = ModuleOp::create(b, module.getLoc(), name.str());
      nested->setAttr(coordinatesAttr, b.getDictionaryAttr(coordinates));
      OpBuilder inside = OpBuilder::atBlockEnd(nested.getBody());
      inside.clone(*meshOp);
      for (Operation *op : everybodys)
        inside.clone(*op);
      return nested;
    };
    // Places are boxes of coordinates, so workers beside the server along each axis
    // are a program, the same one.
    SmallVector<NamedAttribute> at;
    bool single = llvm::popcount(axes) == 1;
    SmallVector<ModuleOp> workers;
    for (unsigned axis : axesOf(axes)) {
      SmallVector<Attribute> others;
      for (int64_t i = 1; i < mesh.axes[axis].size; ++i)
        others.push_back(b.getI64IntegerAttr(i));
      SmallVector<NamedAttribute> coordinates = at;
      StringRef name = mesh.axes[axis].name;
      coordinates.push_back(b.getNamedAttr(name, b.getArrayAttr(others)));
      workers.push_back(program(single ? "workers" : "workers." + name, coordinates));
      at.push_back(b.getNamedAttr(name, b.getI64IntegerAttr(0)));
    }
    ModuleOp server = program("server", at);
    server->moveBefore(workers.front());
    for (Operation *op : llvm::reverse(everybodys))
      op->erase();
    for (ModuleOp worker : workers)
      prune(worker, mesh);
    return verifyPrograms(module);
  }

  /// What is a root's must be all of them's alike, stay in one function, and not
  /// leave it.
  LogicalResult check(ModuleOp module, const Mesh &mesh, const Roots &roots) {
    WalkResult result = module.walk([&](Operation *op) {
      for (Value operand : op->getOperands()) {
        AxisMask mask = roots.of(operand);
        if (!mask)
          continue;
        auto error = [&]() -> InFlightDiagnostic {
          return op->emitOpError() << "uses " << describe(operand) << ", which only the root over "
                                   << mesh.str(axesOf(mask)) << " has, ";
        };
        if (mask != roots.all())
          return error() << "in a program whose servers are those over "
                         << mesh.str(axesOf(roots.all())) << "; give all seeds one root",
                 WalkResult::interrupt();
        if (isa<CallOpInterface, train::RepeatOp>(op))
          return error() << "in a call; call it on every device's value, before it goes to the "
                            "root or after it comes back",
                 WalkResult::interrupt();
        if (op->hasTrait<OpTrait::IsTerminator>())
          return error() << "as a result; constrain it to a sharding without root first",
                 WalkResult::interrupt();
      }
      return WalkResult::advance();
    });
    return failure(result.wasInterrupted());
  }

  /// What reaches nobody but the root is reduced or gathered there alone: workers'
  /// programs have no use for it and would leave the collective out.
  LogicalResult reduceToRoots(func::FuncOp function, const Mesh &mesh, const Roots &roots) {
    Block &block = function.getBody().front();
    llvm::DenseSet<Value> wanted; // by workers
    SmallVector<CollectiveOpInterface> unwanted;
    for (Operation &op : llvm::reverse(block)) {
      bool any = llvm::any_of(op.getResults(), [&](Value v) { return wanted.contains(v); });
      if (roots.isRoots(&op) && !any)
        continue;
      bool runs = any || Roots::givesToRoot(&op) || !wouldOpBeTriviallyDead(&op);
      auto collective = dyn_cast<CollectiveOpInterface>(op);
      if (collective && !runs && (maskOf(collective.getGroupAttr().on(mesh)) & roots.all())) {
        unwanted.push_back(collective);
        runs = true; // Workers give the root what it reduces or gathers.
      }
      if (runs && !(Roots::takesFromRoot(&op) && roots.of(op.getOperand(0))))
        wanted.insert(op.operand_begin(), op.operand_end());
    }
    for (CollectiveOpInterface op : unwanted)
      if (failed(reduceToRoot(op, mesh, roots.all())))
        return failure();
    return success();
  }

  LogicalResult reduceToRoot(CollectiveOpInterface op, const Mesh &mesh, AxisMask rootAxes) {
    AxisMask mask = maskOf(op.getGroupAttr().on(mesh));
    OpBuilder b(op);
    auto over = [&](AxisMask axes) {
      return GroupAttr::from(op.getGroupAttr().getMesh(), mesh, axesOf(axes));
    };
    if (auto all = dyn_cast<AllReduceOp>(*op)) {
      for (auto [x, y] : llvm::zip(all.getXs(), all.getYs())) {
        Value sum = x;
        if (AxisMask rest = mask & ~rootAxes)
          sum = AllReduceOp::create(b, op.getLoc(), y.getType(), all.getKind(), sum, over(rest));
        y.replaceAllUsesWith(ReduceOp::create(b, op.getLoc(), y.getType(), all.getKind(), sum,
                                              /*root=*/0, over(mask & rootAxes)));
      }
    } else if (auto all = dyn_cast<AllGatherOp>(*op); all && all.getXs().size() == 1) {
      all.getYs()[0].replaceAllUsesWith(gatherAtRoot(all, mesh, rootAxes));
    } else {
      return op.emitOpError() << "over " << mesh.str(axesOf(mask)) << " makes what only the root over "
                              << mesh.str(axesOf(rootAxes))
                              << " uses; constrain its operand to that root";
    }
    op->erase();
    return success();
  }

  /// Parts of neighbours in the order of the axes first: those over root axes come to the root,
  /// which then gathers with its neighbours in the same program.
  static Value gatherAtRoot(AllGatherOp op, const Mesh &mesh, AxisMask rootAxes) {
    OpBuilder b(op);
    Value parts = op.getXs()[0];
    auto isRoot = [&](unsigned axis) { return bool(maskOf({axis}) & rootAxes); };
    for (Axes left = op.getGroup().on(mesh); !left.empty();) {
      auto end = llvm::find_if(llvm::reverse(left),
                               [&](unsigned axis) { return isRoot(axis) != isRoot(left.back()); });
      Axes inner(end.base(), left.end());
      left.erase(end.base(), left.end());
      auto type = cast<RankedTensorType>(parts.getType());
      SmallVector<int64_t> shape(type.getShape());
      shape[op.getDim()] *= mesh.size(inner);
      type = RankedTensorType::get(shape, type.getElementType());
      auto group = GroupAttr::from(op.getGroup().getMesh(), mesh, inner);
      if (isRoot(inner.front()))
        parts = GatherOp::create(b, op.getLoc(), type, parts, op.getDim(), /*root=*/0, group);
      else
        parts = AllGatherOp::create(b, op.getLoc(), type, parts, op.getDim(), group).getYs()[0];
    }
    return parts;
  }

  /// Takes the root's part out of a worker's program.
  static void prune(ModuleOp worker, const Mesh &mesh) {
    Roots roots(worker, mesh);
    for (auto function : worker.getOps<func::FuncOp>()) {
      if (function.isExternal())
        continue;
      Block &block = function.getBody().front();
      for (Operation &op : llvm::make_early_inc_range(block))
        if (Roots::takesFromRoot(&op) && roots.of(op.getOperand(0)))
          op.setOperand(0, ignored(&op));
      for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
        if (roots.isRoots(&op) || isOpTriviallyDead(&op))
          op.erase();
    }
    for (auto variable : llvm::make_early_inc_range(worker.getOps<train::VariableOp>()))
      if (roots.of(variable.getSymNameAttr()))
        variable.erase();
  }

  /// What a worker puts into a broadcast, where nobody reads it: the old value of the
  /// variable that takes the result, whose memory is there, or else zeros.
  static Value ignored(Operation *op) {
    Type type = op->getOperand(0).getType();
    if (op->getResult(0).hasOneUse())
      if (auto set = dyn_cast<train::SetOp>(*op->getResult(0).user_begin()))
        for (Operation &before : *op->getBlock()) {
          if (&before == op)
            break;
          auto get = dyn_cast<train::GetOp>(before);
          if (get && get.getVariable() == set.getVariable() && get.getType() == type)
            return get;
        }
    OpBuilder b(op);
    return train::FillOp::create(b, op->getLoc(), type, b.getF64FloatAttr(0.0));
  }
};
} // namespace
