//===- PublishedSchedules.cpp - naive to zero-bubble pipelines --------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "meshwright/PipelineSchedule.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

#include <algorithm>
#include <deque>
#include <map>

using llvm::Error;
using llvm::Expected;
using llvm::StringRef;

namespace meshwright::schedule {

static constexpr StringRef scheduleNames[] = {"naive", "gpipe", "1f1b", "interleaved",
                                              "zb-h1", "zb-h2", "zb-v", "v-half", "v-min", "dualpipe-v"};

Expected<ScheduleKind> ScheduleKind::parse(StringRef text) {
  auto [name, chunks] = text.split(':');
  const StringRef *found = llvm::find(scheduleNames, name);
  ScheduleKind kind;
  kind.name = Name(found - std::begin(scheduleNames));
  bool counts = kind.name == interleaved;
  if (found == std::end(scheduleNames) || counts == (name == text) ||
      (counts && (chunks.getAsInteger(10, kind.chunksPerStage) || kind.chunksPerStage < 2)))
    return llvm::createStringError("'" + text +
                                   "' is no schedule; there are naive, gpipe, 1f1b, interleaved:V "
                                   "with V chunks a stage (2 or more), zb-h1, zb-h2, zb-v, "
                                   "v-half, v-min and dualpipe-v");
  if (kind.goesBack())
    kind.chunksPerStage = 2;
  return kind;
}

std::string ScheduleKind::str() const {
  std::string text = scheduleNames[name].str();
  return name == interleaved ? text + ":" + std::to_string(chunksPerStage) : text;
}

int64_t ScheduleKind::leastMicrobatches(int64_t stages) const {
  switch (name) {
  case naive:
  case gpipe:
  case oneFOneB:
  case vHalf:
  case vMin:
    return 1;
  case interleaved:
  case zbH1:
    return stages;
  case zbH2:
  case zbV:
    return 2 * stages - 1;
  case dualPipeV:
    return 2 * stages;
  }
  llvm_unreachable("all schedules are above");
}

llvm::SmallVector<int64_t> assignChunks(ScheduleKind kind, int64_t stages) {
  llvm::SmallVector<int64_t> stageOf;
  for (int64_t c = 0; c < stages * kind.chunksPerStage; ++c)
    stageOf.push_back(kind.goesBack() && c >= stages ? 2 * stages - 1 - c : c % stages);
  return stageOf;
}

namespace {
/// The tasks of one stage. Each phase of a chunk goes through the microbatches in
/// order, so that gradients are summed in the same order under every schedule.
class Stage {
public:
  Stage(int64_t microbatches, int64_t chunks) : microbatches(microbatches), next(chunks) {}

  int64_t done(TaskKind kind, int64_t chunk) const { return next[chunk].count[size_t(kind)]; }
  bool left(TaskKind kind, int64_t chunk) const { return done(kind, chunk) < microbatches; }
  /// The chunk's next task of this phase, if one is left.
  void put(TaskKind kind, int64_t chunk) {
    if (left(kind, chunk))
      tasks.push_back({kind, next[chunk].count[size_t(kind)]++, chunk});
  }
  void forward(int64_t chunk) { put(TaskKind::forward, chunk); }
  void backward(int64_t chunk) { put(TaskKind::backward, chunk); }
  void weight(int64_t chunk) { put(TaskKind::weight, chunk); }

