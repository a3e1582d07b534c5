//===- Order.cpp - exec-order -----------------------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Exec/Passes.h"
#include "InsertCopies.h"

#include "Dist/Dist.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::exec;

namespace meshwright::exec {
#define GEN_PASS_DEF_EXECORDER
#include "Exec/Passes.h.inc"
} // namespace meshwright::exec

static bool isBefore(Operation *a, Operation *b) { return a != b && a->isBeforeInBlock(b); }

/// The first or last op of `block` that uses `value`, apart from `except`; null if
/// there is none.
static Operation *userOf(Value value, Block *block, bool first, Operation *except = nullptr) {
  Operation *found = nullptr;
  for (Operation *user : value.getUsers()) {
    Operation *at = block->findAncestorOpInBlock(*user);
    if (at && at != except && (!found || (first ? isBefore(at, found) : isBefore(found, at))))
      found = at;
  }
  return found;
}

/// Whether somebody holds the value's memory whatever this block does.
static bool isKeptAnyway(Value value, Block *block) {
  if (isView(value.getDefiningOp()))
    return isKeptAnyway(value.getDefiningOp()->getOperand(0), block);
  return value.getParentBlock() != block || isa_and_nonnull<train::GetOp>(value.getDefiningOp()) ||
         (isa<BlockArgument>(value) && !isa<LoopOp>(block->getParentOp()));
}

static bool isPermutation(Operation *op) {
  auto collective = dyn_cast_or_null<dist::CollectiveOpInterface>(op);
  return collective && collective.isPermutation();
}

/// Whether `op` computes with a part that goes around a ring, and another part is sent before `target`.
/// If `op` moved there, a device would hold both parts.
static bool leavesRing(Operation *op, Operation *target) {
  bool inRing = llvm::any_of(op->getOperands(), [](Value operand) {
    return isPermutation(operand.getDefiningOp()) ||
           llvm::any_of(operand.getUsers(), isPermutation);
  });
  for (Operation *next = op; inRing && next != target; next = next->getNextNode())
    if (isPermutation(next))
      return true;
  return false;
}

static void sink(Operation *op) {
  Block *block = op->getBlock();
  if (op->getNumResults() == 0 || op->getNumRegions() || !isMemoryEffectFree(op) ||
      isa<dist::CollectiveOpInterface, IndexOp>(op))
    return;
  Operation *target = nullptr;
  for (Value result : op->getResults())
    if (Operation *user = userOf(result, block, /*first=*/true))
      if (!target || isBefore(user, target))
        target = user;
  // What ends in a variable, a slot, an output or a larger whole has its memory already.
  if (!target || target == op->getNextNode() || target->hasTrait<OpTrait::IsTerminator>() ||
      isa<train::SetOp>(target) || leavesRing(op, target) ||
      llvm::any_of(op->getResults(), [](Value result) { return writtenInto(result); }))
    return;
  if (!isView(op)) {
    int64_t made = 0, kept = 0;
    for (Value result : op->getResults())
      made += bytesOf(result.getType());
    for (Value operand : llvm::SmallSetVector<Value, 4>(op->operand_begin(), op->operand_end())) {
      Operation *last = userOf(operand, block, /*first=*/false, op);
      if (!isKeptAnyway(operand, block) && (!last || isBefore(last, target)))
        kept += bytesOf(operand.getType());
    }
    if (made <= kept)
      return;
  }
  op->moveBefore(target);
}

static void order(Block &block) {
  SmallVector<Operation *> ops;
  for (Operation &op : block.without_terminator())
    ops.push_back(&op);
  // From the end, so that readers are where they stay.
  for (Operation *op : llvm::reverse(ops))
    sink(op);
}

namespace {
struct ExecOrder : exec::impl::ExecOrderBase<ExecOrder> {
  void runOnModule() override {
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      if (function.isExternal() || function->hasAttr(kernelAttr))
        continue;
      order(function.getBody().front());
      function.walk([](LoopOp loop) { order(loop.getBlock()); });
    }
  }
};
} // namespace
