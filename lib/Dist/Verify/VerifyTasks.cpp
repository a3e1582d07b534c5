//===- VerifyTasks.cpp - whether pipeline stages keep to their schedule ------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "VerifyTasks.h"

#include "Dist/Programs.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

#include <map>
#include <set>

using namespace mlir;
using namespace meshwright;
using namespace meshwright::dist;

namespace {
/// What the name of a task says: "F3.1" is forward of microbatch 3 in chunk 1; B is backward, W weight.
struct Task {
  StringRef name;
  char kind;
  int64_t microbatch, chunk;
};
using TaskCalls = llvm::MapVector<Operation *, Task>;

/// Sender, receiver, number, and the group's identity.
using Channel = std::tuple<int64_t, int64_t, int64_t, const void *>;
struct Messages {
  SmallVector<SendOp> sent;
  SmallVector<RecvOp> received;
};
} // namespace

static std::optional<Task> readTask(StringRef name) {
  Task task{name, name.empty() ? '\0' : name.front(), 0, 0};
  auto [microbatch, chunk] = name.drop_front(!name.empty()).split('.');
  auto isNumber = [](StringRef text, int64_t &number) {
    return !text.empty() && llvm::all_of(text, llvm::isDigit) && !text.getAsInteger(10, number);
  };
  bool fine = StringRef("FBW").contains(task.kind) && isNumber(microbatch, task.microbatch) &&
              isNumber(chunk, task.chunk);
  return fine ? std::optional(task) : std::nullopt;
}

/// The calls of tasks in their order.
static FailureOr<TaskCalls> callsOf(func::FuncOp function) {
  TaskCalls calls;
  for (auto call : function.getBody().front().getOps<func::CallOp>())
    if (auto name = call->getAttrOfType<StringAttr>(taskAttr)) {
      std::optional<Task> task = readTask(name);
      if (!task)
        return call.emitOpError("'") << name.getValue()
                                     << "' is no task; one looks like F3.1, B3.1 or W3.1, "
                                        "microbatch 3 of chunk 1";
      calls[call] = *task;
    }
  return calls;
}

//===--- activations in flight ---------------------------------------------------===//

static LogicalResult verifyHeld(func::FuncOp function, const TaskCalls &calls) {
  auto program = function->getParentOfType<ModuleOp>();
  auto claim = program->getAttrOfType<IntegerAttr>(heldAttr);
  if (!claim)
    return success();
  // Forward tasks by the last one that reads a result of theirs. Sums go on to the next
  // forward task: they are nothing that is kept for a backward one.
  std::map<Operation *, SmallVector<Operation *>> endingAt;
  for (auto &[op, task] : calls) {
    if (task.kind != 'F')
      continue;
    Operation *last = nullptr;
    for (Operation *user : op->getUsers()) {
      auto reader = calls.find(user);
      if (reader != calls.end() && reader->second.kind != 'F' &&
          (!last || last->isBeforeInBlock(user)))
        last = user;
    }
    if (last)
      endingAt[last].push_back(op);
  }
  llvm::SetVector<Operation *> held;
  std::set<Operation *> kept;
  for (auto &[last, ops] : endingAt)
    kept.insert(ops.begin(), ops.end());
  for (auto &[op, task] : calls) {
    if (kept.count(op))
      held.insert(op);
    if (int64_t(held.size()) > claim.getInt()) {
      InFlightDiagnostic error = op->emitOpError("runs while the stage keeps results of ")
                                 << held.size() << " forward tasks, ";
      llvm::interleaveComma(held, error, [&](Operation *kept) { error << calls.lookup(kept).name; });
      return error << "; its schedule allows " << claim.getInt() << " at most";
    }
    for (Operation *done : endingAt[op])
      held.remove(done);
  }
  return success();
}

//===--- what crosses stages -----------------------------------------------------===//

/// The task that makes what is sent, if one does.
static std::optional<Task> makerOf(Value value, const TaskCalls &calls) {
  while (Operation *op = value.getDefiningOp()) {
    auto task = calls.find(op);
    if (task != calls.end())
      return task->second;
    if (op->getNumOperands() == 0)
      break;
    bool one = op->getNumOperands() == op->getNumResults();
    value = op->getOperand(one ? cast<OpResult>(value).getResultNumber() : 0);
  }
  return std::nullopt;
}

/// The tasks that read what is received, or what ops between make of it.
static void addReaders(Value value, const TaskCalls &calls, SmallVectorImpl<Task> &readers) {
  for (OpOperand &use : value.getUses()) {
    Operation *op = use.getOwner();
    auto task = calls.find(op);
    if (task != calls.end()) {
      readers.push_back(task->second);
      continue;
    }
    bool one = op->getNumOperands() == op->getNumResults();
    for (OpResult result : op->getResults())
      if (!one || result.getResultNumber() == use.getOperandNumber())
        addReaders(result, calls, readers);
  }
}