  std::vector<Task> tasks;

private:
  struct Counts {
    int64_t count[3] = {0, 0, 0};
  };
  int64_t microbatches;
  std::vector<Counts> next;
};
} // namespace

/// Some forward tasks, then forward and backward in turn, then what is left. The
/// schedules of one chunk a stage differ in how many go ahead, and zero-bubble ones
/// in how many microbatches the gradients of weights lag behind backward: stages
/// that can begin backward sooner keep their weight tasks for the end, where they
/// would idle, and so all hold the same number of activations.
static void oneChunk(Stage &stage, int64_t chunk, int64_t ahead, int64_t lag, bool splits) {
  for (int64_t i = 0; i < ahead; ++i)
    stage.forward(chunk);
  while (stage.left(TaskKind::backward, chunk)) {
    stage.forward(chunk);
    stage.backward(chunk);
    if (splits && stage.done(TaskKind::backward, chunk) > lag)
      stage.weight(chunk);
  }
  while (splits && stage.left(TaskKind::weight, chunk))
    stage.weight(chunk);
}

/// Microbatches go through the chunks of a stage in groups of as many as there are
/// stages: the group through its first chunk, then through its second, and so on. As many
/// forward tasks go ahead as are under way when the first backward task arrives (Narayanan et
/// al. 2021b); that there is only one group changes nothing.
static void interleave(Stage &stage, int64_t at, int64_t stages, int64_t perStage,
                       int64_t microbatches) {
  int64_t all = microbatches * perStage;
  auto turn = [&](int64_t i) { return i % (stages * perStage) / stages; };
  int64_t ahead = std::min(all, 2 * (stages - 1 - at) + (perStage - 1) * stages);
  auto forward = [&](int64_t i) {
    if (i < all)
      stage.forward(turn(i) * stages + at);
  };
  for (int64_t i = 0; i < ahead; ++i)
    forward(i);
  for (int64_t i = 0; i < all; ++i) {
    forward(ahead + i);
    stage.backward((perStage - 1 - turn(i)) * stages + at);
  }
}

/// The model goes down the stages and up again, so the last chunk is on the first
/// stage. Forward tasks of the way down are started so that those of the way up
/// follow without a gap on every stage (Qi et al. 2024, section 6).
static void downAndUp(Stage &stage, int64_t at, int64_t stages) {
  int64_t down = at, up = 2 * stages - 1 - at;
  for (int64_t i = 0; i < 2 * (stages - at) - 1; ++i)
    stage.forward(down);
  for (int64_t i = 0; i < at; ++i) {
    stage.forward(up);
    stage.forward(down);
  }
  auto through = [&](int64_t chunk) {
    stage.backward(chunk);
    stage.weight(chunk);
  };
  for (int64_t i = 0; i < stages - at; ++i) {
    stage.forward(up);
    through(up);
  }
  while (stage.left(TaskKind::forward, up)) {
    stage.forward(down);
    through(down);
    stage.forward(up);
    through(up);
  }
  // What is left is backward; a stage keeps weight tasks for while it waits.
  for (int64_t i = 0; i < at; ++i) {
    stage.backward(down);
    stage.backward(up);
  }
  while (stage.left(TaskKind::backward, down))
    through(down);
  for (int64_t chunk : {up, down})
    while (stage.left(TaskKind::weight, chunk))
      stage.weight(chunk);
}

namespace {
/// When the tasks of one microbatch begin on a stage that holds a chunk of the way down and one of
/// the way up.
struct BlockStarts {
  int64_t forwardDown, forwardUp, backwardUp, backwardDown;
};
} // namespace

/// A microbatch goes down the stages and up again, forward and then backward, in four passes. In each
/// pass a stage begins one unit after the stage before it, which gives a third of the activations of
/// 1F1B. The next pass begins on the stage where the last one ended, as early as no two tasks of a stage
/// begin at the same time modulo 6, the units that F, B and W of two chunks take.
static BlockStarts leastMemory(int64_t at, int64_t stages) {
  int64_t after = stages - 1 - at;
  int64_t up = stages, down = stages % 3 ? 2 * stages : 2 * stages + 2;
  return {at, up + after, down + at, down + stages + after};
}

/// On the way up a stage begins two units after the one before: half of the activations of 1F1B.
static BlockStarts halfMemory(int64_t at, int64_t stages) {
  int64_t after = stages - 1 - at;
  int64_t up = stages + (stages % 2 ? 1 : 4), down = up + 2 * stages - 1;
  return {at, up + 2 * after, down + at, down + stages + 2 * after};
}

/// Each microbatch does what the one before did, six units later; weight tasks take the units that
/// are left (Qi et al. 2024b: how long a microbatch is on a stage decides what the stage holds).
static void repeatBlock(Stage &stage, int64_t at, int64_t stages, int64_t microbatches,
                        const BlockStarts &starts) {
  int64_t down = at, up = 2 * stages - 1 - at;
  std::map<int64_t, Task> tasks; // by when they begin
  for (int64_t i = 0; i < microbatches; ++i) {
    tasks[6 * i + starts.forwardDown] = {TaskKind::forward, i, down};
    tasks[6 * i + starts.forwardUp] = {TaskKind::forward, i, up};
    tasks[6 * i + starts.backwardUp] = {TaskKind::backward, i, up};
    tasks[6 * i + starts.backwardDown] = {TaskKind::backward, i, down};
  }
  std::deque<int64_t> waiting; // chunks, in the order of their weight tasks
  int64_t time = 0;
  for (auto &[begin, task] : tasks) {
    for (; time < begin && !waiting.empty(); ++time, waiting.pop_front())
      stage.weight(waiting.front());
    stage.put(task.kind, task.chunk);
    if (task.kind == TaskKind::backward)
      waiting.push_back(task.chunk);
    time = begin + 1;
  }
  for (int64_t chunk : waiting)
    stage.weight(chunk);
}

/// As DeepSeek-AI (2024) cut DualPipe in half: once the first backward tasks arrive, a stage
/// alternates between a forward task of one of its chunks and a backward task of the other one, of
/// another microbatch. Gradients of weights follow their backward task, but in the last steps, where
/// they wait for the time in which the stage would idle.
static void dualPipe(Stage &stage, int64_t at, int64_t stages) {
  int64_t down = at, up = 2 * stages - 1 - at, after = stages - 1 - at;
  llvm::SmallVector<int64_t> waiting; // chunks, in the order of their weight tasks
  size_t next = 0;
  auto backward = [&](int64_t chunk, bool waits = false) {
    stage.backward(chunk);
    waits ? waiting.push_back(chunk) : stage.weight(chunk);
  };
  auto both = [&](int64_t forth, int64_t back) {
    stage.forward(forth);
    backward(back);
  };
  for (int64_t i = 0; i < 2 * after; ++i)
    stage.forward(down);
  for (int64_t i = 0; i <= at; ++i) {
    stage.forward(down);
    stage.forward(up);
  }
  for (int64_t i = 0; i < after; ++i) {
    backward(up);
    stage.forward(up);
  }
  while (stage.left(TaskKind::forward, down)) {
    both(down, up);
    both(up, down);
  }
  for (int64_t i = 0; i < after; ++i) {
    backward(up);
    both(up, down);
  }
  // The later half of what is left of both chunks.
  for (int64_t i = 0; i < 2 * (at + 1); ++i)
    backward(i % 2 ? down : up, i > at);
  while (stage.left(TaskKind::backward, down)) {
    stage.weight(waiting[next++]);
    backward(down, /*waits=*/true);
  }
  while (next < waiting.size())
    stage.weight(waiting[next++]);
}

Expected<PipelineSchedule> makeSchedule(ScheduleKind kind, int64_t stages, int64_t microbatches) {
  int64_t least = kind.leastMicrobatches(stages);
  if (microbatches < least)
    return llvm::createStringError("schedule " + kind.str() + " on " + llvm::Twine(stages) +
                                   " stages needs " + llvm::Twine(least) +
                                   " microbatches or more; there are " + llvm::Twine(microbatches));
  if (kind.name == ScheduleKind::interleaved && microbatches % stages)
    return llvm::createStringError(
        "schedule " + kind.str() + " needs a multiple of the " + llvm::Twine(stages) +
        " stages as microbatches; there are " + llvm::Twine(microbatches) + ", " +
        llvm::Twine(microbatches / stages * stages) + " or " +
        llvm::Twine((microbatches / stages + 1) * stages) + " would do");
  // Each is written out, here and in the stages' programs.
  constexpr int64_t most = 1 << 20;
  int64_t tasks = 0;
  if (llvm::MulOverflow(stages, kind.chunksPerStage, tasks) ||
      llvm::MulOverflow(tasks, microbatches, tasks) || tasks > most)
    return llvm::createStringError("schedule " + kind.str() + " of " + llvm::Twine(stages) +
                                   " stages with " + llvm::Twine(microbatches) +
                                   " microbatches has more than " + llvm::Twine(most) +
                                   " forward tasks; use fewer microbatches");

  PipelineSchedule schedule;
  schedule.microbatches = microbatches;
  schedule.splitsBackward = kind.splitsBackward();
  schedule.stageOf = assignChunks(kind, stages);
  for (int64_t at = 0; at < stages; ++at) {
    Stage stage(microbatches, schedule.chunks());
    bool splits = kind.splitsBackward();
    int64_t after = stages - 1 - at;
    switch (kind.name) {
    case ScheduleKind::naive:
      oneChunk(stage, at, 0, 0, splits);
      break;
    case ScheduleKind::gpipe:
      oneChunk(stage, at, microbatches, 0, splits);
      break;
    case ScheduleKind::oneFOneB:
      oneChunk(stage, at, after, 0, splits);
      break;
    case ScheduleKind::zbH1:
      oneChunk(stage, at, after, at, splits);
      break;
    case ScheduleKind::zbH2:
      oneChunk(stage, at, 2 * after, 2 * at, splits);
      break;
    case ScheduleKind::interleaved:
      interleave(stage, at, stages, kind.chunksPerStage, microbatches);
      break;
    case ScheduleKind::zbV:
      downAndUp(stage, at, stages);
      break;
    case ScheduleKind::vHalf:
      repeatBlock(stage, at, stages, microbatches, halfMemory(at, stages));
      break;
    case ScheduleKind::vMin:
      repeatBlock(stage, at, stages, microbatches, leastMemory(at, stages));
      break;
    case ScheduleKind::dualPipeV:
      dualPipe(stage, at, stages);
      break;
    }
    schedule.order.push_back(std::move(stage.tasks));
  }
  return schedule;
}

} // namespace meshwright::schedule
