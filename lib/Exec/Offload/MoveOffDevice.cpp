//===- MoveOffDevice.cpp - one piece of memory to an offload space -----===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "MoveOffDevice.h"
#include "Exec/Overlap/AsyncTokens.h"

#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::exec;

OffloadUses::OffloadUses(Value root, const ProgramLiveness &liveness) {
  collect(root, liveness);
  auto inOrder = loops.takeVector();
  llvm::sort(inOrder, [&](const auto &a, const auto &b) {
    return liveness.numberOf(a.first) < liveness.numberOf(b.first);
  });
  for (auto &entry : inOrder)
    loops.insert(std::move(entry));
  for (auto &[loop, slots] : loops)
    llvm::sort(slots.accesses, [&](const OpAccess &a, const OpAccess &b) {
      return liveness.numberOf(a.op) < liveness.numberOf(b.op);
    });
  llvm::sort(whole, [&](OpOperand *a, OpOperand *b) {
    return liveness.numberOf(a->getOwner()) < liveness.numberOf(b->getOwner());
  });
}

void OffloadUses::collect(Value memory, const ProgramLiveness &liveness) {
  for (OpOperand &use : memory.getUses()) {
    Operation *op = use.getOwner();
    if (auto view = dyn_cast<ViewOp>(op);
        view && bytesOf(view.getType()) == bytesOf(memory.getType())) {
      collect(view, liveness);
    } else if (auto slot = dyn_cast<SlotOp>(op); slot && isa<BlockArgument>(slot.getIndex())) {
      auto loop = cast<LoopOp>(slot.getIndex().getParentBlock()->getParentOp());
      SmallVector<OpAccess> accesses = liveness.accesses(slot.getSlice());
      if (accesses.empty())
        continue;
      // One after the other they are all of it.
      auto base = cast<MemRefType>(slot.getBase().getType());
      if (base.getDimSize(0) != int64_t(loop.getCount())) {
        collectWhole(slot);
        continue;
      }
      Slots &entry = loops[loop];
      entry.slots.push_back(slot);
      llvm::append_range(entry.accesses, accesses);
    } else if (isa<SlotOp, ViewOp, WindowOp>(op)) {
      collectWhole(op->getResult(0));
    } else {
      (isa<CallOp>(op) ? calls : whole).push_back(&use);
    }
  }
}

void OffloadUses::collectWhole(Value part) {
  for (OpOperand &use : part.getUses())
    if (isa<SlotOp, ViewOp, WindowOp>(use.getOwner()))
      collectWhole(use.getOwner()->getResult(0));
    else
      whole.push_back(&use);
}

namespace {
class Mover {
public:
  Mover(Value root, MemorySpace space, Category category, int64_t &number)
      : root(root), loc(root.getLoc()), space(space), category(category), number(number) {}

  void moveLoop(LoopOp loop, OffloadUses::Slots &uses, bool fetch, bool store);
  void moveWhole(ArrayRef<OpOperand *> uses);

private:
  Value buffer(MemRefType type);
  void copy(OpBuilder b, Value from, Value to, int64_t as) {
    setAsyncToken(CopyOp::create(b, loc, Type(), from, to), as);
  }
  MemRefType there(MemRefType type) const { return inSpace(type, space); }
  /// Slice `index` of the offloaded memory, which is divided into `count` slices of type `part`.
  Value sliceAt(OpBuilder &b, MemRefType part, int64_t count, Value index);

  Value root;
  Location loc;
  MemorySpace space;
  Category category;
  int64_t &number;
};
} // namespace

static MemRefType stackOf(int64_t count, MemRefType part) {
  SmallVector<int64_t> shape{count};
  llvm::append_range(shape, part.getShape());
  return MemRefType::get(shape, part.getElementType());
}

Value Mover::buffer(MemRefType type) {
  ProgramOp program = root.getDefiningOp()
                          ? root.getDefiningOp()->getParentOfType<ProgramOp>()
                          : cast<ProgramOp>(root.getParentBlock()->getParentOp());
  OpBuilder b = OpBuilder::atBlockBegin(&program.getBlock());
  return BufferOp::create(b, loc, type, ("offload." + Twine(number)).str(), category, nullptr,
                          nullptr, nullptr, nullptr);
}

static Value view(OpBuilder &b, Location loc, Value memory, MemRefType type, int64_t begin = 0) {
  return memory.getType() == type ? memory : ViewOp::create(b, loc, type, memory, begin).getResult();
}

Value Mover::sliceAt(OpBuilder &b, MemRefType part, int64_t count, Value index) {
  Value stack = view(b, loc, root, there(stackOf(count, part)));
  return SlotOp::create(b, loc, there(part), stack, index);
}

