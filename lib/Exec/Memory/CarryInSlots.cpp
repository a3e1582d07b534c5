//===- CarryInSlots.cpp - exec-carry-in-slots -------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// A loop that copies its carried value into slot i of a stack, as the layers of a forward
// do for their backward, has the value twice. With one slot more the stack can be the only
// place: iteration i finds the value in slot i and leaves the next one in slot i + 1.
//
//===----------------------------------------------------------------------===//
#include "Exec/Passes.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::exec;

namespace meshwright::exec {
#define GEN_PASS_DEF_EXECCARRYINSLOTS
#include "Exec/Passes.h.inc"
} // namespace meshwright::exec

namespace {
/// An operand through which an op touches memory, and how.
struct CarriedUse {
  OpOperand *operand;
  int64_t at; ///< the number of the op in its program
  bool reads, writes;

  Operation *op() const { return operand->getOwner(); }
};

class Carrier {
public:
  Carrier(LoopOp loop, CopyOp copy, const DenseMap<Operation *, int64_t> &numbers)
      : loop(loop), copy(copy), numbers(numbers) {}

  /// Whether the stack can hold what the loop carries; finds `before`, `inside` and `after`.
  bool isPossible();
  void rewrite();

private:
  bool collect(Value memory, bool parts, SmallVectorImpl<CarriedUse> &uses);
  bool findStart(ArrayRef<CarriedUse> uses);
  bool findNext(ArrayRef<CarriedUse> uses);
  bool findEnd(ArrayRef<CarriedUse> uses);
  bool stackIsFree(ArrayRef<CarriedUse> uses);
  bool isInLoop(const CarriedUse &use) { return loop->isProperAncestor(use.op()); }
  /// Whether one op alone makes `use`, which then writes all there is.
  bool isOverwritten(const CarriedUse &use, ArrayRef<CarriedUse> uses);

  LoopOp loop;
  CopyOp copy;
  const DenseMap<Operation *, int64_t> &numbers;
  BufferOp carried, stack;
  /// Uses of the carried value before the loop, before and after the next one exists in an
  /// iteration, and after the loop.
  SmallVector<OpOperand *> first, here, next, last;
  int64_t start = 0; ///< the op that writes the first value
};
} // namespace

/// A buffer of the device's that begins and ends within the program.
static BufferOp ownBuffer(Value memory) {
  auto buffer = memory.getDefiningOp<BufferOp>();
  bool own = buffer && !buffer.isPersistent() && !isOffloaded(memory.getType());
  return own ? buffer : BufferOp();
}

/// Adds the uses of `memory`; false if one is asynchronous, or of a part of the memory where
/// `parts` are not wanted.
bool Carrier::collect(Value memory, bool parts, SmallVectorImpl<CarriedUse> &uses) {
  for (OpOperand &operand : memory.getUses()) {
    Operation *op = operand.getOwner();
    auto view = dyn_cast<ViewOp>(op);
    if (isa<SlotOp, ViewOp, WindowOp>(op)) {
      bool whole = view && bytesOf(view.getType()) == bytesOf(cast<MemRefType>(memory.getType()));
      if ((!whole && !parts) || !collect(op->getResult(0), parts, uses))
        return false;
      continue;
    }
    if (asyncTokenOf(op)) // it goes on where it does not stand
      return false;
    CarriedUse use{&operand, numbers.at(op), false, false};
    SmallVector<MemoryEffects::EffectInstance> effects;
    cast<MemoryEffectOpInterface>(op).getEffects(effects);
    for (MemoryEffects::EffectInstance &effect : effects)
      if (effect.getEffectValue<OpOperand *>() == &operand) {
        use.reads |= isa<MemoryEffects::Read>(effect.getEffect());
        use.writes |= isa<MemoryEffects::Write>(effect.getEffect());
      }
    uses.push_back(use);
  }
  llvm::stable_sort(uses, [](const CarriedUse &a, const CarriedUse &b) { return a.at < b.at; });
  return true;
}

