//===- BufferCoalescing.cpp - which values share memory ---------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "BufferCoalescing.h"
#include "InsertCopies.h"

#include "Dist/Dist.h"
#include "Train/TensorType.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::exec;

static constexpr int64_t never = -1, forever = std::numeric_limits<int64_t>::max();

struct BufferCoalescing::Join {
  CoalescedMemory *a, *b;
  SlotPath prefixA, prefixB; ///< where the old roots are in the new memory
};

static SlotPath concat(const SlotPath &prefix, const SlotPath &path) {
  SlotPath result(prefix);
  llvm::append_range(result, path);
  return result;
}
static SlotPath slotOf(const SlotPath &path, LoopOp loop) { return concat(path, SlotPath{loop}); }
static SmallVector<Operation *, 2> keyOf(const SlotPath &path) {
  return SmallVector<Operation *, 2>(path.begin(), path.end());
}

//===--- building -----------------------------------------------------------===//

void BufferCoalescing::number(Block &block) {
  for (Operation &op : block) {
    numbers[&op] = ops.size();
    ops.push_back(&op);
    if (auto loop = dyn_cast<LoopOp>(op)) {
      number(loop.getBlock());
      loopEnds[&op] = ops.size() - 1;
    }
  }
}

int64_t BufferCoalescing::lastUse(Value value) {
  int64_t last = never;
  for (Operation *user : value.getUsers()) {
    int64_t at = 2 * numbers.at(user);
    for (; user->getBlock() != value.getParentBlock(); user = user->getParentOp())
      at = 2 * loopEnds.at(user->getParentOp());
    last = std::max(last, at);
  }
  return last;
}

void BufferCoalescing::addInterval(CoalescedMemory &coalesced, LiveInterval interval) {
  LiveInterval &stored = intervalStorage.emplace_back(std::move(interval));
  coalesced.intervals.insert(&stored);
  if (stored.value)
    intervals[stored.value] = &stored;
}

void BufferCoalescing::keepForever(Value value) {
  memoryOf(value).intervals.setEnd(&intervalOf(value), forever);
}

void BufferCoalescing::addValue(Value value) {
  if (!isa<RankedTensorType>(value.getType()))
    return;
  int64_t begin = never;
  if (Operation *producer = value.getDefiningOp())
    begin = 2 * (isa<LoopOp>(producer) ? loopEnds.at(producer) : numbers.at(producer)) + 1;
  else if (isa<LoopOp>(value.getParentBlock()->getParentOp()))
    begin = 2 * numbers.at(value.getParentBlock()->getParentOp()) + 1;
  contents[value] = nextContents++;
  auto coalesced = std::make_unique<CoalescedMemory>();
  addInterval(*coalesced, {LiveInterval::Contents,
                           value,
                           {},
                           begin,
                           std::max(begin, lastUse(value)),
                           contents.at(value)});
  coalesced->first = value;
  coalesced->type = train::tensor(value);
  memoryOfValue[value] = {coalesced.get(), {}};
  storage.push_back(std::move(coalesced));
}

/// Joins two memories whatever is in them.
void BufferCoalescing::require(Value a, const SlotPath &path, Value b) {
  std::optional<Join> join = findJoin(a, path, b);
  if (!join)
    llvm::report_fatal_error(
        "values that are one piece of memory by construction cannot be joined");
  apply(*join);
}

