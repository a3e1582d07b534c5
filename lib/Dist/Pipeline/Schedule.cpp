//===- Schedule.cpp - the order in which pipeline stages work ----------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// lib/Schedule says in which order each stage does its tasks. Here they are put into
// that order, with their messages: a value is sent where it is made and received just
// before it is read. A stage whose message is not taken yet waits, so the order is found
// by running all stages side by side with one message on its way between two stages;
// where they would wait in a circle, a message is received earlier. So the programs
// end with any channel that holds a message, and the receivers' order is the senders'.
//
//===----------------------------------------------------------------------===//
#include "Dist/Passes.h"
#include "Dist/Programs.h"
#include "StagePrograms.h"
#include "meshwright/PipelineSchedule.h"

#include <deque>
#include <map>

using namespace mlir;
using namespace meshwright;
using namespace meshwright::dist;
using schedule::PipelineSchedule;
using schedule::Task;

namespace meshwright::dist {
#define GEN_PASS_DEF_DISTSCHEDULE
#include "Dist/Passes.h.inc"
} // namespace meshwright::dist

static constexpr StringLiteral orderAttr = "dist.order";

//===--- messages -----------------------------------------------------------------===//

namespace {
/// Runs the stages side by side; their ops come out in the order of their programs.
class Emission {
public:
  explicit Emission(ArrayRef<SmallVector<Operation *>> wanted);

  /// The orders, or an error at a receive that nothing is sent to.
  FailureOr<std::vector<SmallVector<Operation *>>> run();

private:
  /// Whether the op at the front of `stage` could run.
  bool advance(int64_t stage);
  /// Takes the message on its way from `from` to `stage`.
  void take(int64_t from, int64_t stage);
  bool resolve();

  ArrayRef<SmallVector<Operation *>> wanted;
  SmallVector<size_t> next;
  std::vector<SmallVector<Operation *>> order;
  std::map<std::pair<int64_t, int64_t>, SendOp> onTheWay;
  DenseSet<Operation *> taken;
  /// The receives that are still to come: from, to, channel and group.
  using Channel = std::tuple<int64_t, int64_t, int64_t, const void *>;
  template <typename Message>
  static Channel channelOf(int64_t from, int64_t to, Message message) {
    return {from, to, message.getChannel(), message.getGroup().getAsOpaquePointer()};
  }
  std::map<Channel, std::deque<RecvOp>> expected;
};
} // namespace

Emission::Emission(ArrayRef<SmallVector<Operation *>> wanted)
    : wanted(wanted), next(wanted.size(), 0), order(wanted.size()) {
  for (auto [stage, ops] : llvm::enumerate(wanted))
    for (Operation *op : ops)
      if (auto recv = dyn_cast<RecvOp>(op))
        expected[channelOf(recv.getFrom(), stage, recv)].push_back(recv);
}

void Emission::take(int64_t from, int64_t stage) {
  auto found = onTheWay.find({from, stage});
  SendOp send = found->second;
  onTheWay.erase(found);
  std::deque<RecvOp> &receives = expected[channelOf(from, stage, send)];
  if (receives.empty())
    return;
  RecvOp recv = receives.front();
  receives.pop_front();
  taken.insert(recv);
  order[stage].push_back(recv);
}

bool Emission::advance(int64_t stage) {
  if (next[stage] == wanted[stage].size())
    return false;
  Operation *op = wanted[stage][next[stage]];
  if (auto send = dyn_cast<SendOp>(op)) {
    if (!onTheWay.insert({{stage, int64_t(send.getTo())}, send}).second)
      return false;
  } else if (auto recv = dyn_cast<RecvOp>(op)) {
    if (!taken.contains(recv)) {
      if (!onTheWay.count({int64_t(recv.getFrom()), stage}))
        return false;
      take(recv.getFrom(), stage);
      return true; // Perhaps another one was before it.
    }
    ++next[stage];
    return true;
  }
  order[stage].push_back(op);
  ++next[stage];
  return true;
}

/// Of stages that all wait, one that cannot send is given way.
bool Emission::resolve() {
  for (int64_t stage = 0; stage < int64_t(wanted.size()); ++stage)
    if (next[stage] < wanted[stage].size())
      if (auto send = dyn_cast<SendOp>(wanted[stage][next[stage]])) {
        take(stage, send.getTo());
        return true;
      }
  return false;
}

FailureOr<std::vector<SmallVector<Operation *>>> Emission::run() {
  for (bool progress = true; progress;) {
    progress = false;
    for (int64_t stage = 0; stage < int64_t(wanted.size()); ++stage)
      while (advance(stage))
        progress = true;
    progress = progress || resolve();
  }
  for (int64_t stage = 0; stage < int64_t(wanted.size()); ++stage)
    if (next[stage] < wanted[stage].size())
      return wanted[stage][next[stage]]->emitOpError("waits for a message that nobody sends");
  return std::move(order);
}