void Mover::moveLoop(LoopOp loop, OffloadUses::Slots &uses, bool fetch, bool store) {
  Block &body = loop.getBlock();
  int64_t count = loop.getCount(), by = loop.getReverse() ? -1 : 1;
  MemRefType part = uses.type();
  int64_t slots = std::min<int64_t>(count, fetch && store ? 3 : 2);
  Value turns = buffer(stackOf(slots, part));
  auto shift = [&](OpBuilder &b, int64_t later, IntegerAttr modulo) -> Value {
    return ShiftOp::create(b, loc, b.getIndexType(), loop.getIndex(), later * by, modulo);
  };
  auto turn = [&](OpBuilder &b, int64_t later) -> Value {
    Value index = shift(b, later, b.getI64IntegerAttr(slots));
    return SlotOp::create(b, loc, part, turns, index);
  };

  if (fetch) {
    OpBuilder before(loop), top = OpBuilder::atBlockBegin(&body);
    int64_t first = by > 0 ? 0 : count - 1, elements = part.getNumElements();
    Value from = ViewOp::create(before, loc, there(part), root, first * elements);
    Value to = ViewOp::create(before, loc, part, turns, first % slots * elements);
    copy(before, from, to, number);
    WaitOp::create(top, loc, number);
    if (count > 1) {
      auto when = WhenOp::create(top, loc, loop.getIndex(), by > 0 ? 0 : 1,
                                 by > 0 ? count - 1 : count);
      OpBuilder inside = OpBuilder::atBlockBegin(&when.getBlock());
      Value next = sliceAt(inside, part, count, shift(inside, 1, IntegerAttr()));
      copy(inside, next, turn(inside, 1), number);
    }
    ++number;
  }
  if (store) {
    Operation *last = nullptr;
    for (const OpAccess &access : uses.accesses)
      if (access.writes)
        last = body.findAncestorOpInBlock(*access.op);
    OpBuilder after(loop.getContext());
    after.setInsertionPointAfter(last);
    WaitOp::create(after, loc, number);
    Value mine = turn(after, 0);
    copy(after, mine, sliceAt(after, part, count, loop.getIndex()), number);
    ++number;
  }
  for (SlotOp slot : uses.slots) {
    OpBuilder b(slot);
    Value mine = turn(b, 0);
    slot.replaceAllUsesWith(view(b, loc, mine, slot.getType()));
    slot.erase();
  }
}

/// `memory`, part of `root`, as the same part of `replacement`.
static Value rebuild(OpBuilder &b, Value memory, Value root, Value replacement) {
  if (memory == root)
    return replacement;
  Operation *op = memory.getDefiningOp();
  IRMapping mapping;
  mapping.map(op->getOperand(0), rebuild(b, op->getOperand(0), root, replacement));
  return b.clone(*op, mapping)->getResult(0);
}

void Mover::moveWhole(ArrayRef<OpOperand *> uses) {
  MemRefType type = inSpace(cast<MemRefType>(root.getType()), MemorySpace::Device);
  Block &top = *root.getParentBlock();
  Value copied = buffer(type);
  // Nothing has to be fetched if the first op that uses the memory writes all of it.
  bool fetch = false, store = false, isWritten = false;
  Operation *last = nullptr, *previous = nullptr;
  for (OpOperand *use : uses) {
    Operation *op = use->getOwner();
    if (previous && previous != op)
      isWritten |= store && !fetch && previous->getBlock() == &top;
    previous = op;
    SmallVector<MemoryEffects::EffectInstance> effects;
    cast<MemoryEffectOpInterface>(op).getEffects(effects);
    for (MemoryEffects::EffectInstance &effect : effects) {
      if (effect.getEffectValue<OpOperand *>() != use)
        continue;
      bool writes = isa<MemoryEffects::Write>(effect.getEffect());
      // What is written in part keeps the rest.
      fetch |= !isWritten && (!writes || bytesOf(use->get().getType()) < bytesOf(type));
      if (writes)
        last = top.findAncestorOpInBlock(*op);
      store |= writes;
    }
  }
  Operation *first = top.findAncestorOpInBlock(*uses.front()->getOwner());
  if (fetch) {
    copy(OpBuilder(first), root, copied, number);
    ++number;
  }
  if (store) {
    OpBuilder after(root.getContext());
    after.setInsertionPointAfter(last);
    copy(after, copied, root, number);
    ++number;
  }
  for (OpOperand *use : uses) {
    OpBuilder b(use->getOwner());
    use->set(rebuild(b, use->get(), root, copied));
  }
}