bool Carrier::isOverwritten(const CarriedUse &use, ArrayRef<CarriedUse> uses) {
  return use.writes && llvm::none_of(uses, [&](const CarriedUse &other) {
           return other.op() == use.op() && other.reads;
         });
}

/// The first value is written right before the loop, in the block that the loop is in.
bool Carrier::findStart(ArrayRef<CarriedUse> uses) {
  const CarriedUse *found = nullptr;
  for (const CarriedUse &use : uses)
    if (use.at < numbers.at(loop) && use.op()->getBlock() == loop->getBlock() &&
        isOverwritten(use, uses))
      found = &use;
  if (!found)
    return false;
  start = found->at;
  for (const CarriedUse &use : uses) {
    if (use.at < start || use.at >= numbers.at(loop))
      continue;
    if (use.at > start && use.writes)
      return false;
    first.push_back(use.operand);
  }
  return true;
}

/// An op of the loop's own body makes the next value; what it reads meanwhile is the last one.
bool Carrier::findNext(ArrayRef<CarriedUse> uses) {
  Operation *maker = nullptr;
  for (const CarriedUse &use : uses) {
    if (!isInLoop(use) || use.op() == copy)
      continue;
    bool isLater = maker && use.op() != maker;
    if (!isLater && use.writes) {
      if (use.reads || use.op()->getBlock() != &loop.getBlock() || use.at < numbers.at(copy))
        return false;
      maker = use.op();
    }
    (isLater || use.writes ? next : here).push_back(use.operand);
  }
  return maker;
}

/// After the loop the value is read until something else is written to its memory.
bool Carrier::findEnd(ArrayRef<CarriedUse> uses) {
  Operation *around = loop->getParentOp();
  for (const CarriedUse &use : uses) {
    if (isInLoop(use) || use.at < numbers.at(loop))
      continue;
    Operation *top = loop->getBlock()->findAncestorOpInBlock(*use.op());
    if (!top) // the next iteration of a loop around it, or what follows that
      return false;
    if (use.writes) {
      // In a loop, a read that stands above is of the iteration before.
      bool readsAbove = llvm::any_of(
          uses, [&](const CarriedUse &other) { return other.at < use.at && top->isAncestor(other.op()); });
      return isOverwritten(use, uses) && !readsAbove && !use.op()->getParentOfType<WhenOp>();
    }
    last.push_back(use.operand);
  }
  // Nothing is written there any more, until a loop around it goes round.
  return isa<ProgramOp>(around) || llvm::all_of(uses, [&](const CarriedUse &use) {
           return around->isProperAncestor(use.op()) && use.at >= start;
         });
}

/// Until the loop fills its slots nobody needs the stack, and the loop reads only the slot
/// that it has filled.
bool Carrier::stackIsFree(ArrayRef<CarriedUse> uses) {
  for (const CarriedUse &use : uses) {
    if (use.at >= start && use.at < numbers.at(loop))
      return false;
    if (!isInLoop(use) || use.op() == copy)
      continue;
    if (use.writes || use.at < numbers.at(copy))
      return false;
  }
  for (Operation *user : stack.getMemory().getUsers()) {
    auto slot = dyn_cast<SlotOp>(user);
    if (loop->isProperAncestor(user) && (!slot || slot.getIndex() != loop.getIndex()))
      return false;
    bool isUsedInside =
        llvm::any_of(user->getUsers(), [&](Operation *op) { return loop->isProperAncestor(op); });
    if (!slot && isUsedInside)
      return false;
  }
  return true;
}

