//===- PairTasks.cpp - exec-pair-tasks ---------------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Exec/Passes.h"
#include "OverlapLoops.h"
#include "ProgramWalk.h"

#include "Dist/Programs.h"

#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::exec;

namespace meshwright::exec {
#define GEN_PASS_DEF_EXECPAIRTASKS
#include "Exec/Passes.h.inc"
} // namespace meshwright::exec

using Accesses = SmallVector<PartAccess>;

static bool conflict(const Accesses &some, const Accesses &others) {
  return llvm::any_of(some, [&](const PartAccess &a) {
    return llvm::any_of(others, [&](const PartAccess &b) { return a.conflicts(b); });
  });
}

namespace {
/// One of two programs that become one.
struct Half {
  ProgramOp program;
  LoopOp loop;             ///< that the other half has its like of
  bool isMirrored = false; ///< whether the common loop counts the other way

  /// The ops of the loop's body, parted before each that needs what a collective of at least
  /// `minBytes` in the same part brings, which is in flight until there.
  SmallVector<SmallVector<Operation *>> segments(int64_t minBytes);
  /// Whether all that the iteration's number is used for can take it from the loop's other end.
  bool mayMirror();
};

/// Makes one program of two.
class Pair {
public:
  Pair(ProgramOp forward, ProgramOp backward, int64_t minBytes)
      : forward{forward, {}}, backward{backward, {}}, minBytes(minBytes) {}

  /// Whether both have a loop of one length in which something waits for a collective.
  bool findLoops();
  ProgramOp make(StringRef name);

private:
  void clone(Half &half, Operation &op, OpBuilder &b);
  void cloneBefore(Half &half, OpBuilder &b);
  void cloneBehind(Half &half, OpBuilder &b);

  Half forward, backward;
  int64_t minBytes;
  LoopOp loop; ///< of both
  IRMapping map;
  llvm::StringSet<> names; ///< of buffers
};
} // namespace

SmallVector<SmallVector<Operation *>> Half::segments(int64_t minBytes) {
  ProgramWalk walk(program);
  SmallVector<SmallVector<Operation *>> segments(1);
  Accesses inFlight; // of collectives that nothing of the other half has run beside yet
  for (Operation &op : loop.getBlock().without_terminator()) {
    Accesses mine = op.getNumRegions() ? walk.accessesInside(&op) : walk.accesses(&op);
    if (conflict(mine, inFlight)) {
      segments.emplace_back();
      inFlight.clear();
    }
    segments.back().push_back(&op);
    if (auto collective = dyn_cast<MemoryCollectiveOpInterface>(op);
        collective && bytesOf(collective) >= minBytes)
      llvm::append_range(inFlight, mine);
  }
  return segments;
}

bool Half::mayMirror() {
  return llvm::all_of(loop.getIndex().getUsers(), [&](Operation *user) {
    return isa<SlotOp, StoreIndexOp>(user) ||
           (isa<ShiftOp>(user) && user->getBlock() == &loop.getBlock());
  });
}

/// Whether ops of `program` may run among those of another one: nothing communicates with ranks of
/// other programs, which know the order, or has an async token, which the other one may have too.
static bool mayMix(ProgramOp program) {
  WalkResult result = program.walk([](Operation *op) {
    auto collective = dyn_cast<MemoryCollectiveOpInterface>(op);
    return isa<WhenOp, WaitOp, CallOp>(op) || asyncTokenOf(op) ||
                   (collective && leavesProgram(collective))
               ? WalkResult::interrupt()
               : WalkResult::advance();
  });
  return !result.wasInterrupted();
}

/// The loops of `program` in which something waits for a collective, except that of the loss: it is
/// no loop over layers, whose number those of the other task have.
static SmallVector<LoopOp> waitingLoops(ProgramOp program, int64_t minBytes) {
  SmallVector<LoopOp> loops;
  for (LoopOp loop : program.getBlock().getOps<LoopOp>())
    if (!loop.getTimes() && train::roleOf(loop) != train::Role::Loss &&
        Half{program, loop}.segments(minBytes).size() > 1)
      loops.push_back(loop);
  return loops;
}