bool exec::isInOrder(OpOperand *use) {
  auto launch = dyn_cast<LaunchOp>(use->getOwner());
  if (!launch)
    return false;
  auto kernel = SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(launch, launch.getKernelAttr());
  auto templates = kernel->getAttrOfType<ArrayAttr>(templateAttr);
  return templates && llvm::all_of(templates.getAsRange<StringAttr>(), [](StringAttr name) {
           return llvm::is_contained({"elementwise", "partials", "scalars"}, name.getValue());
         });
}

/// Lets the op of `use` work in the memory of `root`.
static void useThere(OpOperand *use, Value root) {
  for (Value part = use->get(); part != root; part = part.getDefiningOp()->getOperand(0))
    part.setType(inSpace(cast<MemRefType>(part.getType()), spaceOf(root.getType())));
}

static bool isUsedInParts(Value memory) {
  return llvm::any_of(memory.getUsers(), [&](Operation *user) {
    if (!isa<SlotOp, ViewOp, WindowOp>(user))
      return false;
    Value part = user->getResult(0);
    return bytesOf(part.getType()) < bytesOf(memory.getType()) || isUsedInParts(part);
  });
}

/// How many of `whole`, the first ones, can have one copy: a loop that moves slots is before all of them or behind. It
/// stores what a copy from before it lacks, and fetches what a later one has not stored yet.
static size_t usesOfOneCopy(Value root, ArrayRef<OpOperand *> whole, OffloadUses &uses) {
  Block &top = *root.getParentBlock();
  auto place = [&](Operation *op) { return top.findAncestorOpInBlock(*op); };
  Operation *first = place(whole.front()->getOwner());
  auto *behindLoop = llvm::find_if(whole, [&](OpOperand *use) {
    return llvm::any_of(uses.loops, [&](auto &entry) {
      Operation *loop = place(entry.first);
      return first->isBeforeInBlock(loop) && loop->isBeforeInBlock(place(use->getOwner()));
    });
  });
  return behindLoop - whole.begin();
}

/// Places of `memory` that nothing uses any more.
static void eraseUnused(Value memory) {
  for (Operation *user : llvm::make_early_inc_range(memory.getUsers()))
    if (isa<SlotOp, ViewOp, WindowOp>(user)) {
      eraseUnused(user->getResult(0));
      if (user->use_empty())
        user->erase();
    }
}

/// Whether anything behind `loop` may read `root`, such as a second loop of an update whose first one has left a
/// direction in the memory of the gradient.
static bool isReadBehind(LoopOp loop, Value root, OffloadUses &uses, ArrayRef<Operation *> others) {
  Block &top = *root.getParentBlock();
  Operation *here = top.findAncestorOpInBlock(*loop);
  auto isBehind = [&](Operation *op) { return here->isBeforeInBlock(top.findAncestorOpInBlock(*op)); };
  return llvm::any_of(others, isBehind) || llvm::any_of(uses.loops, [&](auto &entry) {
           return entry.second.fetches() && isBehind(entry.first);
         });
}

void exec::moveOffDevice(Value root, MemorySpace space, OffloadUses &uses, Kept kept, Category category,
                         int64_t &number) {
  Mover mover(root, space, category, number);
  SmallVector<Operation *> others;
  for (OpOperand *use : llvm::concat<OpOperand *>(uses.whole, uses.calls))
    others.push_back(use->getOwner());
  root.setType(inSpace(cast<MemRefType>(root.getType()), space));
  bool isOfLayers = category == Category::Parameter || category == Category::Gradient;
  bool inPlace = isOfLayers && spaceRow(space).hasAddresses() && llvm::all_of(uses.whole, isInOrder);
  if (inPlace)
    for (OpOperand *use : std::exchange(uses.whole, {}))
      useThere(use, root);
  for (ArrayRef<OpOperand *> rest = uses.whole; !rest.empty();) {
    size_t count = usesOfOneCopy(root, rest, uses);
    mover.moveWhole(rest.take_front(count));
    rest = rest.drop_front(count);
  }
  for (auto &[loop, slots] : uses.loops) {
    bool fetch = slots.fetches(), store = slots.writes();
    bool isUpdate = kept == Kept::UntilUpdate && train::roleOf(loop) == train::Role::Update;
    if (kept == Kept::Scratch || (isUpdate && !isReadBehind(loop, root, uses, others)))
      store &= !fetch;
    if (kept == Kept::Always) // What is written in part keeps the rest.
      fetch |= llvm::any_of(slots.slots, [](SlotOp slot) { return isUsedInParts(slot.getSlice()); });
    mover.moveLoop(loop, slots, fetch, store);
  }
  eraseUnused(root);
}
