//===- StepTasks.cpp - what pipeline stages do in a step --------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "StepTasks.h"

#include "Dist/Programs.h"
#include "Exec/Exec.h"

#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::report;
using llvm::createStringError;
using schedule::Task;
using schedule::TaskKind;

/// The mesh axes along which programs differ.
static llvm::StringSet<> axesBetween(ArrayRef<ModuleOp> programs) {
  llvm::StringSet<> axes;
  for (ModuleOp program : programs)
    if (auto at = program->getAttrOfType<DictionaryAttr>(dist::coordinatesAttr))
      for (NamedAttribute entry : at)
        axes.insert(entry.getName());
  return axes;
}

/// Whether all programs come by the op before any goes on.
static bool isBarrier(Operation &op, const llvm::StringSet<> &between) {
  auto collective = dyn_cast<exec::MemoryCollectiveOpInterface>(op);
  return collective && !isa<exec::SendOp, exec::RecvOp>(op) &&
         llvm::any_of(collective.getAxes().getAsValueRange<StringAttr>(),
                      [&](StringRef axis) { return between.contains(axis); });
}

void report::addTasks(ModuleOp program, ArrayRef<ModuleOp> programs, cost::FlopCounter &flops,
                      plan::Program &entry) {
  auto step = program.lookupSymbol<exec::ProgramOp>("step");
  if (!step)
    return;
  std::vector<std::string> order;
  plan::Table<double> costs;
  std::vector<double> rounds;
  llvm::StringSet<> between = axesBetween(programs);
  for (Operation &op : step.getBlock()) {
    if (auto name = op.getAttrOfType<StringAttr>(dist::taskAttr)) {
      SmallVector<StringRef> names;
      name.getValue().split(names, '+');
      auto alone = op.getAttrOfType<ArrayAttr>(exec::pairAttr);
      for (auto [i, text] : llvm::enumerate(names)) {
        order.push_back(text.str());
        // Of one chunk and phase all microbatches are the same function.
        costs[(text.take_front() + text.split('.').second).str()] =
            alone ? flops.of(program.lookupSymbol<exec::ProgramOp>(
                                 cast<FlatSymbolRefAttr>(alone[i]).getValue())
                                 .getBlock())
                  : flops.of(&op);
      }
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
  entry.order = std::move(order);
  entry.taskFlops = std::move(costs);
  entry.roundFlops = std::move(rounds);
}

/// Fills in what the stage of `program` says; null or the wrong kind is an error.
static llvm::Error readStage(const plan::Program &program, int64_t stage, StepTasks &tasks,
                             schedule::TaskCosts &costs) {
  auto damaged = [&] {
    return createStringError("the plan's order of tasks of stage " + llvm::Twine(stage) +
                             " is damaged");
  };
  if (!program.taskFlops)
    return damaged();
  schedule::PipelineSchedule &schedule = tasks.schedule;
  for (const std::string &name : *program.order) {
    llvm::Expected<Task> task = Task::parse(name);
    if (!task)
      return task.takeError();
    // No model has more than that; a damaged number must not take all memory.
    if (task->chunk >= 10000 || task->microbatch >= 100000)
      return damaged();
    schedule.order[stage].push_back(*task);
    schedule.microbatches = std::max(schedule.microbatches, task->microbatch + 1);
    schedule.splitsBackward |= task->kind == TaskKind::weight;
    size_t chunks = std::max(costs.chunks.size(), size_t(task->chunk + 1));
    costs.chunks.resize(chunks, {0, 0, 0});
    schedule.stageOf.resize(chunks, -1);
    schedule.stageOf[task->chunk] = stage;
    schedule::TaskCosts::Chunk &chunk = costs.chunks[task->chunk];
    double *slot = task->kind == TaskKind::forward    ? &chunk.forward
                   : task->kind == TaskKind::backward ? &chunk.backward
                                                      : &chunk.weight;
    auto cost = program.taskFlops->find("FBW"[int(task->kind)] + std::to_string(task->chunk));
    if (cost == program.taskFlops->end())
      return damaged();
    *slot = cost->second;
  }
  return llvm::Error::success();
}

llvm::Expected<std::optional<StepTasks>> report::tasksOf(const plan::Plan &plan) {
  StepTasks tasks;
  schedule::TaskCosts costs;
  std::vector<std::vector<double>> rounds;
  for (auto [stage, program] : llvm::enumerate(plan.programs)) {
    if (!program.order)
      return std::nullopt; // not stages of a pipeline
    tasks.schedule.order.emplace_back();
    if (llvm::Error error = readStage(program, stage, tasks, costs))
      return std::move(error);
    for (auto [round, cost] : llvm::enumerate(program.roundFlops.value_or(std::vector<double>()))) {
      rounds.resize(std::max(rounds.size(), round + 1), std::vector<double>(plan.programs.size()));
      rounds[round][stage] = cost;
    }
  }
  if (plan.programs.empty())
    return std::nullopt;
  // Once to see how long it takes, then in percent of that.
  double scale = 1;
  for (bool last : {false, true}) {
    for (schedule::TaskCosts::Chunk &chunk : costs.chunks)
      chunk = {chunk.forward * scale, chunk.backward * scale, chunk.weight * scale};
    for (auto &round : rounds)
      for (double &cost : round)
        cost *= scale;
    llvm::Expected<schedule::Timeline> timeline = simulate(tasks.schedule, costs);
    if (!timeline)
      return timeline.takeError();
    tasks.timeline = std::move(*timeline);
    tasks.timeline.addRounds(rounds);
    scale = last ? 1 : 100 / std::max(tasks.timeline.end(), 1e-300);
  }
  return tasks;
}