bool Pair::findLoops() {
  if (!mayMix(forward.program) || !mayMix(backward.program))
    return false;
  SmallVector<LoopOp> others = waitingLoops(backward.program, minBytes);
  for (LoopOp mine : waitingLoops(forward.program, minBytes))
    for (LoopOp other : others) {
      Half half{backward.program, other, other.getReverse() != mine.getReverse()};
      if (mine.getCount() != other.getCount() || (half.isMirrored && !half.mayMirror()) ||
          (forward.loop && forward.loop.getCount() >= mine.getCount()))
        continue;
      forward.loop = mine;
      backward = half;
    }
  return bool(forward.loop);
}

void Pair::clone(Half &half, Operation &op, OpBuilder &b) {
  if (auto shift = dyn_cast<ShiftOp>(op);
      shift && half.isMirrored && shift.getIndex() == half.loop.getIndex()) {
    map.map(shift.getResult(),
            ShiftOp::create(b, op.getLoc(), b.getIndexType(), loop.getIndex(), shift.getBy(),
                            shift.getModuloAttr(), !shift.getMirrored())
                .getResult());
    return;
  }
  auto buffer = dyn_cast<BufferOp>(b.clone(op, map));
  if (!buffer)
    return;
  std::string name = buffer.getName().str();
  for (int64_t number = 1; !names.insert(buffer.getName()).second; ++number)
    buffer.setName(name + "." + std::to_string(number));
}

void Pair::cloneBefore(Half &half, OpBuilder &b) {
  for (Operation &op : half.program.getBlock()) {
    if (&op == half.loop)
      return;
    clone(half, op, b);
  }
}

void Pair::cloneBehind(Half &half, OpBuilder &b) {
  for (Operation *op = half.loop->getNextNode(); op; op = op->getNextNode())
    clone(half, *op, b);
}

ProgramOp Pair::make(StringRef name) {
  OpBuilder b(backward.program);
  Location loc = forward.program.getLoc();
  auto program = ProgramOp::create(b, loc, name);
  program.setSymVisibilityAttr(b.getStringAttr("private"));
  SmallVector<int32_t> sizes;
  for (unsigned segment = 0; segment < 3; ++segment) {
    sizes.push_back(0);
    for (ProgramOp half : {forward.program, backward.program})
      for (BlockArgument argument : half.getSegment(segment)) {
        map.map(argument, program.getBlock().addArgument(argument.getType(), argument.getLoc()));
        ++sizes.back();
      }
  }
  program.setArgumentSegments(sizes);

  b.setInsertionPointToEnd(&program.getBlock());
  cloneBefore(forward, b);
  cloneBefore(backward, b);
  loop = LoopOp::create(b, loc, forward.loop.getCount(), forward.loop.getReverse(), ValueRange(),
                        ValueRange(), TypeRange(), Value());
  cloneBehind(forward, b);
  cloneBehind(backward, b);

  b.setInsertionPointToEnd(&loop.getBlock());
  map.map(forward.loop.getIndex(), loop.getIndex());
  Value other = loop.getIndex();
  if (backward.isMirrored)
    other = ShiftOp::create(b, loc, b.getIndexType(), loop.getIndex(), 0, IntegerAttr(),
                            /*mirrored=*/true);
  map.map(backward.loop.getIndex(), other);
  auto first = backward.segments(minBytes), second = forward.segments(minBytes);
  for (size_t i = 0; i < std::max(first.size(), second.size()); ++i) {
    if (i < first.size())
      for (Operation *op : first[i])
        clone(backward, *op, b);
    if (i < second.size())
      for (Operation *op : second[i])
        clone(forward, *op, b);
  }
  YieldOp::create(b, loc, ValueRange());
  return program;
}

//===--- the callers --------------------------------------------------------===//

/// Whether `op` calls a task of one kind, F or B, that no other one runs beside.
static CallOp taskOf(Operation &op, StringRef kind) {
  auto call = dyn_cast<CallOp>(op);
  auto name = op.getAttrOfType<StringAttr>(dist::taskAttr);
  return call && name && name.getValue().starts_with(kind) && !op.hasAttr(pairAttr) ? call
                                                                                    : CallOp();
}

