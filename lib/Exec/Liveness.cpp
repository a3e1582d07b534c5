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
    if (auto loop = dyn_cast<LoopOp>(op)) {
      number(loop.getBlock());
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

std::optional<std::pair<int64_t, int64_t>> ProgramLiveness::range(Value memory,
                                                                  Operation **uninitialized) const {
  SmallVector<Access> list = accesses(memory);
  if (list.empty())
    return std::nullopt;
  // The innermost block that has them all.
  Block *block = list.front().op->getBlock();
  while (!llvm::all_of(list, [&](Access &a) { return block->findAncestorOpInBlock(*a.op); }))
    block = block->getParentOp()->getBlock();
  int64_t first = begins.at(block->findAncestorOpInBlock(*list.front().op));
  int64_t last = first;
  for (Access &access : list)
    last = std::max(last, ends.at(block->findAncestorOpInBlock(*access.op)));
  if (list.front().reads) {
    // What it reads comes from the iteration before, and first from outside.
    for (Operation *op = block->getParentOp(); isa<LoopOp>(op); op = op->getParentOp()) {
      first = begins.at(op);
      last = ends.at(op);
    }
    if (uninitialized)
      *uninitialized = list.front().op;
  }
  return std::pair(first, last);
}