//===--- the pass -----------------------------------------------------------------===//

namespace {
struct TaskBefore {
  bool operator()(const Task &a, const Task &b) const {
    return std::tie(a.microbatch, a.chunk, a.kind) < std::tie(b.microbatch, b.chunk, b.kind);
  }
};
} // namespace

/// The tasks of a function, each with its ops.
using TaskOps = std::map<Task, SmallVector<Operation *>, TaskBefore>;
static FailureOr<TaskOps> tasksOf(func::FuncOp function) {
  TaskOps tasks;
  for (Operation &op : function.getBody().front()) {
    auto name = op.getAttrOfType<StringAttr>(taskAttr);
    if (!name)
      continue;
    llvm::Expected<Task> task = Task::parse(name);
    if (!task)
      return op.emitOpError(llvm::toString(task.takeError()));
    tasks[*task].push_back(&op);
  }
  return tasks;
}

/// Whether `op` or what it calls communicates.
static bool communicates(Operation *op, SymbolTable &symbols) {
  WalkResult result = op->walk([&](Operation *inside) {
    auto repeat = dyn_cast<train::RepeatOp>(inside);
    return isa<CollectiveOpInterface>(inside) ||
                   (repeat && communicates(symbols.lookup(repeat.getCallee()), symbols))
               ? WalkResult::interrupt()
               : WalkResult::advance();
  });
  return result.wasInterrupted();
}

/// How many layers the repeats have that communicate, of the function that a task calls.
static llvm::SmallDenseSet<uint64_t> layersThatWait(ArrayRef<Operation *> ops,
                                                    SymbolTable &symbols) {
  llvm::SmallDenseSet<uint64_t> counts;
  for (Operation *op : ops)
    if (auto call = dyn_cast<func::CallOp>(op))
      symbols.lookup(call.getCallee())->walk([&](train::RepeatOp repeat) {
        if (!repeat.getTimes() && communicates(symbols.lookup(repeat.getCallee()), symbols))
          counts.insert(repeat.getCount());
      });
  return counts;
}

/// The ops of two tasks so that their calls stand side by side: first what both take.
static SmallVector<Operation *> sideBySide(ArrayRef<Operation *> first,
                                           ArrayRef<Operation *> second) {
  auto callOf = [](ArrayRef<Operation *> ops) {
    return llvm::find_if(ops, [](Operation *op) { return isa<func::CallOp>(op); });
  };
  auto one = callOf(first), other = callOf(second);
  SmallVector<Operation *> all(first.begin(), one);
  all.append(second.begin(), other);
  all.append({*one, *other});
  all.append(std::next(one), first.end());
  all.append(std::next(other), second.end());
  return all;
}

namespace {
class Scheduler {
public:
  Scheduler(ModuleOp module, schedule::ScheduleKind kind, bool pairs)
      : module(module), programs(programsOf(module)), kind(kind), pairs(pairs) {}

  LogicalResult run();

private:
  LogicalResult findSchedule();
  LogicalResult readOrders();
  LogicalResult apply(StringRef function);

  ModuleOp module;
  SmallVector<ModuleOp> programs;
  schedule::ScheduleKind kind;
  bool pairs; ///< whether pairs of tasks are put side by side
  PipelineSchedule schedule;
};
} // namespace

/// The orders that the programs give, if they do.
LogicalResult Scheduler::readOrders() {
  for (auto [stage, program] : llvm::enumerate(programs)) {
    auto given = program->getAttrOfType<ArrayAttr>(orderAttr);
    if (!given)
      return program.emitError("has no ")
             << orderAttr << ", but another stage has one; give all or none";
    schedule.order[stage].clear();
    for (Attribute entry : given) {
      auto name = dyn_cast<StringAttr>(entry);
      llvm::Expected<Task> task = Task::parse(name ? name.getValue() : "");
      if (!task)
        return program.emitError(orderAttr) << ": " << llvm::toString(task.takeError());
      schedule.order[stage].push_back(*task);
    }
  }
  llvm::Expected<schedule::Timeline> timeline =
      simulate(schedule, schedule::TaskCosts::uniform(schedule.chunks()));
  if (!timeline)
    return module.emitError(orderAttr) << ": " << llvm::toString(timeline.takeError());
  // Sums go through the microbatches in order.
  for (auto [stage, tasks] : llvm::enumerate(schedule.order)) {
    std::map<std::pair<int64_t, int>, int64_t> last;
    for (const Task &task : tasks) {
      auto [entry, isNew] = last.insert({{task.chunk, int(task.kind)}, task.microbatch});
      if (!isNew && entry->second > task.microbatch)
        return programs[stage].emitError(orderAttr)
               << ": " << Task{task.kind, entry->second, task.chunk}.str() << " is before "
               << task.str()
               << "; gradients and the loss are summed in the order of the microbatches";
      entry->second = task.microbatch;
    }
  }
  return success();
}