/// The call of a backward task that follows `forward` without communication in between, or null.
static CallOp nextBackward(CallOp forward) {
  for (Operation *op = forward->getNextNode(); op; op = op->getNextNode()) {
    if (CallOp backward = taskOf(*op, "B"))
      return backward;
    if (isa<CallOp, WaitOp>(op) || queueOf(op) || op->getNumRegions())
      return {};
  }
  return {};
}

/// The ops between the two that have to run before them, so that the two may run as one; nothing if
/// they may not.
static std::optional<SmallVector<Operation *>> opsBefore(CallOp forward, CallOp backward) {
  ProgramWalk walk(forward->getParentOfType<ProgramOp>());
  Accesses ofForward = walk.accesses(forward), ofBackward = walk.accesses(backward), late;
  if (conflict(ofForward, ofBackward))
    return std::nullopt;
  SmallVector<Operation *> before;
  for (Operation *op = forward->getNextNode(); op != backward; op = op->getNextNode()) {
    Accesses mine = walk.accesses(op);
    if (!isPure(op) && !conflict(mine, ofBackward)) {
      llvm::append_range(late, mine);
      continue;
    }
    if (conflict(mine, ofForward) || conflict(mine, late))
      return std::nullopt;
    before.push_back(op);
  }
  return before;
}

namespace {
class ExecPairTasks : public exec::impl::ExecPairTasksBase<ExecPairTasks> {
public:
  using ExecPairTasksBase::ExecPairTasksBase;

private:
  void runOnModule() override {
    programs.clear();
    for (auto program : llvm::to_vector(getOperation().getOps<ProgramOp>())) {
      SmallVector<CallOp> calls;
      for (Operation &op : program.getBlock())
        if (CallOp call = taskOf(op, "F"))
          calls.push_back(call);
      for (CallOp forward : calls)
        if (CallOp backward = nextBackward(forward))
          pair(forward, backward);
    }
  }

  /// A program that does what both callees do, or null if neither would run while the other waits.
  ProgramOp programOf(CallOp forward, CallOp backward) {
    auto [entry, isNew] = programs.try_emplace({forward.getCalleeAttr(), backward.getCalleeAttr()});
    if (!isNew)
      return entry->second;
    SymbolTable symbols(getOperation());
    Pair both(symbols.lookup<ProgramOp>(forward.getCallee()),
              symbols.lookup<ProgramOp>(backward.getCallee()), minBytes);
    if (both.findLoops()) {
      entry->second = both.make((forward.getCallee() + "." + backward.getCallee()).str());
      symbols.insert(entry->second);
    }
    return entry->second;
  }

  void pair(CallOp forward, CallOp backward) {
    std::optional<SmallVector<Operation *>> before = opsBefore(forward, backward);
    ProgramOp callee = before ? programOf(forward, backward) : ProgramOp();
    if (!callee)
      return;
    for (Operation *op : *before)
      op->moveBefore(forward);
    OpBuilder b(forward);
    auto concat = [](ValueRange some, ValueRange others) {
      SmallVector<Value> all(some);
      llvm::append_range(all, others);
      return all;
    };
    auto call = CallOp::create(b, forward.getLoc(), callee.getSymName(),
                               concat(forward.getInputs(), backward.getInputs()),
                               concat(forward.getUpdated(), backward.getUpdated()),
                               concat(forward.getOutputs(), backward.getOutputs()), Value());
    auto name = [](CallOp of) { return of->getAttrOfType<StringAttr>(dist::taskAttr).getValue(); };
    call->setAttr(dist::taskAttr, b.getStringAttr(name(forward) + "+" + name(backward)));
    call->setAttr(pairAttr, b.getArrayAttr({forward.getCalleeAttr(), backward.getCalleeAttr()}));
    forward.erase();
    backward.erase();
  }

  llvm::DenseMap<std::pair<Attribute, Attribute>, ProgramOp> programs;
};
} // namespace
