//===- MemoryProfile.cpp - what memory a program holds, and when -------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "meshwright/MemoryProfile.h"

#include "Dist/Programs.h"
#include "Liveness.h"

#include "llvm/ADT/MapVector.h"

#include <numeric>

using namespace mlir;
using namespace meshwright;
using namespace meshwright::exec;

int64_t CategoryBytes::total() const {
  return std::accumulate(bytes.begin(), bytes.end(), int64_t(0));
}

static int64_t heldBytes(BufferOp buffer) {
  return llvm::alignTo(buffer.getBytes(), MW_ALIGNMENT);
}

namespace {
class Profiler {
public:
  explicit Profiler(ModuleOp module);
  /// Of an entry point with all that outlives it, or of a called program alone.
  MemoryProfile profile(ProgramOp program);

private:
  const MemoryProfile &calleeOf(CallOp call);
  void findWriters(ProgramOp program, const ProgramLiveness &liveness,
                   SmallVectorImpl<HeldBuffer *> &largest);
  /// The op that writes `memory` first, looked for inside calls too.
  /// `memory` becomes what that op's program knows it as.
  Operation *writerOf(Value &memory, const ProgramLiveness &liveness, StringAttr &task);

  SymbolTableCollection symbols;
  /// What every entry point finds and leaves: one buffer of each.
  llvm::MapVector<std::pair<unsigned, StringRef>, BufferOp> persistent;
  std::map<Operation *, MemoryProfile> callees;
};
} // namespace

Profiler::Profiler(ModuleOp module) {
  module.walk([&](BufferOp buffer) {
    if (!buffer.isPersistent() || isOffloaded(buffer.getType()))
      return;
    unsigned kind = buffer.getVariable() ? 0 : buffer.getInput() ? 1 : 2;
    StringRef name = kind == 0   ? buffer.getVariable().value()
                     : kind == 1 ? buffer.getInput().value()
                                 : buffer.getOutput().value();
    persistent.insert({{kind, name}, buffer});
  });
}

const MemoryProfile &Profiler::calleeOf(CallOp call) {
  auto callee = symbols.lookupNearestSymbolFrom<ProgramOp>(call, call.getCalleeAttr());
  auto found = callees.find(callee);
  if (found == callees.end())
    found = callees.insert({callee, profile(callee)}).first;
  return found->second;
}

Operation *Profiler::writerOf(Value &memory, const ProgramLiveness &liveness, StringAttr &task) {
  for (const OpAccess &access : liveness.accesses(memory)) {
    if (!access.writes)
      continue;
    auto call = dyn_cast<CallOp>(access.op);
    if (!call)
      return access.op;
    if (!task)
      task = call->getAttrOfType<StringAttr>(dist::taskAttr);
    auto callee = symbols.lookupNearestSymbolFrom<ProgramOp>(call, call.getCalleeAttr());
    for (auto [argument, operand] :
         llvm::zip(callee.getBlock().getArguments(), call->getOperands()))
      if (operand == memory) {
        Value inside = argument;
        if (Operation *writer = writerOf(inside, ProgramLiveness(callee), task)) {
          memory = inside;
          return writer;
        }
      }
    return call;
  }
  return nullptr;
}

/// Into how many slices of `memory` loops around `writer` write.
static int64_t slicesOf(Operation *writer, Value memory) {
  for (Value operand : writer->getOperands()) {
    int64_t slices = 1;
    while (operand != memory) {
      Operation *op = operand.getDefiningOp();
      if (!isa_and_present<SlotOp, ViewOp, WindowOp>(op))
        break;
      operand = op->getOperand(0);
      if (isa<SlotOp>(op))
        slices *= cast<MemRefType>(operand.getType()).getDimSize(0);
    }
    if (operand == memory)
      return slices;
  }
  return 1;
}

static HeldBuffer heldIn(BufferOp buffer) {
  HeldBuffer result;
  result.buffer = buffer;
  result.bytes = heldBytes(buffer);
  return result;
}

void Profiler::findWriters(ProgramOp program, const ProgramLiveness &liveness,
                           SmallVectorImpl<HeldBuffer *> &largest) {
  for (HeldBuffer *held : largest) {
    if (held->buffer->getParentOfType<ProgramOp>() != program)
      continue; // found with its own program
    Value memory = held->buffer.getMemory();
    held->writer = writerOf(memory, liveness, held->task);
    if (held->writer)
      held->slices = std::max<int64_t>(1, slicesOf(held->writer, memory) * held->bytes /
                                              heldBytes(held->buffer));
  }
}

