//===- OverlapLoops.cpp - collectives of one iteration beside another -------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "OverlapLoops.h"
#include "AsyncTokens.h"
#include "ProgramWalk.h"

#include "Dist/Programs.h"

#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::exec;

int64_t exec::bytesOf(MemoryCollectiveOpInterface op) {
  int64_t most = 0;
  for (const SmallVector<Value> &list : {op.getSources(), op.getTargets()}) {
    int64_t sum = 0;
    for (Value memory : list)
      sum += bytesOf(memory.getType());
    most = std::max(most, sum);
  }
  return most;
}

/// The buffer or argument that `memory` is part of.
static Value rootOf(Value memory) {
  while (isa_and_nonnull<SlotOp, ViewOp, WindowOp>(memory.getDefiningOp()))
    memory = memory.getDefiningOp()->getOperand(0);
  return memory;
}

bool exec::leavesProgram(MemoryCollectiveOpInterface op) {
  if (op.getMessageChannel() != 0)
    return true;
  auto at = op->getParentOfType<ModuleOp>()->getAttrOfType<DictionaryAttr>(dist::coordinatesAttr);
  return at && llvm::any_of(op.getAxes(), [&](Attribute axis) {
           return at.contains(cast<StringAttr>(axis).getValue());
         });
}

namespace {
/// How an op uses a buffer.
struct LoopUse {
  Operation *op; ///< of the loop's body
  bool reads = false, writes = false;
};

/// One loop without loops inside.
class LoopOverlap {
public:
  LoopOverlap(LoopOp loop, int64_t &number)
      : loop(loop), program(loop->getParentOfType<ProgramOp>()), body(loop.getBlock()),
        count(loop.getCount()), by(loop.getReverse() ? -1 : 1), number(number) {}

  /// Whether `op` gathers what may be gathered an iteration earlier.
  bool mayPrefetch(MemoryCollectiveOpInterface op);
  void prefetch(MemoryCollectiveOpInterface op);
  /// Starts `op` so that it ends in the next iteration, if that is possible.
  void defer(MemoryCollectiveOpInterface op);

private:
  /// Where memory lies in another iteration, or another buffer.
  struct Move {
    llvm::SmallDenseMap<Value, Value> roots; ///< what stands for a buffer
    Value index;                             ///< the iteration's number, if it is not known
    int64_t iteration = 0;                   ///< if it is

    explicit Move(Value index) : index(index) {}
    explicit Move(int64_t iteration) : iteration(iteration) {}
  };
  Value rebuild(OpBuilder &b, Value memory, const Move &move);
  Operation *clone(OpBuilder &b, Operation *op, const Move &move);
  void redirect(MutableArrayRef<OpOperand> operands, Value buffer, const Move &move);

  int64_t firstIteration() { return by > 0 ? 0 : count - 1; }
  int64_t lastIteration() { return by > 0 ? count - 1 : 0; }
  bool isOfIteration(SlotOp slot);
  Value shiftedAgain(OpBuilder &b, ShiftOp shift, Value moved);
  bool dependsOnIteration(Value memory);
  bool isWritten(Value root);
  std::optional<SmallVector<LoopUse>> uses(Value root);
  Value doubleBuffer(Value buffer);
  /// The buffer of the iteration that comes `later` after this one.
  Value turn(OpBuilder &b, Value buffers, int64_t later);
  Value currentBuffer(OpBuilder &b, Value buffers, int64_t iteration);
  Value shifted(OpBuilder &b, int64_t later);
  bool commute(ArrayRef<Operation *> late, Operation *before);

  LoopOp loop;
  ProgramOp program;
  Block &body;
  int64_t count, by;
  int64_t &number;
};
} // namespace

/// Where `memory` is part of a buffer that is replaced, or of a slot of the loop's
/// iteration: that part, after `move`.
Value LoopOverlap::rebuild(OpBuilder &b, Value memory, const Move &move) {
  Operation *op = memory.getDefiningOp();
  if (!isa_and_nonnull<SlotOp, ViewOp, WindowOp>(op)) {
    Value other = move.roots.lookup(memory);
    return other ? other : memory;
  }
  Value base = rebuild(b, op->getOperand(0), move);
  if (auto slot = dyn_cast<SlotOp>(op); slot && isOfIteration(slot)) {
    auto shift = slot.getIndex().getDefiningOp<ShiftOp>();
    if (move.index)
      return SlotOp::create(b, op->getLoc(), slot.getType(), base,
                            shift ? shiftedAgain(b, shift, move.index) : move.index);
    int64_t number = shift ? shift.evaluate(move.iteration) : move.iteration;
    return ViewOp::create(b, op->getLoc(), slot.getType(), base,
                          number * slot.getType().getNumElements());
  }
  IRMapping mapping;
  mapping.map(op->getOperand(0), base);
  // A shift of an outer loop's number may be in the body of this one.
  if (auto slot = dyn_cast<SlotOp>(op))
    if (auto shift = slot.getIndex().getDefiningOp<ShiftOp>(); shift && shift.getIndex() != loop.getIndex())
      mapping.map(slot.getIndex(), b.clone(*shift)->getResult(0));
  return b.clone(*op, mapping)->getResult(0);
}

