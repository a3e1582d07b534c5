//===- StepTasks.cpp - what pipeline stages do in a step --------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "StepTasks.h"

#include "Dist/Programs.h"

#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::report;
using llvm::createStringError;
using planner::Phase;
using planner::Task;

/// The mesh axes along which programs differ.
static llvm::StringSet<> axesBetween(ArrayRef<ModuleOp> programs) {
  llvm::StringSet<> axes;
  for (ModuleOp program : programs)
    if (auto at = program->getAttrOfType<DictionaryAttr>(dist::placeAttr))
      for (NamedAttribute entry : at)
        axes.insert(entry.getName());
  return axes;
}

/// Whether all programs come by the op before any goes on.
static bool isBarrier(Operation &op, const llvm::StringSet<> &between) {
  auto collective = dyn_cast<exec::CollectiveOpInterface>(op);
  return collective && !isa<exec::SendOp, exec::RecvOp>(op) &&
         llvm::any_of(collective.getAxes().getAsValueRange<StringAttr>(),
                      [&](StringRef axis) { return between.contains(axis); });
}

void report::addTasks(ModuleOp program, ArrayRef<ModuleOp> programs, FlopCounter &flops,
                      llvm::json::Object &entry) {
  auto step = program.lookupSymbol<exec::ProgramOp>("step");
  if (!step)
    return;
  llvm::json::Array order;
  llvm::json::Object costs;
  std::vector<double> rounds;
  llvm::StringSet<> between = axesBetween(programs);
  for (Operation &op : step.getBlock()) {
    if (auto name = op.getAttrOfType<StringAttr>(dist::taskAttr)) {
      order.push_back(name.getValue());
      // Of one chunk and phase all microbatches are the same function.
      StringRef text = name.getValue();
      costs[(text.take_front() + text.split('.').second).str()] = flops.of(&op);
      rounds = {0};
    } else if (!rounds.empty()) {
      if (isBarrier(op, between))
        rounds.push_back(0);
      rounds.back() += flops.of(&op);
    }
  }
  if (order.empty())
    return;
  while (rounds.size() > 1 && rounds.back() == 0)
    rounds.pop_back();
  entry["order"] = std::move(order);
  entry["task_flops"] = std::move(costs);
  entry["round_flops"] = llvm::json::Array(rounds);
}

/// Fills in what the stage of `program` says; null or the wrong kind is an error.
static llvm::Error readStage(const llvm::json::Object &program, int64_t stage, StepTasks &tasks,
                             planner::TaskCosts &costs) {
  auto damaged = [&] {
    return createStringError("the plan's order of tasks of stage " + llvm::Twine(stage) +
                             " is damaged");
  };
  const llvm::json::Object *flops = program.getObject("task_flops");
  if (!flops)
    return damaged();
  planner::PipelineSchedule &schedule = tasks.schedule;
  for (const llvm::json::Value &value : *program.getArray("order")) {
    llvm::Expected<Task> task = Task::parse(value.getAsString().value_or(""));
    if (!task)
      return task.takeError();
    // No model has more than that; a damaged number must not take all memory.
    if (task->chunk >= 10000 || task->microbatch >= 100000)
      return damaged();
    schedule.order[stage].push_back(*task);
    schedule.microbatches = std::max(schedule.microbatches, task->microbatch + 1);
    schedule.splitsBackward |= task->phase == Phase::weight;
    size_t chunks = std::max(costs.chunks.size(), size_t(task->chunk + 1));
    costs.chunks.resize(chunks, {0, 0, 0});
    schedule.stageOf.resize(chunks, -1);
    schedule.stageOf[task->chunk] = stage;
    planner::TaskCosts::Chunk &chunk = costs.chunks[task->chunk];
    double *place = task->phase == Phase::forward    ? &chunk.forward
                    : task->phase == Phase::backward ? &chunk.backward
                                                     : &chunk.weight;
    std::optional<double> cost =
        flops->getNumber("FBW"[int(task->phase)] + std::to_string(task->chunk));
    if (!cost)
      return damaged();
    *place = *cost;
  }
  return llvm::Error::success();
}

llvm::Expected<std::optional<StepTasks>> report::tasksOf(const llvm::json::Object &plan) {
  StepTasks tasks;
  planner::TaskCosts costs;
  std::vector<std::vector<double>> rounds;
  const llvm::json::Array *programs = plan.getArray("programs");
  int64_t stages = programs ? programs->size() : 0;
  for (int64_t stage = 0; stage < stages; ++stage) {
    const llvm::json::Object *program = (*programs)[stage].getAsObject();
    if (!program || !program->getArray("order"))
      return std::nullopt; // not stages of a pipeline
    tasks.schedule.order.emplace_back();
    if (llvm::Error error = readStage(*program, stage, tasks, costs))
      return std::move(error);
    if (const llvm::json::Array *after = program->getArray("round_flops"))
      for (auto [round, value] : llvm::enumerate(*after)) {
        rounds.resize(std::max(rounds.size(), round + 1), std::vector<double>(stages));
        rounds[round][stage] = value.getAsNumber().value_or(0);
      }
  }
  if (stages == 0)
    return std::nullopt;
  // Once to see how long it takes, then in percent of that.
  double scale = 1;
  for (bool last : {false, true}) {
    for (planner::TaskCosts::Chunk &chunk : costs.chunks)
      chunk = {chunk.forward * scale, chunk.backward * scale, chunk.weight * scale};
    for (auto &round : rounds)
      for (double &cost : round)
        cost *= scale;
    llvm::Expected<planner::Timeline> timeline = simulate(tasks.schedule, costs);
    if (!timeline)
      return timeline.takeError();
    tasks.timeline = std::move(*timeline);
    tasks.timeline.addRounds(rounds);
    scale = last ? 1 : 100 / std::max(tasks.timeline.end(), 1e-300);
  }
  return tasks;
}