LogicalResult BufferCoalescing::joinAll(Block &block) {
  for (Operation &op : block) {
    if (isView(&op)) {
      require(op.getOperand(0), pathOf(op.getOperand(0)), op.getResult(0));
    } else if (auto accumulating = dyn_cast<train::AccumulatingOpInterface>(op)) {
      for (OpOperand &init : accumulating.getInitMutable())
        require(init.get(), pathOf(init.get()), op.getResult(0));
    } else if (auto exchange = dyn_cast<dist::ExchangeOp>(op)) {
      for (auto [x, y] : llvm::zip(exchange.getXs(), exchange.getYs()))
        require(x, pathOf(x), y);
    } else if (auto concat = dyn_cast<dist::ConcatOp>(op)) {
      for (Value x : concat.getXs())
        require(concat.getY(), pathOf(concat.getY()), x);
    } else if (auto call = dyn_cast<func::CallOp>(op)) {
      for (auto [operand, result] : llvm::zip(inPlaceAliasesOf(call), call.getResults()))
        if (operand >= 0)
          require(call->getOperand(operand), pathOf(call->getOperand(operand)), result);
    } else if (auto loop = dyn_cast<LoopOp>(op)) {
      Operation *end = loop.getBlock().getTerminator();
      unsigned carries = loop.getCarry().size();
      int64_t first = 2 * numbers.at(&op), last = 2 * loopEnds.at(&op);
      for (unsigned i = 0; i < carries; ++i) {
        Value init = loop.getCarry()[i];
        for (Value value :
             {Value(loop.getCarryArguments()[i]), end->getOperand(i), Value(loop.getCarried()[i])})
          require(init, pathOf(init), value);
      }
      auto slot = [&](Value whole, Value slice, LiveInterval::Kind kind) {
        SlotPath path = slotOf(pathOf(whole), loop);
        require(whole, path, slice);
        CoalescedMemory &coalesced = memoryOf(whole);
        coalesced.slots[keyOf(path)] = train::tensor(slice);
        addInterval(coalesced,
                    {kind, {}, pathOf(whole), first + 1, last, contents.at(whole), loop});
      };
      for (auto [whole, slice] : llvm::zip(loop.getEach(), loop.getEachArguments())) {
        sliceOf[contents.at(slice)] = contents.at(whole);
        slot(whole, slice, LiveInterval::Remaining);
      }
      for (auto [whole, slice] :
           llvm::zip(loop.getStacks(), end->getOperands().drop_front(carries)))
        slot(whole, slice, LiveInterval::Done);
      if (failed(joinAll(loop.getBlock())))
        return failure();
    }
  }
  return success();
}

LogicalResult BufferCoalescing::build() {
  Block &top = function.getBody().front();
  number(top);
  for (BlockArgument argument : top.getArguments())
    addValue(argument);
  function.walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (op == function)
      return;
    if (auto loop = dyn_cast<LoopOp>(op))
      for (BlockArgument argument : loop.getBlock().getArguments())
        addValue(argument);
    for (Value result : op->getResults())
      addValue(result);
  });

  // What persists: inputs for good; a variable's old value until it is written.
  if (failed(namePorts(top)))
    return failure();
  llvm::MapVector<StringAttr, SmallVector<Value>> accesses;
  llvm::DenseMap<StringAttr, unsigned> current;
  for (Operation &op : top) {
    if (auto get = dyn_cast<train::GetOp>(op)) {
      StringAttr name = get.getVariableAttr().getAttr();
      unsigned number = current.try_emplace(name, contents.at(get.getValue())).first->second;
      contents[get.getValue()] = number;
      intervalOf(get.getValue()).contents = number;
      accesses[name].push_back(get.getValue());
    } else if (auto set = dyn_cast<train::SetOp>(op)) {
      StringAttr name = set.getVariableAttr().getAttr();
      if (llvm::any_of(accesses[name], [](Value v) { return isa<CopyOp>(v.getDefiningOp()); }))
        return set.emitOpError("is the second write of ")
               << set.getVariableAttr() << "; one is supported";
      current[name] = contents.at(set.getValue());
      accesses[name].push_back(set.getValue());
      keepForever(set.getValue());
    }
  }
  // Contents of reads are settled now; views and copies of them follow. What a
  // window keeps occupied is all of what it is a part of.
  function.walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (!isView(op) && !isa<CopyOp>(op))
      return;
    Value from = op->getOperand(0), to = op->getResult(0);
    if (!isa<dist::SliceOp, dist::TakeOp>(op))
      contents[to] = contents.at(from);
    held[to] = isView(op) ? heldBy(from) : contents.at(from);
    intervalOf(to).contents = held[to];
  });
  // Parts are in windows of their whole, apart from one another.
  function.walk([&](dist::ConcatOp concat) {
    for (Value part : concat.getXs())
      for (;; part = part.getDefiningOp()->getOperand(0)) {
        contents[part] = held[part] = contents.at(concat.getY());
        intervalOf(part).contents = contents.at(part);
        if (!isView(part.getDefiningOp()))
          break;
      }
  });
  for (auto &[name, values] : accesses) {
    for (Value value : ArrayRef(values).drop_front())
      require(values.front(), {}, value);
    CoalescedMemory &coalesced = memoryOf(values.front());
    coalesced.variable = name;
    if (llvm::none_of(values, [](Value v) { return isa<CopyOp>(v.getDefiningOp()); }))
      addInterval(coalesced,
                  {LiveInterval::Contents, {}, {}, never, forever, contents.at(values.front())});
  }
  return joinAll(top);
}

