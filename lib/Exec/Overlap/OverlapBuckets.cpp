//===- OverlapBuckets.cpp - gradients of a layer as soon as they are there --===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "OverlapBuckets.h"
#include "AsyncTokens.h"
#include "Exec/Memory/Liveness.h"
#include "OverlapLoops.h"

#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::exec;

/// The slot of `stack` that `op` uses, where it uses nothing else of it; else null.
static SlotOp slotOf(Operation *op, Value stack) {
  SlotOp found;
  for (Value operand : op->getOperands()) {
    SlotOp slot;
    while (isa_and_nonnull<SlotOp, ViewOp, WindowOp>(operand.getDefiningOp())) {
      slot = operand.getDefiningOp<SlotOp>();
      operand = operand.getDefiningOp()->getOperand(0);
    }
    if (operand != stack)
      continue;
    if (!slot || (found && found.getIndex() != slot.getIndex()))
      return {};
    found = slot;
  }
  return found;
}

/// The loop each iteration of which leaves its own slot of `stack` as `op`, which comes
/// later in the block of the loop or of one around it, finds it; or null. Of loops that run as often as
/// memory says no iteration is known to be the last, so what is left behind them is not known inside.
static LoopOp loopThatFills(Value stack, Operation *op, const ProgramLiveness &liveness) {
  // The last one before `op`.
  Operation *last = nullptr;
  for (OpAccess &access : liveness.accesses(stack))
    if (Operation *at = op->getBlock()->findAncestorOpInBlock(*access.op);
        at && at != op && at->isBeforeInBlock(op) && (!last || last->isBeforeInBlock(at)))
      last = at;
  while (auto loop = dyn_cast_or_null<LoopOp>(last)) {
    if (loop.getTimes())
      return {};
    Operation *inside = nullptr;
    bool ownSlots = true;
    for (OpAccess &access : liveness.accesses(stack)) {
      Operation *at = loop.getBlock().findAncestorOpInBlock(*access.op);
      if (!at)
        continue;
      SlotOp slot = slotOf(access.op, stack);
      ownSlots &= slot && slot.getIndex() == loop.getIndex();
      if (!inside || inside->isBeforeInBlock(at))
        inside = at;
    }
    if (ownSlots)
      return int64_t(loop.getCount()) == cast<MemRefType>(stack.getType()).getDimSize(0) ? loop
                                                                                         : LoopOp();
    last = inside;
  }
  return {};
}

/// Whether all communication from the loop on, or from the one around it in the block of
/// `op`, to `op` is among ranks of this program.
static bool staysInProgram(LoopOp loop, Operation *op) {
  WalkResult result = WalkResult::advance();
  for (Operation *at = op->getBlock()->findAncestorOpInBlock(*loop);
       at != op && !result.wasInterrupted(); at = at->getNextNode())
    result = at->walk([](Operation *nested) {
      auto collective = dyn_cast<MemoryCollectiveOpInterface>(nested);
      return isa<CallOp>(nested) || (collective && leavesProgram(collective))
                 ? WalkResult::interrupt()
                 : WalkResult::advance();
    });
  return !result.wasInterrupted();
}

static MemRefType slotType(Value stack) {
  auto type = cast<MemRefType>(stack.getType());
  return MemRefType::get(type.getShape().drop_front(), type.getElementType());
}

/// Reduces slots of `stacks` at the end of `loop`, when it runs last before `op`.
static void reduceInside(LoopOp loop, AllReduceOp op, ArrayRef<Value> stacks, int64_t number) {
  Location loc = op.getLoc();
  OpBuilder b = loop.getBlock().mightHaveTerminator() ? OpBuilder(loop.getBlock().getTerminator())
                                                      : OpBuilder::atBlockEnd(&loop.getBlock());
  for (auto outer = loop->getParentOfType<LoopOp>(); outer && !outer->isAncestor(op);
       outer = outer->getParentOfType<LoopOp>()) {
    int64_t last = outer.getReverse() ? 0 : int64_t(outer.getCount()) - 1;
    auto when = WhenOp::create(b, loc, outer.getIndex(), last, last + 1);
    b.setInsertionPointToEnd(&when.getBlock());
  }
  SmallVector<Value> slots;
  for (Value stack : stacks)
    slots.push_back(SlotOp::create(b, loc, slotType(stack), stack, loop.getIndex()));
  setAsyncToken(AllReduceOp::create(b, loc, slots, slots, op.getAxes(), op.getReduction()), number);
}

void exec::reduceSlots(ProgramOp program, int64_t minBytes, int64_t &number) {
  SmallVector<AllReduceOp> ops;
  program.walk([&](AllReduceOp op) { ops.push_back(op); });
  for (AllReduceOp op : ops) {
    if (leavesProgram(op))
      continue;
    ProgramLiveness liveness(program);
    llvm::MapVector<LoopOp, SmallVector<Value>> filled;
    for (auto [input, output] : llvm::zip(op.getInputs(), op.getOutputs())) {
      auto buffer = input.getDefiningOp<BufferOp>();
      if (!buffer || input != output || buffer.getType().getRank() < 2)
        continue;
      if (LoopOp loop = loopThatFills(input, op, liveness); loop && staysInProgram(loop, op))
        filled[loop].push_back(input);
    }
    SmallVector<Value> inside;
    for (auto &[loop, stacks] : filled) {
      int64_t bytes = 0;
      for (Value stack : stacks)
        bytes += bytesOf(slotType(stack));
      if (int64_t(loop.getCount()) < 2 || bytes < minBytes)
        continue;
      reduceInside(loop, op, stacks, number++);
      llvm::append_range(inside, stacks);
    }
    if (inside.empty())
      continue;
    SmallVector<std::pair<Value, Value>> others;
    for (auto [input, output] : llvm::zip(op.getInputs(), op.getOutputs()))
      if (!llvm::is_contained(inside, input))
        others.push_back({input, output});
    if (!others.empty()) {
      OpBuilder b(op);
      SmallVector<Value> inputs(llvm::make_first_range(others)),
          outputs(llvm::make_second_range(others));
      AllReduceOp::create(b, op.getLoc(), inputs, outputs, op.getAxes(), op.getReduction());
    }
    op.erase();
  }
}