LogicalResult Scheduler::findSchedule() {
  schedule.order.resize(programs.size());
  std::map<int64_t, int64_t> stageOf;
  for (auto [stage, program] : llvm::enumerate(programs)) {
    auto step = program.lookupSymbol<func::FuncOp>("step");
    if (!step)
      return program.emitError("has no function @step");
    auto tasks = tasksOf(step);
    if (failed(tasks))
      return failure();
    for (auto &[task, ops] : *tasks) {
      stageOf[task.chunk] = stage;
      schedule.microbatches = std::max(schedule.microbatches, task.microbatch + 1);
      schedule.splitsBackward |= task.kind == schedule::TaskKind::weight;
    }
  }
  bool ordered =
      llvm::any_of(programs, [](ModuleOp program) { return program->hasAttr(orderAttr); });
  if (stageOf.empty() && !ordered)
    return success();
  for (auto [chunk, stage] : stageOf)
    schedule.stageOf.push_back(stage);
  if (ordered) {
    pairs = false; // An order that is given is kept.
    return readOrders();
  }

  llvm::Expected<PipelineSchedule> made =
      makeSchedule(kind, programs.size(), schedule.microbatches);
  if (!made)
    return module.emitError(llvm::toString(made.takeError()));
  if (made->stageOf != schedule.stageOf || made->splitsBackward != schedule.splitsBackward)
    return module.emitError("the stages were not split for schedule ")
           << kind.str() << "; give dist-split-stages the same schedule";
  schedule = std::move(*made);
  return success();
}

LogicalResult Scheduler::apply(StringRef name) {
  std::vector<SmallVector<Operation *>> wanted;
  for (auto [stage, program] : llvm::enumerate(programs)) {
    auto function = program.lookupSymbol<func::FuncOp>(name);
    auto tasks = tasksOf(function);
    if (failed(tasks))
      return failure();
    SmallVector<Operation *> &all = wanted.emplace_back();
    Block &block = function.getBody().front();
    bool before = true;
    for (Operation &op : block) {
      if (!op.hasAttr(taskAttr)) {
        all.push_back(&op);
        continue;
      }
      if (!before)
        continue;
      before = false;
      // Evaluation has the forward tasks alone.
      SymbolTable symbols(program);
      const std::vector<Task> &order = schedule.order[stage];
      auto opsOf = [&](const Task &task) {
        auto known = tasks->find(task);
        return known == tasks->end() ? ArrayRef<Operation *>() : ArrayRef(known->second);
      };
      for (size_t i = 0; i < order.size(); ++i) {
        ArrayRef<Operation *> ops = opsOf(order[i]), next;
        if (pairs && i + 1 < order.size() && kind.pairs(order[i], order[i + 1]))
          next = opsOf(order[i + 1]);
        llvm::SmallDenseSet<uint64_t> layers = layersThatWait(next, symbols);
        if (!layers.empty() && llvm::any_of(layersThatWait(ops, symbols), [&](uint64_t count) {
              return layers.contains(count);
            })) {
          llvm::append_range(all, sideBySide(ops, next));
          ++i;
        } else {
          llvm::append_range(all, ops);
        }
      }
    }
  }
  auto order = Emission(wanted).run();
  if (failed(order))
    return failure();
  for (ArrayRef<Operation *> ops : *order)
    for (Operation *op : ops) {
      op->moveBefore(op->getBlock(), op->getBlock()->end());
      if (!isa<func::CallOp>(op))
        op->removeAttr(taskAttr);
    }
  return success();
}

LogicalResult Scheduler::run() {
  if (failed(findSchedule()))
    return failure();
  if (schedule.stageOf.empty())
    return success(); // no stages: servers and workers
  for (auto function : llvm::to_vector(programs[0].getOps<func::FuncOp>()))
    if (function.isPublic() && failed(apply(function.getSymName())))
      return failure();
  Builder builder(module.getContext());
  for (auto [stage, program] : llvm::enumerate(programs)) {
    program->removeAttr(orderAttr);
    program->setAttr(heldAttr, builder.getI64IntegerAttr(mostHeld(schedule, stage)));
  }
  return success();
}

namespace {
class SchedulePass : public dist::impl::DistScheduleBase<SchedulePass> {
public:
  using DistScheduleBase::DistScheduleBase;

private:
  void runOnModule() override {
    if (hasPrograms(getOperation()) && failed(Scheduler(getOperation(), schedule, pairs).run()))
      signalPassFailure();
  }
};
} // namespace
