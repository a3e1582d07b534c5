//===- ProgramWalk.cpp - a program's ops as they would run ------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "ProgramWalk.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::exec;

// Slots are taken in turns by two or three iterations: what is left out is a multiple of both.
static constexpr int64_t atBegin = 4, atEnd = 4, turns = 6;

bool ProgramWalk::run(function_ref<bool(Operation *)> visit) {
  pending.clear();
  return run(program.getBlock(), visit);
}

bool ProgramWalk::run(LoopOp loop, function_ref<bool(Operation *)> visit) {
  int64_t first = loop.getFrom(), count = loop.getCount();
  int64_t skipped = std::max<int64_t>(0, count - first - atBegin - atEnd) / turns * turns;
  int64_t before = loop.getReverse() ? count - skipped - atBegin : first + atBegin;
  for (int64_t i = first; i < count; ++i) {
    if (i == before)
      i += skipped;
    iterations[loop.getIndex()] = loop.getReverse() ? count - 1 - i : i;
    if (!run(loop.getBlock(), visit))
      return false;
  }
  return true;
}

bool ProgramWalk::run(Block &block, function_ref<bool(Operation *)> visit) {
  for (Operation &op : block) {
    bool goOn = true;
    if (auto loop = dyn_cast<LoopOp>(op)) {
      goOn = (!loop.getTimes() || visit(loop)) && run(loop, visit);
    } else if (auto when = dyn_cast<WhenOp>(op)) {
      int64_t iteration = iterations.lookup(when.getIndex());
      if (int64_t(when.getBegin()) <= iteration && iteration < int64_t(when.getEnd()))
        goOn = run(when.getBlock(), visit);
    } else if (!isPure(&op)) {
      goOn = visit(&op);
    }
    if (!goOn)
      return false;
  }
  return true;
}

PartAccess ProgramWalk::partOf(Value memory) const {
  int64_t bytes = bytesOf(memory.getType());
  Operation *op = memory.getDefiningOp();
  if (!isa_and_nonnull<SlotOp, ViewOp, WindowOp>(op))
    return {memory, 0, bytes, false};
  PartAccess base = partOf(op->getOperand(0));
  if (auto slot = dyn_cast<SlotOp>(op)) {
    auto shift = slot.getIndex().getDefiningOp<ShiftOp>();
    int64_t index = shift ? shift.evaluate(iterations.lookup(shift.getIndex()))
                          : iterations.lookup(slot.getIndex());
    base.begin += index * bytes;
    base.end = base.begin + bytes;
  } else if (auto view = dyn_cast<ViewOp>(op)) {
    base.begin += bytes / view.getType().getNumElements() * int64_t(view.getOffset());
    base.end = base.begin + bytes;
  }
  return base; // of a window all parts: which one it is differs between ranks
}

/// The memory that `op` itself reads, and writes: with true.
static SmallVector<std::pair<Value, bool>> memoryOf(Operation *op) {
  SmallVector<std::pair<Value, bool>> list;
  SmallVector<MemoryEffects::EffectInstance> effects;
  if (auto interface = dyn_cast<MemoryEffectOpInterface>(op))
    interface.getEffects(effects);
  for (MemoryEffects::EffectInstance &effect : effects) {
    auto *operand = effect.getEffectValue<OpOperand *>();
    if (operand && isa<MemRefType>(operand->get().getType()))
      list.push_back({operand->get(), isa<MemoryEffects::Write>(effect.getEffect())});
  }
  return list;
}

SmallVector<PartAccess> ProgramWalk::accesses(Operation *op) const {
  SmallVector<PartAccess> list;
  for (auto [memory, writes] : memoryOf(op)) {
    list.push_back(partOf(memory));
    list.back().writes = writes;
  }
  return list;
}

/// What of `memory` any iteration of the loops in `op` has.
static Value inAllIterations(Value memory, Operation *op) {
  Value all = memory;
  while (isa_and_nonnull<SlotOp, ViewOp, WindowOp>(memory.getDefiningOp())) {
    auto slot = memory.getDefiningOp<SlotOp>();
    memory = memory.getDefiningOp()->getOperand(0);
    if (!slot)
      continue;
    auto shift = slot.getIndex().getDefiningOp<ShiftOp>();
    Value index = shift ? shift.getIndex() : slot.getIndex();
    if (op->isAncestor(index.getParentBlock()->getParentOp()))
      all = memory;
  }
  return all;
}

SmallVector<PartAccess> ProgramWalk::accessesInside(Operation *op) const {
  SmallVector<PartAccess> list;
  op->walk([&](Operation *inside) {
    for (auto [memory, writes] : memoryOf(inside)) {
      list.push_back(partOf(inAllIterations(memory, op)));
      list.back().writes = writes;
    }
  });
  return list;
}

SmallVector<const PendingOp *> ProgramWalk::conflicts(Operation *op) const {
  SmallVector<const PendingOp *> found;
  if (pending.empty() || isa<WaitOp>(op))
    return found;
  std::optional<Queue> queue = queueOf(op);
  SmallVector<PartAccess> mine = isa<LoopOp>(op) ? accessesInside(op) : accesses(op);
  for (const PendingOp &other : pending)
    if ((!queue || queue != queueOf(other.op)) && llvm::any_of(mine, [&](const PartAccess &a) {
          return llvm::any_of(other.accesses, [&](const PartAccess &b) { return a.conflicts(b); });
        }))
      found.push_back(&other);
  return found;
}

void ProgramWalk::step(Operation *op) {
  if (auto wait = dyn_cast<WaitOp>(op)) {
    auto waitedFor = [&](const PendingOp &other) {
      return other.number == int64_t(wait.getAsyncToken());
    };
    auto last = llvm::find_if(llvm::reverse(pending), waitedFor);
    std::optional<Queue> queue;
    for (; last != pending.rend(); ++last) {
      if (!queue)
        queue = queueOf(last->op);
      if (queueOf(last->op) == queue)
        last->runs = false;
    }
    llvm::erase_if(pending, waitedFor);
  } else if (std::optional<int64_t> number = asyncTokenOf(op)) {
    pending.push_back({op, *number, accesses(op)});
  } else if (std::optional<Queue> queue = queueOf(op)) {
    for (PendingOp &other : pending)
      if (queueOf(other.op) == queue)
        other.runs = false;
  }
}
