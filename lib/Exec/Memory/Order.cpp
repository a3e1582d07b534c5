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

static bool isPermutationOfTensors(Operation *op) {
  auto collective = dyn_cast_or_null<dist::CollectiveOpInterface>(op);
  return collective && collective.isPermutation();
}

/// Whether `op` computes with a part that goes around a ring, and another part is sent before
/// `target`. If `op` moved there, a device would hold both parts.
static bool leavesRing(Operation *op, Operation *target) {
  bool inRing = llvm::any_of(op->getOperands(), [](Value operand) {
    return isPermutationOfTensors(operand.getDefiningOp()) ||
           llvm::any_of(operand.getUsers(), isPermutationOfTensors);
  });
  for (Operation *next = op; inRing && next != target; next = next->getNextNode())
    if (isPermutationOfTensors(next))
      return true;
  return false;
}

//===--- how much a block holds ---------------------------------------------------------===//

namespace {
/// A value with memory of its own in a block, from one op to another.
struct Held {
  Value value;
  Operation *first, *last;
  int64_t bytes;
};
} // namespace

static SmallVector<Held> heldIn(Block &block) {
  SmallVector<Held> held;
  for (Operation &op : block)
    for (Value result : op.getResults()) {
      if (isView(&op) || isKeptAnyway(result, &block) || !isa<RankedTensorType>(result.getType()))
        continue;
      Held entry{result, &op, &op, bytesOf(result.getType())};
      bool hasMemory = false;
      SmallVector<Value> views{result};
      for (unsigned i = 0; i < views.size(); ++i)
        for (Operation *user : views[i].getUsers()) {
          Operation *at = block.findAncestorOpInBlock(*user);
          hasMemory |= isa<train::SetOp>(user) || at->hasTrait<OpTrait::IsTerminator>();
          if (isBefore(entry.last, at))
            entry.last = at;
          if (isView(user))
            llvm::append_range(views, user->getResults());
        }
      if (!hasMemory)
        held.push_back(entry);
    }
  return held;
}

/// The bytes that are live at `op`. A loop empties stacks that nobody reads after it, and fills
/// others, slot by slot, so that these need not be there as a whole at once.
static int64_t liveAt(Operation *op, ArrayRef<Held> all) {
  auto loop = dyn_cast<LoopOp>(op);
  auto isOneOf = [](Value value, ValueRange operands) {
    return llvm::any_of(operands, [&](Value operand) { return viewed(operand) == value; });
  };
  int64_t before = 0, behind = 0; // in a loop's first iteration, and in its last
  for (const Held &held : all) {
    if (isBefore(op, held.first) || isBefore(held.last, op))
      continue;
    int64_t slot = loop ? held.bytes / std::max<int64_t>(1, loop.getCount()) : 0;
    bool fills = loop && llvm::is_contained(loop.getStacks(), held.value);
    bool ends = loop && held.last == op && held.first != op;
    if (ends && isOneOf(held.value, loop.getCarry()))
      continue; // its memory is the result's
    bool empties = ends && isOneOf(held.value, loop.getEach());
    before += fills ? slot : held.bytes;
    behind += empties ? slot : held.bytes;
  }
  return std::max(before, behind);
}

/// Whether the block would hold more at its most between `op` and `target` if `op`, which makes
/// `made` bytes, moved there, and the values that `kept` views lived as long.
static bool raisesMost(Operation *op, Operation *target, int64_t made, ArrayRef<Value> kept) {
  if (kept.empty())
    return false;
  SmallVector<Held> all = heldIn(*op->getBlock());
  auto isKept = [&](const Held &held) {
    return llvm::any_of(kept, [&](Value operand) { return viewed(operand) == held.value; });
  };
  int64_t now = liveAt(op, all), then = 0;
  for (Operation *at = op; at != target; at = at->getNextNode()) {
    Operation *next = at->getNextNode();
    int64_t live = liveAt(next, all), more = 0;
    // A stack that a loop would have emptied stays whole, too.
    for (const Held &held : all)
      if ((isBefore(held.last, next) || (held.last == next && isa<LoopOp>(next))) && isKept(held))
        more += held.bytes;
    now = std::max(now, live);
    then = std::max(then, live + more - (next == target ? 0 : made));
  }
  return then > now;
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
    SmallVector<Value> values; // whose bytes are kept
    for (Value result : op->getResults())
      made += bytesOf(result.getType());
    for (Value operand : llvm::SmallSetVector<Value, 4>(op->operand_begin(), op->operand_end())) {
      Operation *last = userOf(operand, block, /*first=*/false, op);
      if (!isKeptAnyway(operand, block) && (!last || isBefore(last, target)))
        values.push_back(operand);
    }
    for (Value operand : values)
      kept += bytesOf(operand.getType());
    if (made <= kept)
      return;
    // A loop on the way frees memory while it runs, in which there may be room for the result.
    bool passesLoop = false;
    for (Operation *next = op; next != target; next = next->getNextNode())
      passesLoop |= isa<LoopOp>(next);
    if (passesLoop && raisesMost(op, target, made, values))
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
