//===- Verify.cpp - checks that every use fits its op's factor table --------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Dist/Passes.h"
#include "Dist/Programs.h"
#include "Dist/Propagation/FactorAxes.h"
#include "Dist/Propagation/ValueBinding.h"
#include "Train/Sizes.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::dist;

namespace meshwright::dist {
#define GEN_PASS_DEF_DISTVERIFY
#include "Dist/Passes.h.inc"
} // namespace meshwright::dist

namespace {
class Verifier {
public:
  Verifier(MeshOp meshOp) : meshName(FlatSymbolRefAttr::get(meshOp)), mesh(meshOp.getMesh()) {}

  LogicalResult run(ModuleOp module) {
    FailureOr<Structure> structure = structureOf(module);
    if (failed(structure))
      return failure();
    // Report all defects, in program order, but only once types can be read.
    bool typed = true, sound = true;
    for (func::FuncOp function : structure->functions)
      function.walk([&](Block *block) {
        for (BlockArgument argument : block->getArguments())
          typed &= succeeded(checkType(argument));
        for (Operation &op : *block)
          for (Value result : op.getResults())
            typed &= succeeded(checkType(result));
      });
    for (auto variable : module.getOps<train::VariableOp>())
      typed &= succeeded(checkType(variable, variable.getType(), "variable"));
    if (!typed)
      return failure();
    for (func::FuncOp function : structure->functions)
      function.walk([&](train::ShardingRuleOpInterface op) {
        sound &= succeeded(checkOp(op, op.getShardingRule()));
      });
    for (ValueBinding &h : structure->bindings)
      sound &= succeeded(checkBinding(h));
    for (auto [argument, result] : structure->carried)
      if (argument.getType() != result.getType()) {
        result.getDefiningOp()->emitOpError("carries ")
            << result.getType() << ", but " << describe(argument) << " is " << argument.getType();
        sound = false;
      }
    for (auto [value, variable] : structure->reads)
      if (value.getType() != variable.getType()) {
        value.getDefiningOp()->emitOpError("has type ")
            << value.getType() << " but the variable is " << variable.getType();
        sound = false;
      }
    return success(sound);
  }

private:
  LogicalResult checkType(Operation *op, Type type, const Twine &what) {
    ShardingAttr sharding = dist::shardingOf(type);
    auto error = [&] { return op->emitOpError() << what << " of type " << type << " "; };
    if (!sharding)
      return error() << "has no sharding; dist-propagate gives every tensor one";
    if (sharding.getMesh() != meshName)
      return error() << "is on " << sharding.getMesh() << ", but the mesh is " << meshName;
    return sharding.verifyAxes(mesh, error);
  }

  LogicalResult checkType(Value value) {
    Operation *op = value.getDefiningOp();
    if (!op)
      op = cast<BlockArgument>(value).getOwner()->getParentOp();
    return checkType(op, value.getType(), describe(value));
  }

  Sharding of(Value value) { return dist::shardingOf(value.getType()).on(mesh); }

  LogicalResult checkOp(Operation *op, const ShardingRule &rule) {
    // The axes of each factor, as the first tensor that has it says.
    FactorAxes axes(rule.factors.size());
    SmallVector<std::string> saidBy(rule.factors.size());
    SmallVector<std::pair<std::string, const TensorFactors *>> tensors;
    SmallVector<Sharding> shardings;
    for (auto [i, value] : llvm::enumerate(op->getOperands())) {
      tensors.push_back({("operand " + Twine(i)).str(), &rule.operands[i]});
      shardings.push_back(of(value));
    }
    for (auto [i, value] : llvm::enumerate(op->getResults())) {
      tensors.push_back({("result " + Twine(i)).str(), &rule.results[i]});
      shardings.push_back(of(value));
    }
    for (auto [named, sharding] : llvm::zip(tensors, shardings)) {
      auto &[name, tensor] = named;
      bool complete = true;
      FactorAxes own = factorAxesOf(rule, *tensor, sharding, mesh, &complete);
      if (!complete)
        return op->emitOpError() << name << " is " << sharding.str(mesh)
                                 << ", which its dimensions cannot be sharded into (rule: "
                                 << rule.str() << ")";
      for (const auto &dim : tensor->dims)
        for (unsigned f : dim) {
          if (rule.factors[f].whole && !own[f].empty())
            return op->emitOpError() << "needs factor " << rule.factors[f].name << " of " << name
                                     << " whole, but it is sharded along " << mesh.str(own[f])
                                     << " (rule: " << rule.str() << ")";
          if (saidBy[f].empty()) {
            saidBy[f] = name;
            axes[f] = own[f];
          } else if (axes[f] != own[f]) {
            return op->emitOpError()
                   << "factor " << rule.factors[f].name << " is sharded along " << mesh.str(axes[f])
                   << " in " << saidBy[f] << " but along " << mesh.str(own[f]) << " in " << name
                   << " (rule: " << rule.str() << ")";
          }
        }
    }
    AxisMask root = 0;
    for (auto [i, sharding] : llvm::enumerate(shardings)) {
      // What has no operands is made wherever it is wanted.
      if (i == 0)
        root = maskOf(sharding.root);
      if (maskOf(sharding.root) != root)
        return op->emitOpError() << tensors[i].first << " is " << sharding.str(mesh) << " but "
                                 << tensors[0].first << " " << shardings[0].str(mesh)
                                 << "; where only the root has one of them it computes alone";
    }
    AxisMask used = 0;
    for (auto [factor, sharded] : llvm::zip(rule.factors, axes)) {
      if (AxisMask twice = used & maskOf(sharded))
        return op->emitOpError() << "uses axis " << mesh.str(axesOf(twice)) << " for factor "
                                 << factor.name << " and for another one";
      used |= maskOf(sharded);
    }
    return checkPartial(op, rule, axes, used);
  }

