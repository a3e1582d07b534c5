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

ArrayRef<ProgramLiveness::OperandUse> ProgramLiveness::usesOf(Operation *op) const {
  auto [known, isNew] = operandUses.try_emplace(op);
  if (!isNew)
    return known->second;
  known->second.resize(op->getNumOperands());
  SmallVector<MemoryEffects::EffectInstance> effects;
  cast<MemoryEffectOpInterface>(op).getEffects(effects);
  for (MemoryEffects::EffectInstance &effect : effects)
    if (auto *operand = effect.getEffectValue<OpOperand *>()) {
      OperandUse &use = known->second[operand->getOperandNumber()];
      use.reads |= isa<MemoryEffects::Read>(effect.getEffect());
      use.writes |= isa<MemoryEffects::Write>(effect.getEffect());
    }
  return known->second;
}

void ProgramLiveness::collect(Value memory,
                              llvm::SmallDenseMap<Operation *, OpAccess> &found) const {
  for (OpOperand &use : memory.getUses()) {
    Operation *op = use.getOwner();
    if (isa<SlotOp, ViewOp, WindowOp>(op)) {
      collect(op->getResult(0), found);
      continue;
    }
    OpAccess &access = found.try_emplace(op, OpAccess{op, false, false}).first->second;
    OperandUse own = usesOf(op)[use.getOperandNumber()];
    access.reads |= own.reads;
    access.writes |= own.writes;
  }
}

SmallVector<OpAccess> ProgramLiveness::accesses(Value memory) const {
  llvm::SmallDenseMap<Operation *, OpAccess> found;
  collect(memory, found);
  SmallVector<std::pair<int64_t, OpAccess>> numbered;
  for (auto &[op, access] : found)
    numbered.push_back({begins.at(op), access});
  llvm::sort(numbered, [](auto &a, auto &b) { return a.first < b.first; });
  return SmallVector<OpAccess>(llvm::make_second_range(numbered));
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
  return rangeOf(accesses(memory), uninitialized);
}

std::optional<std::pair<int64_t, int64_t>>
ProgramLiveness::rangeOf(ArrayRef<OpAccess> list, Operation **uninitialized) const {
  if (list.empty())
    return std::nullopt;
  SmallVector<Operation *> ops;
  for (const OpAccess &access : list) {
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

//===--- slots ----------------------------------------------------------------------===//

namespace {
/// Finds what a loop's iterations use of a stack.
class SlotFinder {
public:
  explicit SlotFinder(LoopOp loop) : loop(loop) {}

  /// False if the loop uses anything of `memory` but slots that its iterations have for themselves.
  /// `inside`: it is part of such a slot; else it begins `offset` bytes from the buffer's
  /// beginning, or at a place that is not known.
  bool find(Value memory, std::optional<int64_t> offset, bool inside);

  int64_t offset = 0, bytes = 0; ///< of the slots; no bytes before one is found

private:
  LoopOp loop;
};
} // namespace

bool SlotFinder::find(Value memory, std::optional<int64_t> offset, bool inside) {
  for (Operation *user : memory.getUsers()) {
    std::optional<int64_t> begin;
    bool isSlot = false;
    if (auto view = dyn_cast<ViewOp>(user)) {
      int64_t element = bytesOf(view.getType()) / view.getType().getNumElements();
      if (offset)
        begin = *offset + element * int64_t(view.getOffset());
    } else if (auto slot = dyn_cast<SlotOp>(user)) {
      isSlot = !inside && slot.getIndex() == loop.getIndex();
      int64_t size = bytesOf(slot.getType());
      if (isSlot && (!offset || (bytes && (*offset != this->offset || size != bytes))))
        return false;
      if (isSlot) {
        this->offset = *offset;
        bytes = size;
      }
    } else if (!isa<WindowOp>(user)) {
      if (!inside && loop->isProperAncestor(user))
        return false;
      continue;
    }
    if (!find(user->getResult(0), begin, inside || isSlot))
      return false;
  }
  return true;
}

/// exec-verify walks through all iterations of loops that share memory, so these may not be too
/// many.
static constexpr int64_t mostIterations = 1024;

std::optional<SlotLife> ProgramLiveness::slotsIn(LoopOp loop, BufferOp buffer,
                                                 ArrayRef<OpAccess> accesses, bool fills) const {
  SlotFinder slots(loop);
  if (loop.getTimes() || loop.getFrom() != 0 || loop.getCount() < 2 ||
      int64_t(loop.getCount()) > mostIterations || !slots.find(buffer, 0, false) ||
      slots.bytes == 0 || slots.offset + slots.bytes * int64_t(loop.getCount()) > buffer.getBytes())
    return std::nullopt;
  OpAccess first{nullptr, false, false}, last = first;
  for (const OpAccess &access : accesses)
    if (loop->isProperAncestor(access.op)) {
      first = first.op ? first : access;
      last = access;
    }
  if (!first.op || (fills && first.reads))
    return std::nullopt;
  Block &body = loop.getBlock();
  int64_t when = fills ? begins.at(body.findAncestorOpInBlock(*first.op))
                       : ends.at(body.findAncestorOpInBlock(*last.op));
  return SlotLife{begins.at(loop),          ends.at(loop) + 1, when, slots.offset, slots.bytes,
                  int64_t(loop.getCount()), loop.getReverse()};
}

std::optional<Lifetime> ProgramLiveness::life(BufferOp buffer) const {
  SmallVector<OpAccess> list = accesses(buffer);
  std::optional<std::pair<int64_t, int64_t>> live = rangeOf(list, nullptr);
  if (!live)
    return std::nullopt;
  Lifetime life{buffer.getBytes(), live->first, live->second + 1};
  if (buffer.isPersistent() ||
      llvm::any_of(list, [](const OpAccess &access) { return asyncTokenOf(access.op); }))
    return life;
  // The loops around the first and the last access that begin and end with the range.
  auto loopOf = [&](Operation *op, bool fills) -> LoopOp {
    for (auto loop = op->getParentOfType<LoopOp>(); loop; loop = loop->getParentOfType<LoopOp>())
      if (fills ? begins.at(loop) == live->first : ends.at(loop) == live->second)
        return loop;
    return {};
  };
  Operation *last = list.front().op;
  for (const OpAccess &access : list)
    if (ends.at(access.op) > ends.at(last))
      last = access.op;
  LoopOp fills = loopOf(list.front().op, true), empties = loopOf(last, false);
  if (fills == empties)
    return life;
  if (fills)
    life.filled = slotsIn(fills, buffer, list, true);
  if (empties)
    life.emptied = slotsIn(empties, buffer, list, false);
  return life;
}
