//===- ProgramReader.cpp - what each op of a program touches ----------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "ProgramReader.h"

#include <numeric>

using namespace mlir;
using namespace meshwright;
using namespace meshwright::exec;

std::string Root::name() const {
  if (auto buffer = memory.getDefiningOp<BufferOp>())
    return ("'" + buffer.getName() + "'").str();
  return "argument " + std::to_string(cast<BlockArgument>(memory).getArgNumber());
}

ProgramReader::ProgramReader(ProgramOp program) : program(program) {
  addRoots();
  read(program.getBlock(), steps);
  findDifferences(steps);
}

void ProgramReader::addRoots() {
  BySpace<int64_t> end = {}, begin = {}; // of what buffers take of each space
  SmallVector<BufferOp> buffers(program.getBlock().getOps<BufferOp>());
  for (BufferOp buffer : buffers) {
    int64_t &most = end[spaceOf(buffer.getType())];
    most = std::max(most, int64_t(*buffer.getOffset()) + buffer.getBytes());
  }
  int64_t next = 0;
  for (MemorySpace space : memorySpaces) {
    begin[space] = next;
    next += end[space];
  }
  auto add = [&](Value memory, int64_t address, bool isGiven) {
    rootNumbers[memory] = roots.size();
    roots.push_back({memory, address, bytesOf(memory.getType()), isGiven});
    usesOffloaded |= isOffloaded(memory.getType());
  };
  for (BufferOp buffer : buffers)
    add(buffer, begin[spaceOf(buffer.getType())] + int64_t(*buffer.getOffset()),
        buffer.getVariable() || buffer.getInput());
  for (BlockArgument argument : program.getBlock().getArguments()) {
    add(argument, next, !llvm::is_contained(program.getOutputs(), argument));
    next = roots.back().address + roots.back().bytes;
  }
}

void ProgramReader::read(Block &block, std::vector<Step> &list) {
  for (Operation &op : block) {
    if (isa<BufferOp, SlotOp, ViewOp, WindowOp, ShiftOp, YieldOp>(op))
      continue;
    Step step{&op, {}, 0, {}};
    readUses(step);
    if (auto loop = dyn_cast<LoopOp>(op)) {
      int64_t from = loop.getFrom(), last = int64_t(loop.getCount()) - 1;
      loopNumbers[loop.getIndex()] = step.loop = loops.size();
      bool down = loop.getReverse();
      loops.push_back({down ? last : from, down ? from : last, 1, false, {}});
      read(loop.getBlock(), step.body);
    } else if (auto when = dyn_cast<WhenOp>(op)) {
      step.loop = loopNumbers.at(when.getIndex());
      loops[step.loop].bounds.append({int64_t(when.getBegin()), int64_t(when.getEnd())});
      read(when.getBlock(), step.body);
    }
    list.push_back(std::move(step));
  }
}

void ProgramReader::readUses(Step &step) {
  auto interface = dyn_cast<MemoryEffectOpInterface>(step.op);
  if (!interface)
    return;
  SmallVector<MemoryEffects::EffectInstance> effects;
  interface.getEffects(effects);
  llvm::SmallDenseMap<unsigned, unsigned> uses; // by operand
  for (MemoryEffects::EffectInstance &effect : effects) {
    auto *operand = effect.getEffectValue<OpOperand *>();
    if (!operand || !isa<MemRefType>(operand->get().getType()))
      continue;
    auto [use, isNew] = uses.try_emplace(operand->getOperandNumber(), step.uses.size());
    if (isNew)
      step.uses.push_back(place(operand->get()));
    Access &access = step.uses[use->second].fixed;
    access.reads |= isa<MemoryEffects::Read>(effect.getEffect());
    access.writes |= isa<MemoryEffects::Write>(effect.getEffect());
    roots[access.root].isWritten |= access.writes;
  }
}

/// The way from the root to `memory`, op by op.
Use ProgramReader::place(Value memory) {
  if (auto known = places.find(memory); known != places.end())
    return known->second;
  int64_t bytes = bytesOf(memory.getType());
  Use use;
  if (auto root = rootNumbers.find(memory); root != rootNumbers.end()) {
    use.fixed = {root->second, 0, bytes, false, false};
    return places[memory] = use;
  }
  Operation *op = memory.getDefiningOp();
  use = place(op->getOperand(0));
  if (use.fixed.parts > 1)
    return places[memory] = use; // Of a rank's own part every part may be any.
  if (auto window = dyn_cast<WindowOp>(op)) {
    use.fixed.parts = (use.fixed.end - use.fixed.begin) / bytes;
    use.fixed.shift = window.getShift();
    return places[memory] = use;
  }
  if (auto view = dyn_cast<ViewOp>(op)) {
    use.fixed.begin += int64_t(view.getOffset()) * (bytes / view.getType().getNumElements());
  } else {
    Value index = cast<SlotOp>(op).getIndex();
    Use::Slots slots{0, bytes, 1, 0, 0};
    if (auto shift = index.getDefiningOp<ShiftOp>()) {
      index = shift.getIndex();
      slots.sign = shift.getMirrored() ? -1 : 1;
      slots.first = int64_t(shift.getBy()) +
                    (shift.getMirrored() ? int64_t(shift.getLoop().getCount()) - 1 : 0);
      slots.modulo = shift.getModulo().value_or(0);
    }
    slots.loop = loopNumbers.at(index);
    use.slots.push_back(slots);
  }
  use.fixed.end = use.fixed.begin + bytes;
  return places[memory] = use;
}

/// Which loops' iterations do the same in turns; of offloaded memory also reads tell them apart, since
/// the device's copies are told apart by them.
void ProgramReader::findDifferences(ArrayRef<Step> list) {
  for (const Step &step : list) {
    findDifferences(step.body);
    for (const Use &use : step.uses)
      for (const Use::Slots &slots : use.slots) {
        Loop &loop = loops[slots.loop];
        const Root &root = roots[use.fixed.root];
        if (slots.modulo)
          loop.period = std::lcm(loop.period, slots.modulo);
        else
          loop.differs |= root.isWritten || isOffloaded(root.getType());
      }
  }
}

void ProgramReader::accesses(const Step &step, ArrayRef<int64_t> iterations,
                             SmallVectorImpl<Access> &list) const {
  list.clear();
  for (const Use &use : step.uses) {
    Access &access = list.emplace_back(use.fixed);
    for (const Use::Slots &slots : use.slots) {
      int64_t slot = slots.first + slots.sign * iterations[slots.loop];
      if (slots.modulo && (slot %= slots.modulo) < 0)
        slot += slots.modulo;
      access.begin += slot * slots.bytes;
      access.end += slot * slots.bytes;
    }
  }
}