/// Arguments and results are memory of their own that outlives the function: inputs and
/// outputs of a program, its caller's memory for a function that is called.
LogicalResult BufferCoalescing::namePorts(Block &top) {
  bool called = function.isPrivate();
  for (BlockArgument argument : top.getArguments()) {
    CoalescedMemory &coalesced = memoryOf(argument);
    keepForever(argument);
    if (called) {
      coalesced.argument = argument.getArgNumber();
      continue;
    }
    coalesced.input =
        function.getArgAttrOfType<StringAttr>(argument.getArgNumber(), train::inputAttr);
    if (!coalesced.input)
      return function.emitError("argument ")
             << argument.getArgNumber() << " has no train.input attribute to name its buffer";
  }
  for (OpOperand &operand : top.getTerminator()->getOpOperands()) {
    CoalescedMemory &coalesced = memoryOf(operand.get());
    keepForever(operand.get());
    if (called) {
      coalesced.result = operand.getOperandNumber();
      continue;
    }
    coalesced.output = function.getResultAttrOfType<StringAttr>(operand.getOperandNumber(),
                                                                train::outputAttr);
    if (!coalesced.output)
      return function.emitError("result ")
             << operand.getOperandNumber() << " has no train.output attribute to name its buffer";
  }
  return success();
}

//===--- conflicts ----------------------------------------------------------===//

/// Whether the op that reads `old` last and makes `next` can work in place.
bool BufferCoalescing::mayOverwrite(const LiveInterval &old, const LiveInterval &next) {
  Operation *op = ops[old.end / 2];
  if (op->hasTrait<OpTrait::IsTerminator>() || isa<LoopOp>(op))
    return true; // what is between has intervals of its own
  auto reads = [&](OpOperand &operand) {
    return operand.get() == old.value || heldBy(operand.get()) == old.contents ||
           contents.at(operand.get()) == old.contents;
  };
  // A window begins elsewhere than what would be written.
  for (OpOperand &operand : op->getOpOperands())
    if (reads(operand) && (isWindow(operand.get()) || writtenInto(next.value)))
      return false;
  if (auto launch = dyn_cast<LaunchOp>(op)) {
    auto kernel = symbols.lookupNearestSymbolFrom<func::FuncOp>(op, launch.getKernelAttr());
    auto allowed = kernel->getAttrOfType<ArrayAttr>(inplaceAttr);
    unsigned result = cast<OpResult>(next.value).getResultNumber();
    return allowed && llvm::all_of(op->getOpOperands(), [&](OpOperand &operand) {
             return !reads(operand) || llvm::any_of(allowed, [&](Attribute pair) {
               auto indices = cast<ArrayAttr>(pair);
               return cast<IntegerAttr>(indices[0]).getInt() == operand.getOperandNumber() &&
                      cast<IntegerAttr>(indices[1]).getInt() == result;
             });
           });
  }
  if (auto accumulating = dyn_cast<train::AccumulatingOpInterface>(op)) {
    MutableOperandRange init = accumulating.getInitMutable();
    return llvm::all_of(op->getOpOperands(), [&](OpOperand &operand) {
      return !reads(operand) ||
             (!init.empty() && init[0].getOperandNumber() == operand.getOperandNumber());
    });
  }
  // The addend is read where the result is written, element by element.
  if (auto product = dyn_cast<ProductOp>(op))
    return next.value == product.getResult() &&
           llvm::all_of(op->getOpOperands(), [&](OpOperand &operand) {
             return !reads(operand) ||
                    llvm::is_contained(llvm::make_pointer_range(product.getAddendMutable()),
                                       &operand);
           });
  if (auto call = dyn_cast<func::CallOp>(op)) {
    ArrayRef<int64_t> aliases = inPlaceAliasesOf(call);
    return !aliases.empty() && llvm::all_of(op->getOpOperands(), [&](OpOperand &operand) {
      return !reads(operand) || aliases[cast<OpResult>(next.value).getResultNumber()] ==
                                    int64_t(operand.getOperandNumber());
    });
  }
  // In place, tensor by tensor.
  return isa<dist::AllReduceOp, dist::ExchangeOp>(op) && llvm::all_of(op->getOpOperands(), [&](OpOperand &operand) {
           return !reads(operand) ||
                  operand.getOperandNumber() == cast<OpResult>(next.value).getResultNumber();
         });
}