MemoryProfile Profiler::profile(ProgramOp program) {
  MemoryProfile result;
  ProgramLiveness liveness(program);
  // Time counts ops that do something, not names of memory.
  SmallVector<int64_t> done(liveness.size() + 1, 0);
  program.walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (op != program && !isMemoryEffectFree(op))
      done[liveness.numberOf(op) + 1] = 1;
  });
  std::partial_sum(done.begin(), done.end(), done.begin());
  result.ops = done.back();
  result.at.resize(result.ops);
  program.walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (op != program && !isMemoryEffectFree(op))
      result.at[done[liveness.numberOf(op)]] = op;
  });
  // What a loop fills and empties, in its first iteration and in its last; under -1 all other.
  using ByIteration = std::array<CategoryBytes, 2>;
  struct Change {
    int64_t loop;
    Iteration iteration;
    Category category;
    int64_t bytes;
  };
  std::map<int64_t, SmallVector<Change>> changes; // by the op from which on
  llvm::DenseMap<BufferOp, CallOp> workspaces;
  program.walk([&](CallOp call) {
    if (Value workspace = call.getWorkspace())
      workspaces[workspace.getDefiningOp<BufferOp>()] = call;
    if (auto task = call->getAttrOfType<StringAttr>(dist::taskAttr))
      result.tasks.push_back({done[liveness.numberOf(call)], task});
  });
  constexpr Iteration iterations[] = {Iteration::First, Iteration::Last};
  changes[0];
  if (!program.isPrivate())
    for (auto &[name, buffer] : persistent)
      for (Iteration iteration : iterations)
        changes[0].push_back({-1, iteration, buffer.getCategory(), heldBytes(buffer)});
  // In numbers of ops that count, from the op that uses a buffer first to the one after the last.
  SmallVector<std::pair<BufferOp, Lifetime>> lives;
  for (auto buffer : program.getBlock().getOps<BufferOp>()) {
    if (buffer.getVariable())
      for (const OpAccess &access : liveness.accesses(buffer.getMemory()))
        if (access.writes) {
          int64_t op = done[liveness.numberOf(access.op)];
          result.firstUpdate = std::min(op, result.firstUpdate.value_or(op));
        }
    bool counts = !buffer.isPersistent() && !isOffloaded(buffer.getType());
    std::optional<Lifetime> life = counts ? liveness.life(buffer) : std::nullopt;
    if (!life)
      continue;
    lives.push_back({buffer, *life});
    int64_t bytes = heldBytes(buffer);
    auto [begin, isNew] = result.begins.try_emplace(done[life->times().front()], MemoryProfile::Begin{buffer, bytes});
    if (!isNew && bytes > begin->second.bytes)
      begin->second = {buffer, bytes};
    CallOp call = workspaces.lookup(buffer);
    for (Iteration iteration : iterations) {
      int64_t loop = -1, before = 0;
      for (int64_t time : life->times()) {
        int64_t bytes = life->bytesAt(time, iteration, MW_ALIGNMENT), now = life->loopAt(time);
        SmallVector<Change> &at = changes[done[time]];
        if (!call) {
          at.push_back({loop, iteration, buffer.getCategory(), -before});
          at.push_back({now, iteration, buffer.getCategory(), bytes});
        } else if ((bytes > 0) != (before > 0)) {
          for (HeldBuffer inside : calleeOf(call).atPeak)
            at.push_back({-1, iteration, inside.buffer.getCategory(),
                          bytes > 0 ? inside.bytes : -inside.bytes});
        }
        loop = now;
        before = bytes;
      }
    }
  }

  std::map<int64_t, ByIteration> live;
  Iterations atPeak;
  for (auto &[op, by] : changes) {
    if (op == result.ops && op > 0)
      break;
    for (const Change &change : by)
      live[change.loop][unsigned(change.iteration)][change.category] += change.bytes;
    CategoryBytes now;
    Iterations chosen;
    for (auto &[loop, held] : live) {
      Iteration most = held[1].total() > held[0].total() ? Iteration::Last : Iteration::First;
      chosen[loop] = most;
      for (size_t i = 0; i < now.bytes.size(); ++i)
        now.bytes[i] += held[unsigned(most)].bytes[i];
    }
    if (result.points.empty() || !(result.points.back().live == now))
      result.points.push_back({op, now});
    if (now.total() > result.peakBytes) {
      result.peakBytes = now.total();
      result.peakOp = op;
      atPeak = chosen;
    }
  }

  if (!program.isPrivate())
    for (auto &[name, buffer] : persistent)
      result.atPeak.push_back(heldIn(buffer));
  // The op at the peak, as one that counts and as one of all.
  int64_t peak = std::upper_bound(done.begin(), done.end(), result.peakOp) - done.begin() - 1;
  for (auto &[buffer, life] : lives) {
    int64_t held = life.bytesAt(peak, atPeak, MW_ALIGNMENT);
    if (held == 0)
      continue;
    CallOp call = workspaces.lookup(buffer);
    if (!call) {
      result.atPeak.push_back(heldIn(buffer));
      result.atPeak.back().bytes = held;
      continue;
    }
    auto task = call->getAttrOfType<StringAttr>(dist::taskAttr);
    for (HeldBuffer inside : calleeOf(call).atPeak) {
      if (!inside.task)
        inside.task = task;
      result.atPeak.push_back(inside);
    }
  }
  llvm::sort(result.atPeak, [](HeldBuffer a, HeldBuffer b) {
    return std::pair(-a.bytes, a.buffer.getName()) < std::pair(-b.bytes, b.buffer.getName());
  });
  SmallVector<HeldBuffer *> largest;
  for (HeldBuffer &held : result.atPeak)
    if (!held.buffer.isPersistent() && largest.size() < MemoryProfile::attributed)
      largest.push_back(&held);
  findWriters(program, liveness, largest);
  return result;
}

std::map<std::string, MemoryProfile> exec::profileMemory(ModuleOp module) {
  Profiler profiler(module);
  std::map<std::string, MemoryProfile> profiles;
  for (auto program : module.getOps<ProgramOp>())
    if (!program.isPrivate())
      profiles[program.getSymName().str()] = profiler.profile(program);
  return profiles;
}