  LogicalResult checkPartial(Operation *op, const ShardingRule &rule, const FactorAxes &axes,
                             AxisMask used) {
    AxisMask through = 0, additive = 0;
    bool anyAdditive = false;
    for (auto [i, value] : llvm::enumerate(op->getOperands())) {
      Sharding sharding = of(value);
      AxisMask partial = maskOf(sharding.partial);
      const TensorFactors &tensor = rule.operands[i];
      if (partial && sharding.max)
        return op->emitOpError() << "reads " << describe(value)
                                 << ", which is a partial maximum, as if it were complete";
      if (tensor.additive) {
        if (anyAdditive && partial != additive)
          return op->emitOpError() << "adds " << describe(value) << ", which is partial over "
                                   << mesh.str(axesOf(partial)) << ", to a term partial over "
                                   << mesh.str(axesOf(additive));
        anyAdditive = true;
        additive = partial;
      } else if (partial && !tensor.linear) {
        return op->emitOpError() << "reads " << describe(value) << ", which is partial over "
                                 << mesh.str(sharding.partial) << ", as if it were complete";
      }
      if (tensor.linear && (partial & through))
        return op->emitOpError() << "multiplies two values that are partial over "
                                 << mesh.str(axesOf(partial & through));
      if (partial & used)
        return op->emitOpError() << "shards a factor along " << mesh.str(axesOf(partial & used))
                                 << ", over which " << describe(value) << " is partial";
      through |= partial;
    }
    bool zero = op->getNumOperands() == 0;
    for (auto [i, value] : llvm::enumerate(op->getResults())) {
      AxisMask want = through | partialFromReduction(rule, i, axes);
      Sharding have = of(value);
      if (zero && !have.partial.empty() && isZero(op))
        continue;
      auto say = [&](AxisMask partial, bool max) {
        return partial ? (max ? "a partial maximum over " : "partial over ") +
                             mesh.str(axesOf(partial))
                       : std::string("complete");
      };
      AxisMask partial = maskOf(have.partial);
      if (partial != want || (partial && have.max != rule.max))
        return op->emitOpError() << "result " << i << " is " << say(partial, have.max)
                                 << ", but the op makes it " << say(want, rule.max);
    }
    return success();
  }

  /// Zeros are terms of a sum that is zero.
  static bool isZero(Operation *op) {
    auto fill = dyn_cast<train::FillOp>(op);
    return fill && fill.getValue().isZero();
  }

  LogicalResult checkBinding(ValueBinding &h) {
    Operation *op = h.use->getOwner();
    Sharding used = of(h.use->get());
    auto from = [&] { return op->emitOpError() << "passes " << describe(h.use->get()) << ", "; };
    if (!h.to && !h.variable) {
      StringRef where = isa<train::RepeatOp>(op) ? "as the number of iterations," : "out of the program";
      if (!used.partial.empty())
        return from() << "which is partial over " << mesh.str(used.partial) << ", " << where
                      << " as if it were complete";
      if (!used.root.empty())
        return from() << "which only the root over " << mesh.str(used.root) << " has, " << where
                      << " as if all had it";
      return success();
    }
    if (h.leading > 0) {
      if (!used.dims[0].empty())
        return from() << "sharded along " << mesh.str(used.dims[0])
                      << " in its first dimension, to be taken slices of";
      used.dims.erase(used.dims.begin());
    } else if (h.leading < 0) {
      used.dims.insert(used.dims.begin(), Axes());
    }
    Type type = h.to ? h.to.getType() : h.variable.getType();
    Sharding wanted = dist::shardingOf(type).on(mesh);
    if (used != wanted)
      return from() << "which is " << used.str(mesh) << ", to "
                    << (h.to ? describe(h.to) : "@" + h.variable.getSymName().str())
                    << ", which is " << wanted.str(mesh);
    return success();
  }

  FlatSymbolRefAttr meshName;
  Mesh mesh;
};

/// What the module says of its sizes against the inputs of its programs.
static LogicalResult checkSizes(ModuleOp module) {
  for (auto function : module.getOps<func::FuncOp>())
    for (BlockArgument argument : function.getArguments())
      if (function.isPublic() && train::isByToken(train::inputName(argument)) &&
          failed(train::verifySizes(module, function, train::inputName(argument),
                                    cast<RankedTensorType>(argument.getType()).getShape())))
        return failure();
  return success();
}

class VerifyPass : public dist::impl::DistVerifyBase<VerifyPass> {
  void runOnModule() override {
    MeshOp mesh = lookupMesh(getOperation());
    if (!mesh || failed(Verifier(mesh).run(getOperation())) ||
        failed(dist::verifyStorage(getOperation())) || failed(checkSizes(getOperation())))
      signalPassFailure();
  }
};
} // namespace
