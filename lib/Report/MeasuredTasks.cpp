//===- MeasuredTasks.cpp - how long tasks took in a run ----------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "meshwright/MeasuredTasks.h"

#include "TraceFile.h"
#include "meshwright/MeasuredCalls.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <map>

using namespace llvm;
using namespace meshwright::schedule;

namespace meshwright::report {

namespace {
struct Event {
  std::string name;
  double begin, end;
};
/// What one rank did, by category, in order of time, in milliseconds.
struct Rank {
  std::vector<Event> steps, tasks, computed;
};
} // namespace

static Expected<std::map<int64_t, Rank>> readRanks(StringRef path) {
  Expected<RankTraces> traces = readTrace(path);
  if (!traces)
    return traces.takeError();
  std::map<int64_t, Rank> ranks;
  for (auto &[number, events] : *traces) {
    Rank &rank = ranks[number];
    for (const TraceEvent &event : events) {
      auto *list = event.category == "step" && event.name == "step" ? &rank.steps
                   : event.category == "task"                       ? &rank.tasks
                   : event.category == "compute"                    ? &rank.computed
                                                                    : nullptr;
      if (list)
        list->push_back({event.name, 1e3 * event.begin, 1e3 * event.end});
    }
  }
  return ranks;
}

/// The events of `all` that begin in `step`.
static ArrayRef<Event> within(ArrayRef<Event> all, const Event &step) {
  auto before = [](const Event &event, double time) { return event.begin < time; };
  const Event *first = std::lower_bound(all.begin(), all.end(), step.begin, before);
  return {first, std::lower_bound(first, all.end(), step.end, before)};
}

/// What `computed` has outside of `tasks`.
static double restOf(ArrayRef<Event> computed, ArrayRef<Event> tasks) {
  double sum = 0;
  const Event *task = tasks.begin();
  for (const Event &event : computed) {
    while (task != tasks.end() && task->end <= event.begin)
      ++task;
    if (task == tasks.end() || event.begin < task->begin)
      sum += event.end - event.begin;
  }
  return sum;
}

Expected<MeasuredTasks> readMeasured(StringRef path, const PipelineSchedule &schedule) {
  Expected<std::map<int64_t, Rank>> ranks = readRanks(path);
  if (!ranks)
    return ranks.takeError();
  std::map<std::pair<int64_t, TaskKind>, std::vector<double>> times; // by chunk
  std::vector<std::vector<double>> rest(schedule.stages());
  std::vector<double> longest;
  for (auto &[number, rank] : *ranks) {
    if (rank.steps.empty())
      return createStringError("'" + path + "' has no step of rank " + Twine(number));
    size_t first = rank.steps.size() > 1;
    longest.resize(std::max(longest.size(), rank.steps.size() - first));
    for (size_t i = first; i < rank.steps.size(); ++i) {
      const Event &step = rank.steps[i];
      longest[i - first] = std::max(longest[i - first], step.end - step.begin);
      ArrayRef<Event> tasks = within(rank.tasks, step);
      int64_t stage = -1;
      size_t at = 0;
      for (const Event &event : tasks) {
        // Two tasks may run as one ("F3.0+B1.3"), which says nothing of either alone.
        SmallVector<StringRef, 2> names;
        StringRef(event.name).split(names, '+');
        for (StringRef name : names) {
          Expected<Task> task = Task::parse(name);
          if (!task)
            return task.takeError();
          if (stage < 0 && task->chunk < schedule.chunks())
            stage = schedule.stageOf[task->chunk];
          if (stage < 0 || at >= schedule.order[stage].size() ||
              !(schedule.order[stage][at] == *task))
            return createStringError(
                "'" + path + "' is of another schedule: rank " + Twine(number) + " did " +
                event.name + " as task " + Twine(at) +
                (stage < 0 || at >= schedule.order[stage].size()
                     ? ", of which there is none"
                     : ", which is " + schedule.order[stage][at].str()));
          ++at;
          std::vector<double> &known = times[{task->chunk, task->kind}];
          if (names.size() == 1)
            known.push_back(event.end - event.begin);
        }
      }
      if (stage < 0 || at != schedule.order[stage].size())
        return createStringError("'" + path + "' is of another schedule: rank " + Twine(number) +
                                 " did " + Twine(at) + " tasks in a step");
      rest[stage].push_back(restOf(within(rank.computed, step), tasks));
    }
  }
  for (auto &[part, values] : times)
    if (values.empty())
      return createStringError(
          "'" + path + "' has " + StringRef(&"FBW"[int(part.second)], 1) +
          " tasks of chunk " + Twine(part.first) +
          " only beside others, so it cannot say how long one takes; compile with --overlap off");
  MeasuredTasks measured;
  for (int64_t chunk = 0; chunk < schedule.chunks(); ++chunk) {
    auto cost = [&](TaskKind kind) { return median(times[{chunk, kind}]); };
    measured.costs.chunks.push_back(
        {cost(TaskKind::forward), cost(TaskKind::backward), cost(TaskKind::weight)});
  }
  for (std::vector<double> &values : rest) {
    if (values.empty())
      return createStringError("'" + path + "' has no rank of stage " +
                               Twine(measured.rest.size()));
    measured.rest.push_back(median(values));
  }
  measured.step = median(longest);
  measured.steps = longest.size();
  return measured;
}

} // namespace meshwright::report