bool BufferCoalescing::conflict(const LiveInterval &a, const SlotPath &pathA, const LiveInterval &b,
                                const SlotPath &pathB) {
  if (pathA.size() > pathB.size())
    return conflict(b, pathB, a, pathA);
  if (a.end < b.begin || b.end < a.begin) {
    // Apart, but perhaps by no more than the op that reads one and makes the other.
    const LiveInterval &old = a.end < b.begin ? a : b, &next = a.end < b.begin ? b : a;
    if (old.kind != LiveInterval::Contents || next.kind != LiveInterval::Contents || !next.value ||
        old.end + 1 != next.begin || next.begin % 2 == 0 || old.contents == next.contents)
      return false;
    return !mayOverwrite(old, next);
  }
  for (auto [x, y] : llvm::zip(pathA, pathB))
    if (x != y)
      return true;
  if (pathA.size() == pathB.size()) {
    // A stack still to be read is part of the whole that it is sliced from.
    if (a.kind != LiveInterval::Done && b.kind != LiveInterval::Done)
      return a.contents != b.contents;
    // A stack filled where another one is used up, slot by slot.
    return a.kind == LiveInterval::Contents || b.kind == LiveInterval::Contents ||
           a.kind == b.kind || a.loop != b.loop;
  }
  // b is in a slot of a's memory.
  if (a.kind != LiveInterval::Contents && a.loop == pathB[pathA.size()])
    return false;
  if (a.kind == LiveInterval::Done || b.kind == LiveInterval::Done)
    return true;
  // What b holds, or is still read from there, may be a slice of what a holds.
  unsigned number = b.contents;
  for (size_t depth = pathB.size(); depth > pathA.size(); --depth) {
    auto whole = sliceOf.find(number);
    if (whole == sliceOf.end())
      return true;
    number = whole->second;
  }
  return number != a.contents;
}

//===--- joining ------------------------------------------------------------===//

/// How the memories of `a` and `b` become one in which `b` is at `path` of a's memory;
/// nothing if sizes or loops do not allow it.
std::optional<BufferCoalescing::Join> BufferCoalescing::findJoin(Value a, const SlotPath &path,
                                                                 Value b) {
  Join join{&memoryOf(a), &memoryOf(b), {}, {}};
  const SlotPath &other = pathOf(b);
  auto endsWith = [](const SlotPath &longer, const SlotPath &shorter) {
    return longer.size() >= shorter.size() &&
           ArrayRef(longer).take_back(shorter.size()) == ArrayRef(shorter);
  };
  if (endsWith(path, other))
    join.prefixB.append(path.begin(), path.end() - other.size());
  else if (endsWith(other, path))
    join.prefixA.append(other.begin(), other.end() - path.size());
  else
    return std::nullopt;
  if (join.a == join.b || (join.a->isFixed() && join.b->isFixed() && !aliasing) ||
      join.a->type.getElementType() != join.b->type.getElementType())
    return std::nullopt;
  // All of a memory that moves into a slot must be inside that slot's loop.
  for (auto &[coalesced, prefix] :
       {std::pair(join.a, join.prefixA), std::pair(join.b, join.prefixB)}) {
    if (prefix.empty())
      continue;
    if (coalesced->isFixed())
      return std::nullopt;
    LoopOp loop = prefix.back();
    for (LiveInterval *interval : coalesced->intervals.all()) {
      Operation *in = interval->value ? interval->value.getParentBlock()->getParentOp()
                                      : interval->loop->getParentOp();
      if (!loop->isAncestor(in))
        return std::nullopt;
    }
  }
  // Slots of one path are of one size, and hold what is in them; so does memory
  // that outlives the program.
  std::map<SmallVector<Operation *, 2>, int64_t> sizes;
  for (auto &[coalesced, prefix] :
       {std::pair(join.a, join.prefixA), std::pair(join.b, join.prefixB)})
    for (auto &[key, type] : coalesced->slots) {
      SmallVector<Operation *, 2> moved = keyOf(prefix);
      llvm::append_range(moved, key);
      if (sizes.try_emplace(moved, bytesOf(type)).first->second != bytesOf(type))
        return std::nullopt;
    }
  for (auto &[coalesced, prefix] :
       {std::pair(join.a, join.prefixA), std::pair(join.b, join.prefixB)}) {
    auto slot = sizes.find(keyOf(prefix));
    if (!prefix.empty() && slot != sizes.end() && bytesOf(coalesced->type) > slot->second)
      return std::nullopt;
    CoalescedMemory *other = coalesced == join.a ? join.b : join.a;
    if (prefix.empty() && (coalesced == join.a ? join.prefixB : join.prefixA).empty() &&
        other->isFixed() && bytesOf(coalesced->type) > bytesOf(other->type))
      return std::nullopt;
  }
  return join;
}