Operation *LoopOverlap::clone(OpBuilder &b, Operation *op, const Move &move) {
  IRMapping mapping;
  for (Value operand : op->getOperands())
    if (isa<MemRefType>(operand.getType()) && !mapping.contains(operand))
      mapping.map(operand, rebuild(b, operand, move));
  return b.clone(*op, mapping);
}

/// Moves those of an op's operands that are in `buffer`.
void LoopOverlap::redirect(MutableArrayRef<OpOperand> operands, Value buffer, const Move &move) {
  for (OpOperand &operand : operands)
    if (isa<MemRefType>(operand.get().getType()) && rootOf(operand.get()) == buffer) {
      OpBuilder b(operand.getOwner());
      operand.set(rebuild(b, operand.get(), move));
    }
}

/// Whether the slot is another one in each iteration: no double buffer, nor of another loop.
bool LoopOverlap::isOfIteration(SlotOp slot) {
  auto shift = slot.getIndex().getDefiningOp<ShiftOp>();
  if (!shift)
    return slot.getIndex() == loop.getIndex();
  return shift.getIndex() == loop.getIndex() && !shift.getModulo();
}

/// What `shift` makes of `moved`, the loop's iteration number or a shift of it.
Value LoopOverlap::shiftedAgain(OpBuilder &b, ShiftOp shift, Value moved) {
  auto first = moved.getDefiningOp<ShiftOp>();
  int64_t by = first ? int64_t(first.getBy()) : 0;
  return ShiftOp::create(b, shift.getLoc(), b.getIndexType(), loop.getIndex(),
                         int64_t(shift.getBy()) + (shift.getMirrored() ? -by : by), IntegerAttr(),
                         shift.getMirrored());
}

/// Whether another iteration has another part; numbers of other loops stay.
bool LoopOverlap::dependsOnIteration(Value memory) {
  for (Operation *op = memory.getDefiningOp(); isa_and_nonnull<SlotOp, ViewOp, WindowOp>(op);
       op = op->getOperand(0).getDefiningOp())
    if (auto slot = dyn_cast<SlotOp>(op); slot && isOfIteration(slot))
      return true;
  return false;
}

/// How the ops of the body use a buffer, in their order. Nothing if it is used elsewhere,
/// or if it is a double buffer already.
std::optional<SmallVector<LoopUse>> LoopOverlap::uses(Value root) {
  llvm::SmallMapVector<Operation *, LoopUse, 8> found;
  SmallVector<Value> parts{root};
  while (!parts.empty()) {
    Value part = parts.pop_back_val();
    for (OpOperand &use : part.getUses()) {
      Operation *op = use.getOwner();
      if (isa<ViewOp>(op)) {
        parts.push_back(op->getResult(0));
        continue;
      }
      if (op->getBlock() != &body || isa<SlotOp, WindowOp>(op))
        return std::nullopt;
      LoopUse &entry = found.try_emplace(op, LoopUse{op}).first->second;
      SmallVector<MemoryEffects::EffectInstance> effects;
      cast<MemoryEffectOpInterface>(op).getEffects(effects);
      for (MemoryEffects::EffectInstance &effect : effects)
        if (effect.getEffectValue<OpOperand *>() == &use) {
          entry.reads |= isa<MemoryEffects::Read>(effect.getEffect());
          entry.writes |= isa<MemoryEffects::Write>(effect.getEffect());
        }
    }
  }
  SmallVector<LoopUse> list(llvm::make_second_range(found));
  llvm::sort(list, [](const LoopUse &a, const LoopUse &b) { return a.op->isBeforeInBlock(b.op); });
  return list;
}

/// Whether the loop writes to `root`.
bool LoopOverlap::isWritten(Value root) {
  ProgramWalk walk(program);
  WalkResult result = loop.walk([&](Operation *op) {
    bool writes = llvm::any_of(walk.accesses(op), [&](const PartAccess &access) {
      return access.writes && access.root == root;
    });
    return writes ? WalkResult::interrupt() : WalkResult::advance();
  });
  return result.wasInterrupted();
}

/// A double buffer for `buffer`.
Value LoopOverlap::doubleBuffer(Value buffer) {
  auto old = buffer.getDefiningOp<BufferOp>();
  SmallVector<int64_t> shape{2};
  llvm::append_range(shape, old.getType().getShape());
  OpBuilder b(old);
  return BufferOp::create(b, old.getLoc(), MemRefType::get(shape, old.getType().getElementType()),
                          (old.getName() + ".turns." + Twine(number)).str(), old.getCategory(),
                          nullptr, nullptr, nullptr, nullptr);
}

