//===- Liveness.cpp - when buffers of a program hold something --------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Liveness.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::exec;

ProgramLiveness::ProgramLiveness(ProgramOp program) { number(program.getBody().front()); }

void ProgramLiveness::number(Block &block) {
  for (Operation &op : block) {
    begins[&op] = ends[&op] = count++;
    if (auto wait = dyn_cast<WaitOp>(op))
      waits[int64_t(wait.getAsyncToken())].push_back(&op);
    for (Region &region : op.getRegions()) {
      number(region.front());
      ends[&op] = count - 1;
    }
  }
}

static void collect(Value memory, llvm::SmallDenseMap<Operation *, Access> &found) {
  for (OpOperand &use : memory.getUses()) {
    Operation *op = use.getOwner();
    if (isa<SlotOp, ViewOp, WindowOp>(op)) {
      collect(op->getResult(0), found);
      continue;
    }
    Access &access = found.try_emplace(op, Access{op, false, false}).first->second;
    SmallVector<MemoryEffects::EffectInstance> effects;
    cast<MemoryEffectOpInterface>(op).getEffects(effects);
    for (MemoryEffects::EffectInstance &effect : effects)
      if (effect.getEffectValue<OpOperand *>() == &use) {
        access.reads |= isa<MemoryEffects::Read>(effect.getEffect());
        access.writes |= isa<MemoryEffects::Write>(effect.getEffect());
      }
  }
}

SmallVector<Access> ProgramLiveness::accesses(Value memory) const {
  llvm::SmallDenseMap<Operation *, Access> found;
  collect(memory, found);
  SmallVector<Access> list(llvm::make_second_range(found));
  llvm::sort(list,
             [&](const Access &a, const Access &b) { return begins.at(a.op) < begins.at(b.op); });
  return list;
}

/// Adds the ops up to which an asynchronous collective may use its memory.
void ProgramLiveness::addWaits(Operation *start, SmallVectorImpl<Operation *> &ops) const {
  std::optional<int64_t> number = asyncTokenOf(start);
  auto found = number ? waits.find(*number) : waits.end();
  if (found == waits.end())
    return;
  for (Operation *wait : found->second) {
    ops.push_back(wait);
    if (begins.at(wait) > begins.at(start))
      continue;
    // An iteration waits for what the one before has started.
    auto loop = start->getParentOfType<LoopOp>();
    while (loop && !loop->isAncestor(wait))
      loop = loop->getParentOfType<LoopOp>();
    if (loop)
      ops.push_back(loop);
  }
}

std::optional<std::pair<int64_t, int64_t>> ProgramLiveness::range(Value memory,
                                                                  Operation **uninitialized) const {
  SmallVector<Access> list = accesses(memory);
  if (list.empty())
    return std::nullopt;
  SmallVector<Operation *> ops;
  for (Access &access : list) {
    ops.push_back(access.op);
    addWaits(access.op, ops);
  }
  // The innermost block that has them all.
  Block *block = list.front().op->getBlock();
  while (!llvm::all_of(ops, [&](Operation *op) { return block->findAncestorOpInBlock(*op); }))
    block = block->getParentOp()->getBlock();
  int64_t first = count, last = 0;
  for (Operation *op : ops) {
    Operation *top = block->findAncestorOpInBlock(*op);
    first = std::min(first, begins.at(top));
    last = std::max(last, ends.at(top));
  }
  if (list.front().reads) {
    // What it reads comes from the iteration before, and first from outside.
    for (Operation *op = block->getParentOp(); !isa<ProgramOp>(op); op = op->getParentOp()) {
      first = begins.at(op);
      last = ends.at(op);
    }
    if (uninitialized)
      *uninitialized = list.front().op;
  }
  return std::pair(first, last);
}
