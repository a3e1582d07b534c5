//===- NarrowGradients.cpp - in which type gradients are sent ---------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// Propagation has put a reshard where a gradient, a partial sum, is completed: in front of the update, or
// with ZeRO's level 2 and 3 in the function of a layer. It is found from the update, back through what only
// adds, stacks or moves gradients.
//
//===----------------------------------------------------------------------===//
#include "NarrowGradients.h"

#include "Dist/Dist.h"
#include "Dist/Wire.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::dist;

static bool isSum(ReshardOp op) {
  ShardingAttr from = dist::shardingOf(op.getX().getType());
  return from && !from.getMax() && !from.getPartial().empty();
}

namespace {
class GradientWalk {
public:
  GradientWalk(ModuleOp module, StringAttr wire) : symbols(module), wire(wire) {}

  void from(Value value) {
    Operation *op = value.getDefiningOp();
    if (!op || !visited.insert(value).second)
      return;
    if (auto repeat = dyn_cast<train::RepeatOp>(op)) {
      auto callee = symbols.lookup<func::FuncOp>(repeat.getCallee());
      return from(callee.getBody().front().getTerminator()->getOperand(cast<OpResult>(value).getResultNumber()));
    }
    auto reshard = dyn_cast<ReshardOp>(op);
    // Sums along other axes may be behind it, such as those of each microbatch.
    if (reshard && isSum(reshard))
      reshard->setAttr(wireAttr, wire);
    // What a sum over tokens is of is no gradient of a parameter any more.
    bool keepsShape = op->getNumOperands() == 1 && isa<train::KernelOpInterface>(op) && !isa<train::SumOpInterface>(op);
    if (reshard || keepsShape || isa<train::ReshapeOp, train::AddOp, train::AccumulateOp>(op))
      for (Value operand : op->getOperands())
        from(operand);
  }

private:
  SymbolTable symbols;
  StringAttr wire;
  DenseSet<Value> visited;
};
} // namespace

LogicalResult dist::narrowGradients(ModuleOp module) {
  auto wire = module->getAttrOfType<StringAttr>(gradientWireAttr);
  if (!wire)
    return success();
  if (wire != "bf16" && wire != "fp8")
    return module.emitError() << gradientWireAttr << " is '" << wire.getValue() << "'; gradients are sent in bf16 or fp8";
  GradientWalk walk(module, wire);
  module.walk([&](train::UpdateOpInterface update) { walk.from(update.getGradientMutable().get()); });
  module->removeAttr(gradientWireAttr);
  return success();
}
