//===- PipelineSchedule.cpp - which stage does what, in which order ---------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "meshwright/PipelineSchedule.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

#include <algorithm>
#include <deque>
#include <limits>

using llvm::Error;
using llvm::Expected;
using llvm::StringRef;

namespace meshwright::schedule {

static constexpr StringRef taskLetters = "FBW";
static constexpr int64_t taskKinds = 3;

std::string Task::str() const {
  return taskLetters[size_t(kind)] + std::to_string(microbatch) + "." + std::to_string(chunk);
}

Expected<Task> Task::parse(StringRef text) {
  Task task;
  size_t letter = text.empty() ? StringRef::npos : taskLetters.find(text.front());
  auto [microbatch, chunk] = text.drop_front(text.empty() ? 0 : 1).split('.');
  if (letter == StringRef::npos || microbatch.getAsInteger(10, task.microbatch) ||
      chunk.getAsInteger(10, task.chunk) || task.microbatch < 0 || task.chunk < 0)
    return llvm::createStringError("'" + text + "' is no task; one looks like F3.1, B3.1 or W3.1, "
                                                "microbatch 3 of chunk 1");
  task.kind = TaskKind(letter);
  return task;
}

llvm::SmallVector<Task, 2> PipelineSchedule::needs(const Task &task) const {
  llvm::SmallVector<Task, 2> needed;
  auto need = [&](TaskKind kind, int64_t chunk) {
    needed.push_back({kind, task.microbatch, chunk});
  };
  switch (task.kind) {
  case TaskKind::forward:
    if (task.chunk > 0)
      need(TaskKind::forward, task.chunk - 1);
    break;
  case TaskKind::backward:
    need(TaskKind::forward, task.chunk);
    if (task.chunk + 1 < chunks())
      need(TaskKind::backward, task.chunk + 1);
    break;
  case TaskKind::weight:
    need(TaskKind::backward, task.chunk);
    break;
  }
  return needed;
}

// Times ---------------------------------------------------------------------

TaskCosts TaskCosts::uniform(int64_t chunks, double forward, double backward, double weight) {
  TaskCosts costs;
  costs.chunks.assign(chunks, {forward, backward, weight});
  return costs;
}

double Timeline::length() const {
  double begin = std::numeric_limits<double>::infinity(), end = 0;
  for (const auto &spans : stages)
    for (const Span &span : spans) {
      begin = std::min(begin, span.begin);
      end = std::max(end, span.end);
    }
  return std::max(0.0, end - begin);
}

double Timeline::end() const {
  double end = 0;
  for (const auto &spans : stages)
    if (!spans.empty())
      end = std::max(end, spans.back().end);
  for (const auto &round : rounds)
    for (const Interval &interval : round)
      end = std::max(end, interval.end);
  return end;
}

void Timeline::addRounds(const std::vector<std::vector<double>> &costs) {
  for (const std::vector<double> &round : costs) {
    double barrier = end();
    auto &intervals = rounds.emplace_back();
    for (auto [stage, cost] : llvm::enumerate(round)) {
      bool first = rounds.size() == 1;
      double begin = !first ? barrier : stages[stage].empty() ? 0 : stages[stage].back().end;
      intervals.push_back({begin, begin + cost});
    }
  }
}

static double workOf(llvm::ArrayRef<Timeline::Span> spans) {
  double work = 0;
  for (const Timeline::Span &span : spans)
    work += span.end - span.begin;
  return work;
}

double Timeline::utilisation() const {
  double work = 0;
  for (const auto &spans : stages)
    work += workOf(spans);
  return work / (length() * double(stages.size()));
}

double Timeline::bubble() const {
  double most = 0;
  for (const auto &spans : stages)
    if (!spans.empty())
      most = std::max(most, spans.back().end - spans.front().begin - workOf(spans));
  return most;
}

/// Every task of the schedule's chunks and microbatches once, on its stage.
static Error checkTasks(const PipelineSchedule &s) {
  std::vector<unsigned> seen(s.chunks() * s.microbatches * taskKinds);
  auto count = [&](const Task &task) -> unsigned & {
    return seen[(task.chunk * s.microbatches + task.microbatch) * taskKinds + int64_t(task.kind)];
  };
  for (auto [stage, tasks] : llvm::enumerate(s.order))
    for (const Task &task : tasks) {
      if (task.chunk >= s.chunks() || task.microbatch >= s.microbatches)
        return llvm::createStringError("task " + task.str() + " is none of " +
                                       llvm::Twine(s.microbatches) + " microbatches and " +
                                       llvm::Twine(s.chunks()) + " chunks");
      if (task.kind == TaskKind::weight && !s.splitsBackward)
        return llvm::createStringError("task " + task.str() +
                                       ": in this program backward makes the gradients of weights");
      if (s.stageOf[task.chunk] != int64_t(stage))
        return llvm::createStringError("task " + task.str() + " is on stage " +
                                       llvm::Twine(stage) + "; chunk " + llvm::Twine(task.chunk) +
                                       " is on stage " + llvm::Twine(s.stageOf[task.chunk]));
      if (++count(task) == 2)
        return llvm::createStringError("task " + task.str() + " is there twice");
    }
  for (int64_t chunk = 0; chunk < s.chunks(); ++chunk)
    for (int64_t m = 0; m < s.microbatches; ++m)
      for (int64_t kind = 0; kind < (s.splitsBackward ? taskKinds : taskKinds - 1); ++kind)
        if (Task task{TaskKind(kind), m, chunk}; !count(task))
          return llvm::createStringError("task " + task.str() + " is missing on stage " +
                                         llvm::Twine(s.stageOf[chunk]));
  return Error::success();
}

static double durationOf(const Task &task, const TaskCosts &costs, bool splitsBackward) {
  const TaskCosts::Chunk &chunk = costs.chunks[task.chunk];
  switch (task.kind) {
  case TaskKind::forward:
    return chunk.forward;
  case TaskKind::backward:
    return splitsBackward ? chunk.backward : chunk.backward + chunk.weight;
  case TaskKind::weight:
    return chunk.weight;
  }
  llvm_unreachable("all phases are above");
}

Expected<Timeline> simulate(const PipelineSchedule &s, const TaskCosts &costs) {
  if (Error error = checkTasks(s))
    return std::move(error);
  Timeline timeline;
  timeline.stages.resize(s.stages());
  constexpr double never = -1;
  std::vector<double> ends(s.chunks() * s.microbatches * taskKinds, never);
  auto endOf = [&](const Task &task) -> double & {
    return ends[(task.chunk * s.microbatches + task.microbatch) * taskKinds + int64_t(task.kind)];
  };
  // The first thing that `task` still waits for, or null; else `begin` is when it can run.
  auto missing = [&](const Task &task, double &begin) -> std::optional<Task> {
    for (const Task &need : s.needs(task)) {
      if (endOf(need) == never)
        return need;
      bool far = s.stageOf[need.chunk] != s.stageOf[task.chunk];
      begin = std::max(begin, endOf(need) + (far ? costs.message : 0));
    }
    return std::nullopt;
  };

  // Stages that may have something to do: at first all, then those of the chunks before and after
  // one that has done a task.
  std::deque<int64_t> ready;
  std::vector<bool> isReady(s.stages(), true);
  for (int64_t stage = 0; stage < s.stages(); ++stage)
    ready.push_back(stage);
  auto wake = [&](int64_t chunk) {
    if (chunk < 0 || chunk >= s.chunks() || isReady[s.stageOf[chunk]])
      return;
    isReady[s.stageOf[chunk]] = true;
    ready.push_back(s.stageOf[chunk]);
  };
  for (; !ready.empty(); ready.pop_front()) {
    int64_t stage = ready.front();
    isReady[stage] = false;
    auto &spans = timeline.stages[stage];
    while (spans.size() < s.order[stage].size()) {
      const Task &task = s.order[stage][spans.size()];
      double begin = spans.empty() ? 0 : spans.back().end;
      if (missing(task, begin))
        break;
      endOf(task) = begin + durationOf(task, costs, s.splitsBackward);
      spans.push_back({task, begin, endOf(task)});
      wake(task.chunk - 1);
      wake(task.chunk + 1);
    }
  }

  std::string waits;
  for (int64_t stage = 0; stage < s.stages(); ++stage) {
    size_t next = timeline.stages[stage].size();
    if (next == s.order[stage].size())
      continue;
    const Task &task = s.order[stage][next];
    double begin = 0;
    waits += (waits.empty() ? "stage " : "; stage ") + std::to_string(stage) + " has " +
             task.str() + " next, which needs " + missing(task, begin)->str() + " of stage " +
             std::to_string(s.stageOf[missing(task, begin)->chunk]);
  }
  if (!waits.empty())
    return llvm::createStringError("the order never ends: " + waits);
  return timeline;
}

int64_t mostHeld(const PipelineSchedule &s, int64_t stage) {
  TaskKind last = s.splitsBackward ? TaskKind::weight : TaskKind::backward;
  int64_t held = 0, most = 0;
  for (const Task &task : s.order[stage]) {
    most = std::max(most, held += task.kind == TaskKind::forward);
    held -= task.kind == last;
  }
  return most;
}

std::vector<HeldAtBackward> heldAtBackward(const PipelineSchedule &s, int64_t stage) {
  TaskKind last = s.splitsBackward ? TaskKind::weight : TaskKind::backward;
  std::vector<HeldAtBackward> moments;
  std::vector<int64_t> counts(s.chunks());
  for (const Task &task : s.order[stage]) {
    counts[task.chunk] += task.kind == TaskKind::forward;
    HeldAtBackward now{task.chunk, counts};
    if (task.kind == TaskKind::backward && !llvm::is_contained(moments, now))
      moments.push_back(std::move(now));
    counts[task.chunk] -= task.kind == last;
  }
  return moments;
}

} // namespace meshwright::schedule