namespace {
class Crossings {
public:
  explicit Crossings(ArrayRef<TaskCalls> calls) : calls(calls) {
    for (auto [stage, tasks] : llvm::enumerate(calls))
      for (auto &[op, task] : tasks) {
        microbatches = std::max(microbatches, task.microbatch + 1);
        stageOf[task.chunk] = stage;
        hasBackward |= task.kind == 'B';
      }
  }

  LogicalResult add(const Channel &channel, Messages &messages);
  LogicalResult verifyBoundaries(ArrayRef<func::FuncOp> entries);

private:
  ArrayRef<TaskCalls> calls;
  int64_t microbatches = 0;
  std::map<int64_t, int64_t> stageOf;
  bool hasBackward = false;
  /// Chunks, from and to, of forward and of backward tasks.
  std::set<std::pair<int64_t, int64_t>> forward, backward;
};
} // namespace

LogicalResult Crossings::add(const Channel &channel, Messages &messages) {
  auto [from, to, number, group] = channel;
  std::map<int64_t, SendOp> carried; // by microbatch
  for (auto [send, recv] : llvm::zip(messages.sent, messages.received)) {
    std::optional<Task> maker = makerOf(send.getX(), calls[from]);
    SmallVector<Task> readers;
    addReaders(recv.getY(), calls[to], readers);
    if (!maker || readers.empty())
      continue; // of what comes before or after the tasks
    for (const Task &reader : readers) {
      if (reader.microbatch != maker->microbatch) {
        InFlightDiagnostic error = recv.emitOpError("gives ")
                                   << reader.name << " what " << maker->name
                                   << " has made, which is another microbatch's";
        error.attachNote(send.getLoc()) << "sent here";
        return error;
      }
      if (maker->kind == 'F' && reader.kind == 'F')
        forward.insert({maker->chunk, reader.chunk});
      if (maker->kind == 'B' && reader.kind == 'B')
        backward.insert({maker->chunk, reader.chunk});
    }
    auto [known, isNew] = carried.insert({maker->microbatch, send});
    if (!isNew) {
      InFlightDiagnostic error = send.emitOpError("sends what ")
                                 << maker->name << " has made a second time";
      error.attachNote(known->second.getLoc()) << "the first time";
      return error;
    }
  }
  if (carried.empty())
    return success();
  for (int64_t m = 0; m < microbatches; ++m)
    if (!carried.count(m))
      return carried.begin()->second.emitOpError("and the others of channel ")
             << number << " from stage " << from << " to stage " << to << " send nothing of "
             << "microbatch " << m << "; every one crosses once";
  return success();
}

LogicalResult Crossings::verifyBoundaries(ArrayRef<func::FuncOp> entries) {
  for (auto [chunk, stage] : stageOf) {
    auto next = stageOf.find(chunk + 1);
    if (next == stageOf.end() || next->second == stage)
      continue;
    bool there = forward.count({chunk, chunk + 1});
    bool back = !hasBackward || backward.count({chunk + 1, chunk});
    if (!there || !back) {
      func::FuncOp entry = entries[there ? next->second : stage];
      return entry.emitOpError("sends nothing ")
             << (there ? "backward" : "forward") << " from chunk " << chunk + there
             << " to chunk " << chunk + !there << "; every microbatch crosses every boundary "
             << (hasBackward ? "once each way" : "once");
    }
  }
  return success();
}

LogicalResult dist::verifyTasks(ArrayRef<func::FuncOp> entries) {
  SmallVector<TaskCalls> calls;
  for (func::FuncOp entry : entries) {
    FailureOr<TaskCalls> found = callsOf(entry);
    if (failed(found) || failed(verifyHeld(entry, *found)))
      return failure();
    calls.push_back(std::move(*found));
  }
  if (llvm::any_of(calls, [](const TaskCalls &tasks) { return tasks.empty(); }))
    return success(); // not all are stages
  std::map<Channel, Messages> channels;
  auto key = [](int64_t from, int64_t to, auto op) {
    return Channel(from, to, op.getChannel(), op.getGroup().getAsOpaquePointer());
  };
  int64_t stages = entries.size();
  for (int64_t stage = 0; stage < stages; ++stage)
    func::FuncOp(entries[stage]).walk([&, stage](Operation *op) {
      // A stage is at its coordinate along the pipeline.
      if (auto send = dyn_cast<SendOp>(op); send && int64_t(send.getTo()) < stages)
        channels[key(stage, send.getTo(), send)].sent.push_back(send);
      if (auto recv = dyn_cast<RecvOp>(op); recv && int64_t(recv.getFrom()) < stages)
        channels[key(recv.getFrom(), stage, recv)].received.push_back(recv);
    });
  Crossings crossings(calls);
  for (auto &[channel, messages] : channels)
    if (failed(crossings.add(channel, messages)))
      return failure();
  return crossings.verifyBoundaries(entries);
}