bool Carrier::isPossible() {
  auto slot = copy.getTarget() ? copy.getTarget().getDefiningOp<SlotOp>() : SlotOp();
  if (!slot || slot.getIndex() != loop.getIndex() || loop.getReverse() || asyncTokenOf(copy))
    return false;
  carried = ownBuffer(copy.getSource());
  stack = ownBuffer(slot.getBase());
  if (!carried || !stack || carried.getBytes() != bytesOf(slot.getType()))
    return false;
  SmallVector<CarriedUse> carriedUses, stackUses;
  return collect(carried, /*parts=*/false, carriedUses) &&
         collect(stack, /*parts=*/true, stackUses) && findStart(carriedUses) &&
         findNext(carriedUses) && findEnd(carriedUses) && stackIsFree(stackUses);
}

/// Erases views of `memory`, and of these, that nobody uses.
static void eraseUnusedViews(Value memory) {
  for (Operation *user : llvm::make_early_inc_range(memory.getUsers()))
    if (auto view = dyn_cast<ViewOp>(user)) {
      eraseUnusedViews(view.getResult());
      if (view->use_empty())
        view->erase();
    }
}

/// Gives each operand `memory` in the shape that it had.
static void replace(ArrayRef<OpOperand *> operands, Value memory, int64_t offset = 0) {
  for (OpOperand *operand : operands) {
    OpBuilder builder(operand->getOwner());
    Type type = operand->get().getType();
    operand->set(type == memory.getType()
                     ? memory
                     : ViewOp::create(builder, memory.getLoc(), type, memory, offset).getResult());
  }
}

void Carrier::rewrite() {
  auto slot = copy.getTarget().getDefiningOp<SlotOp>();
  MemRefType old = stack.getType();
  int64_t count = old.getDimSize(0), elements = slot.getType().getNumElements();
  SmallVector<int64_t> shape(old.getShape());
  ++shape.front();
  stack.getMemory().setType(MemRefType::get(shape, old.getElementType()));
  // Who does not take slots has the stack as it was.
  OpBuilder builder(stack->getContext());
  builder.setInsertionPointAfter(stack);
  Value whole = ViewOp::create(builder, stack.getLoc(), old, stack.getMemory());
  stack.getMemory().replaceUsesWithIf(whole, [&](OpOperand &use) {
    return !isa<SlotOp>(use.getOwner()) && use.getOwner() != whole.getDefiningOp();
  });
  if (whole.use_empty())
    whole.getDefiningOp()->erase();

  replace(first, stack.getMemory());
  replace(last, stack.getMemory(), count * elements);
  builder.setInsertionPoint(copy);
  Value after = ShiftOp::create(builder, copy.getLoc(), loop.getIndex(), 1, IntegerAttr());
  Value following =
      SlotOp::create(builder, copy.getLoc(), slot.getType(), stack.getMemory(), after);
  slot->moveBefore(&loop.getBlock().front());
  replace(here, slot.getSlice());
  replace(next, following);
  copy.erase();
  eraseUnusedViews(carried.getMemory());
  if (carried->use_empty())
    carried->erase();
}

/// Removes one copy, if there is one that can be removed.
static bool carryOne(ProgramOp program) {
  DenseMap<Operation *, int64_t> numbers;
  program.walk<WalkOrder::PreOrder>([&](Operation *op) { numbers.insert({op, numbers.size()}); });
  WalkResult result = program.walk([&](LoopOp loop) {
    if (loop.getTimes()) // It stacks nothing.
      return WalkResult::advance();
    for (auto copy : loop.getBlock().getOps<CopyOp>()) {
      Carrier carrier(loop, copy, numbers);
      if (!carrier.isPossible())
        continue;
      carrier.rewrite();
      return WalkResult::interrupt();
    }
    return WalkResult::advance();
  });
  return result.wasInterrupted();
}

namespace {
struct ExecCarryInSlots : exec::impl::ExecCarryInSlotsBase<ExecCarryInSlots> {
  void runOnModule() override {
    for (auto program : getOperation().getOps<ProgramOp>())
      while (carryOne(program))
        ;
  }
};
} // namespace
