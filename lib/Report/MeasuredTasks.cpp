//===- MeasuredTasks.cpp - how long tasks took in a run ----------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "meshwright/MeasuredTasks.h"
#include "meshwright/InputFile.h"
#include "meshwright/Json.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/JSON.h"

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
/// What one rank did, by category, in order of time.
struct Rank {
  std::vector<Event> steps, tasks, computed;
};
} // namespace

static Expected<std::map<int64_t, Rank>> readRanks(StringRef path) {
  auto file = readInput(path, traceInput);
  if (!file)
    return createStringError("cannot read '" + path + "': " + toString(file.takeError()));
  Expected<json::Value> value = parseJson((*file)->getBuffer());
  const json::Array *events = nullptr;
  if (value && value->getAsObject())
    events = value->getAsObject()->getArray("traceEvents");
  if (!events)
    return createStringError("'" + path + "' is no trace; an executable's --trace FILE writes one" +
                             (value ? "" : ": " + toString(value.takeError())));
  if (const json::Object *other = value->getAsObject()->getObject("otherData"))
    if (other->get("times"))
      return createStringError("'" + path + "' is what --report predicts, in relative times; an "
                               "executable's --trace FILE writes one that was measured");
  std::map<int64_t, Rank> ranks;
  for (const json::Value &entry : *events) {
    const json::Object *event = entry.getAsObject();
    if (!event)
      continue;
    Rank &rank = ranks[event->getInteger("pid").value_or(0)];
    if (const json::Object *args = event->getObject("args"))
      if (int64_t dropped = args->getInteger("dropped_spans").value_or(0))
        return createStringError("'" + path + "' lacks " + Twine(dropped) +
                                 " spans; choose fewer steps with --trace-from and --trace-steps");
    StringRef category = event->getString("cat").value_or("");
    StringRef name = event->getString("name").value_or("");
    auto *list = category == "step" && name == "step" ? &rank.steps
                 : category == "task"                 ? &rank.tasks
                 : category == "compute"              ? &rank.computed
                                                      : nullptr;
    if (!list)
      continue;
    double begin = event->getNumber("ts").value_or(0) / 1e3;
    list->push_back({name.str(), begin, begin + event->getNumber("dur").value_or(0) / 1e3});
  }
  for (auto &[number, rank] : ranks)
    for (auto *list : {&rank.steps, &rank.tasks, &rank.computed})
      llvm::sort(*list, [](const Event &a, const Event &b) { return a.begin < b.begin; });
  return ranks;
}

static double median(std::vector<double> values) {
  if (values.empty())
    return 0;
  auto middle = values.begin() + values.size() / 2;
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
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