static MemRefType slotTypeOf(Value buffers) {
  auto type = cast<MemRefType>(buffers.getType());
  return MemRefType::get(type.getShape().drop_front(), type.getElementType());
}

Value LoopOverlap::turn(OpBuilder &b, Value buffers, int64_t later) {
  auto index = ShiftOp::create(b, loop.getLoc(), b.getIndexType(), loop.getIndex(), later * by,
                               b.getI64IntegerAttr(2));
  return SlotOp::create(b, loop.getLoc(), slotTypeOf(buffers), buffers, index);
}

Value LoopOverlap::currentBuffer(OpBuilder &b, Value buffers, int64_t iteration) {
  MemRefType type = slotTypeOf(buffers);
  return ViewOp::create(b, loop.getLoc(), type, buffers, iteration % 2 * type.getNumElements());
}

/// The number of the iteration that comes `later` after this one.
Value LoopOverlap::shifted(OpBuilder &b, int64_t later) {
  return ShiftOp::create(b, loop.getLoc(), b.getIndexType(), loop.getIndex(), later * by,
                         IntegerAttr());
}

//===--- what is gathered ---------------------------------------------------===//

bool LoopOverlap::mayPrefetch(MemoryCollectiveOpInterface op) {
  SmallVector<Value> sources = op.getSources(), targets = op.getTargets();
  // Of what goes around a ring a device would hold a part more.
  if (op.isPermutation() || op.getScratch() || sources.empty() ||
      !llvm::any_of(sources, [&](Value source) { return dependsOnIteration(source); }))
    return false;
  for (Value source : sources)
    if (isWritten(rootOf(source)))
      return false;
  // What comes after the gather reads it, until a kernel writes something else in its place.
  return llvm::all_of(targets, [&](Value target) {
    auto buffer = target.getDefiningOp<BufferOp>();
    auto list = buffer && !buffer.isPersistent() ? uses(target) : std::nullopt;
    if (!list || list->front().op != op || list->front().reads)
      return false;
    for (LoopUse &use : llvm::drop_begin(*list))
      if (use.writes) {
        auto launch = dyn_cast<LaunchOp>(use.op);
        return launch && llvm::is_contained(launch.getOutputs(), target);
      }
    return true;
  });
}

void LoopOverlap::prefetch(MemoryCollectiveOpInterface op) {
  Location loc = op->getLoc();
  SmallVector<std::pair<Value, Value>> buffers; // of targets
  for (Value target : op.getTargets())
    buffers.push_back({target, doubleBuffer(target)});

  OpBuilder before(loop);
  Move first(firstIteration());
  for (auto [target, both] : buffers)
    first.roots[target] = currentBuffer(before, both, firstIteration());
  setAsyncToken(clone(before, op, first), number);

  OpBuilder b(op);
  WaitOp::create(b, loc, number);
  auto when = WhenOp::create(b, loc, loop.getIndex(), by > 0 ? 0 : 1, by > 0 ? count - 1 : count);
  OpBuilder inside = OpBuilder::atBlockBegin(&when.getBlock());
  Move next(shifted(inside, 1));
  for (auto [target, both] : buffers)
    next.roots[target] = turn(inside, both, 1);
  setAsyncToken(clone(inside, op, next), number);

  for (auto [target, both] : buffers) {
    Move now(loop.getIndex());
    now.roots[target] = turn(b, both, 0);
    // The results of a kernel that is the first to write there are another value.
    SmallVector<LoopUse> list = *uses(target);
    for (LoopUse &use : llvm::drop_begin(list)) {
      auto launch = dyn_cast<LaunchOp>(use.op);
      MutableArrayRef<OpOperand> reading =
          use.writes ? launch.getInputsMutable() : use.op->getOpOperands();
      redirect(reading, target, now);
      if (use.writes)
        break;
    }
  }
  op->erase();
  ++number;
}

//===--- what is reduced ----------------------------------------------------===//

/// Whether the ops `late` of each iteration may run in the next one, just after those
/// up to `before`.
bool LoopOverlap::commute(ArrayRef<Operation *> late, Operation *before) {
  SmallVector<Operation *> others;
  for (Operation &op : body) {
    if (&op == before)
      break;
    op.walk([&](Operation *nested) { others.push_back(nested); });
  }
  ProgramWalk walk(program);
  for (int64_t i = 0; i + 1 < count; ++i) {
    SmallVector<PartAccess> mine;
    walk.setIteration(loop, by > 0 ? i : count - 1 - i);
    for (Operation *op : late)
      llvm::append_range(mine, walk.accesses(op));
    walk.setIteration(loop, by > 0 ? i + 1 : count - 2 - i);
    for (Operation *op : others)
      for (const PartAccess &access : walk.accesses(op))
        if (llvm::any_of(mine, [&](const PartAccess &a) { return a.conflicts(access); }))
          return false;
  }
  return true;
}

