//===- FuseAccumulate.cpp - exec-fuse-accumulate ----------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Exec/Passes.h"

#include "Dist/Dist.h"

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

/// The operand from which on a loop adds up `value`, if `value` is such a sum and begins at zero.
static OpOperand *beginningOf(Value value) {
  auto repeat = value.getDefiningOp<train::RepeatOp>();
  if (!repeat || train::roleOf(repeat) != train::Role::Loss)
    return nullptr;
  unsigned number = cast<OpResult>(value).getResultNumber();
  if (number >= repeat.getCarry().size() || !isZero(repeat.getCarry()[number]))
    return nullptr;
  return &repeat.getCarryMutable()[number];
}

/// Makes `other` what the op that computes `term` adds to, if that is one which
/// accumulates; of a chain of such ops, the first. Then the sum is `term`.
static bool fuseTerm(Operation *sum, Value term, Value other) {
  // Where `other` has more readers, adding to it in place would need a copy.
  if (!other.hasOneUse() || term.getType() != other.getType())
    return false;
  SmallVector<train::AccumulatingOpInterface> chain;
  OpOperand *loop = nullptr;
  for (Value value = term;;) {
    if (!value.hasOneUse() || !value.getDefiningOp() ||
        value.getDefiningOp()->getBlock() != sum->getBlock())
      return false;
    if ((loop = beginningOf(value)))
      break;
    auto producer = value.getDefiningOp<train::AccumulatingOpInterface>();
    if (!producer)
      return false;
    chain.push_back(producer);
    MutableOperandRange init = producer.getInitMutable();
    if (init.empty())
      break;
    value = init[0].get();
  }
  // Computed while `other` is on its way, they need not wait for it.
  Operation *after = other.getDefiningOp();
  Operation *first = loop ? loop->getOwner() : chain.back().getOperation();
  bool isLater = after && after->getBlock() == sum->getBlock() && first->isBeforeInBlock(after);
  if (isa_and_nonnull<dist::CollectiveOpInterface>(after) && after->getBlock() == sum->getBlock() &&
      !isLater)
    return false;
  if (loop && isLater)
    return false;
  // Where they are, if `other` is there already: what they read dies early.
  if (loop)
    after = first;
  for (train::AccumulatingOpInterface producer : llvm::reverse(chain)) {
    if (after && after->getBlock() == producer->getBlock() && producer->isBeforeInBlock(after))
      producer->moveAfter(after);
    after = producer;
  }
  if (loop) {
    Operation *zeros = loop->get().getDefiningOp();
    loop->set(other);
    if (zeros->use_empty())
      zeros->erase();
  } else {
    chain.back().getInitMutable().assign(other);
  }
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
  if (!isa<train::AddOp, train::AccumulateOp>(op) ||
      op->getOperand(0).getType() != op->getResult(0).getType())
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
  void runOnModule() override {
    getOperation().walk([](func::FuncOp function) {
      if (function.isExternal())
        return;
      for (Operation &op : llvm::make_early_inc_range(function.getBody().front()))
        fuse(&op);
    });
  }
};
} // namespace
