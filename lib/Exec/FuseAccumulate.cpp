//===- FuseAccumulate.cpp - exec-fuse-accumulate ----------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Exec/Passes.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::exec;

namespace meshwright::exec {
#define GEN_PASS_DEF_EXECFUSEACCUMULATE
#include "Exec/Passes.h.inc"
} // namespace meshwright::exec

static bool isZero(Value value) {
  auto fill = value.getDefiningOp<train::FillOp>();
  return fill && fill.getValue().isZero();
}

/// Makes `other` the init of the op that computes `term`, if that is one which
/// accumulates, right before `sum`, their sum.
static bool fuseTerm(Operation *sum, Value term, Value other) {
  auto producer = term.getDefiningOp<train::AccumulatingOpInterface>();
  // Where `other` has more readers, adding to it in place would need a copy.
  if (!producer || !term.hasOneUse() || !other.hasOneUse() || term.getType() != other.getType() ||
      producer->getBlock() != sum->getBlock() || !producer.getInitMutable().empty())
    return false;
  producer.getInitMutable().assign(other);
  producer->moveBefore(sum);
  sum->getResult(0).replaceAllUsesWith(term);
  sum->erase();
  return true;
}

static void fuse(Operation *op) {
  if (auto accumulating = dyn_cast<train::AccumulatingOpInterface>(op)) {
    MutableOperandRange init = accumulating.getInitMutable();
    if (!init.empty() && isZero(init[0].get()))
      init.clear();
    return;
  }
  if (!isa<train::AddOp, train::AccumulateOp>(op) || op->getOperand(0).getType() != op->getResult(0).getType())
    return;
  Value left = op->getOperand(0), right = op->getOperand(1);
  if (left.getType() == right.getType())
    for (auto [zero, value] : {std::pair(left, right), std::pair(right, left)})
      if (isZero(zero)) {
        op->getResult(0).replaceAllUsesWith(value);
        op->erase();
        return;
      }
  // The first term is the accumulator, or the sum so far.
  if (!fuseTerm(op, right, left))
    fuseTerm(op, left, right);
}

namespace {
struct ExecFuseAccumulate : exec::impl::ExecFuseAccumulateBase<ExecFuseAccumulate> {
  void runOnOperation() override {
    getOperation().walk([](func::FuncOp function) {
      if (function.isExternal())
        return;
      for (Operation &op : llvm::make_early_inc_range(function.getBody().front()))
        fuse(&op);
    });
  }
};
} // namespace