void LoopOverlap::defer(MemoryCollectiveOpInterface op) {
  SmallVector<Value> sources = op.getSources(), targets = op.getTargets();
  if (op.getScratch() || sources.empty() || targets.empty())
    return;
  // What has to come after it, and after that: it runs in the next iteration.
  SmallVector<Operation *> late;
  ProgramWalk walk(program);
  SmallVector<PartAccess> touched = walk.accesses(op);
  for (Operation *next = op->getNextNode(); next; next = next->getNextNode()) {
    SmallVector<PartAccess> mine = walk.accesses(next);
    bool follows = llvm::any_of(mine, [&](const PartAccess &a) {
      return llvm::any_of(touched, [&](const PartAccess &t) { return a.conflicts(t); });
    });
    if (!follows)
      continue;
    if (queueOf(next) || isa<WaitOp, StoreIndexOp>(next) || next->getNumRegions())
      return;
    late.push_back(next);
    llvm::append_range(touched, mine);
  }
  // Sources are made before it, results are used after it, and nowhere else.
  SmallVector<Value> turns;
  for (Value source : sources) {
    auto buffer = source.getDefiningOp<BufferOp>();
    auto list = buffer && !buffer.isPersistent() ? uses(source) : std::nullopt;
    if (!list || list->back().op != op || list->front().reads)
      return;
    if (!llvm::is_contained(turns, source))
      turns.push_back(source);
  }
  for (Value target : targets) {
    if (auto buffer = target.getDefiningOp<BufferOp>(); buffer && !buffer.isPersistent()) {
      auto list = uses(target);
      if (!list || list->front().op != op || list->front().reads)
        return;
      turns.push_back(target);
    } else if (!dependsOnIteration(target)) {
      return;
    }
  }
  if (!commute(late, op))
    return;

  Move now(loop.getIndex()), previous(Value{}), last(lastIteration());
  OpBuilder b(op), atBegin = OpBuilder::atBlockBegin(&body), after(loop->getContext());
  after.setInsertionPointAfter(loop);
  WaitOp::create(b, op->getLoc(), number);
  setAsyncToken(op, number);
  std::optional<OpBuilder> inside;
  if (!late.empty()) {
    OpBuilder behind(op->getContext());
    behind.setInsertionPointAfter(op);
    auto when = WhenOp::create(behind, op->getLoc(), loop.getIndex(), by > 0 ? 1 : 0,
                               by > 0 ? count : count - 1);
    inside = OpBuilder::atBlockBegin(&when.getBlock());
    previous.index = shifted(*inside, -1);
  }
  for (Value buffer : turns) {
    Value both = doubleBuffer(buffer);
    now.roots[buffer] = turn(atBegin, both, 0);
    if (inside)
      previous.roots[buffer] = turn(*inside, both, -1);
    last.roots[buffer] = currentBuffer(after, both, lastIteration());
  }
  for (Operation *next : late) {
    clone(*inside, next, previous);
    clone(after, next, last);
  }
  for (Operation *next : llvm::reverse(late))
    next->erase();
  for (Value buffer : turns) {
    SmallVector<LoopUse> list = *uses(buffer);
    for (LoopUse &use : list)
      redirect(use.op->getOpOperands(), buffer, now);
  }
  ++number;
}

void exec::overlapLoops(ProgramOp program, int64_t minBytes, int64_t &number) {
  SmallVector<LoopOp> loops;
  program.walk([&](LoopOp loop) {
    bool fine = int64_t(loop.getCount()) > 1 && !loop.getTimes();
    loop.getBody().walk([&](Operation *op) {
      auto collective = dyn_cast<MemoryCollectiveOpInterface>(op);
      fine &= !isa<LoopOp, CallOp>(op) && !(collective && leavesProgram(collective));
    });
    if (fine)
      loops.push_back(loop);
  });
  for (LoopOp loop : loops) {
    LoopOverlap overlap(loop, number);
    SmallVector<MemoryCollectiveOpInterface> collectives;
    for (auto op : loop.getBlock().getOps<MemoryCollectiveOpInterface>())
      if (bytesOf(op) >= minBytes)
        collectives.push_back(op);
    SmallVector<MemoryCollectiveOpInterface> others;
    for (MemoryCollectiveOpInterface op : collectives)
      if (overlap.mayPrefetch(op))
        overlap.prefetch(op);
      else
        others.push_back(op);
    for (MemoryCollectiveOpInterface op : others)
      overlap.defer(op);
  }
}