void BufferCoalescing::apply(const Join &join) {
  CoalescedMemory *into = join.a, *from = join.b;
  const SlotPath &prefixInto = join.prefixA, &prefixFrom = join.prefixB;
  auto shift = [&](CoalescedMemory &coalesced, const SlotPath &prefix) {
    if (prefix.empty())
      return;
    decltype(coalesced.slots) slots;
    for (auto &[key, type] : coalesced.slots) {
      SmallVector<Operation *, 2> moved = keyOf(prefix);
      llvm::append_range(moved, key);
      slots[moved] = type;
    }
    coalesced.slots = std::move(slots);
    for (LiveInterval *interval : coalesced.intervals.all())
      interval->path = concat(prefix, interval->path);
  };
  shift(*into, prefixInto);
  shift(*from, prefixFrom);
  bool fromIsRoot = prefixFrom.empty(), intoIsRoot = prefixInto.empty();
  if (!intoIsRoot || from->isFixed() ||
      (fromIsRoot && !into->isFixed() && bytesOf(from->type) > bytesOf(into->type)))
    into->type = from->type;
  into->slots.insert(from->slots.begin(), from->slots.end());
  if (!into->isFixed()) {
    into->variable = from->variable;
    into->input = from->input;
    into->output = from->output;
  }
  if (from->argument)
    into->argument = from->argument;
  if (from->result)
    into->result = from->result;
  // The values of the smaller one move to the other.
  CoalescedMemory *kept = into, *gone = from;
  bool keptMoves = !prefixInto.empty();
  if (into->intervals.size() < from->intervals.size()) {
    std::swap(*into, *from);
    std::swap(into->intervals, from->intervals);
    std::swap(kept, gone);
    keptMoves = !prefixFrom.empty();
  }
  auto tell = [&](CoalescedMemory &coalesced) {
    for (LiveInterval *interval : coalesced.intervals.all())
      if (interval->value)
        memoryOfValue[interval->value] = {kept, interval->path};
  };
  tell(*gone);
  if (keptMoves)
    tell(*kept);
  kept->intervals.merge(gone->intervals);
}

bool BufferCoalescing::conflict(const Join &join) {
  auto conflictAt = [&](const LiveInterval &a, const LiveInterval &b) {
    return conflict(a, concat(join.prefixA, a.path), b, concat(join.prefixB, b.path));
  };
  LiveIntervals &a = join.a->intervals, &b = join.b->intervals;
  bool few = a.size() <= b.size(); // of a
  return llvm::any_of((few ? a : b).all(), [&](LiveInterval *one) {
    return (few ? b : a).anyNear(one->begin, one->end, [&](LiveInterval &other) {
      return few ? conflictAt(*one, other) : conflictAt(other, *one);
    });
  });
}

bool BufferCoalescing::tryMerge(Value a, Value b) {
  if (isWindow(a) || isWindow(b) || writtenInto(a) || writtenInto(b))
    return false;
  if (&memoryOf(a) == &memoryOf(b))
    return pathOf(a) == pathOf(b);
  std::optional<Join> join = findJoin(a, pathOf(a), b);
  if (!join || conflict(*join))
    return false;
  apply(*join);
  return true;
}

bool BufferCoalescing::alias(unsigned argument, unsigned result) {
  Block &top = function.getBody().front();
  Value from = top.getArgument(argument), to = top.getTerminator()->getOperand(result);
  CoalescedMemory &coalesced = memoryOf(from);
  if (coalesced.result || memoryOf(to).argument)
    return false;
  LiveInterval &old = intervalOf(from);
  // The caller needs it no more, so that it is free after its last use.
  coalesced.intervals.setEnd(&old, std::max(old.begin, lastUse(from)));
  aliasing = true;
  bool aliased = tryMerge(from, to);
  aliasing = false;
  if (!aliased)
    coalesced.intervals.setEnd(&old, forever);
  return aliased;
}

bool BufferCoalescing::sameAddress(Value a, Value b) {
  return &memoryOf(a) == &memoryOf(b) && pathOf(a) == pathOf(b) && !isWindow(a) && !isWindow(b) &&
         !writtenInto(a) && !writtenInto(b);
}

LogicalResult BufferCoalescing::verify() {
  for (auto &coalesced : storage)
    for (LiveInterval *a : coalesced->intervals.all()) {
      LiveInterval *b = nullptr;
      coalesced->intervals.anyNear(a->begin, a->end, [&](LiveInterval &other) {
        // Of each pair one order is enough.
        bool found = std::less<>()(a, &other) && conflict(*a, a->path, other, other.path);
        return found && (b = &other);
      });
      if (!b)
        continue;
      InFlightDiagnostic error =
          function.emitError("two values would be live in the same memory at once");
      for (const LiveInterval *interval : {a, b})
        error.attachNote(interval->value ? interval->value.getLoc() : function.getLoc())
            << (interval->value ? Type(interval->value.getType()) : Type(coalesced->type))
            << " from " << interval->begin << " to " << interval->end;
      return error;
    }
  return success();
}
