//===- Numbers.cpp - what changes the numbers of a run ----------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "common/launch/Numbers.h"

#include "common/checkpoint/Checksum.h"
#include "common/data/LearningRate.h"
#include "common/launch/Agreement.h"
#include "common/launch/Flags.h"
#include "common/monitor/Error.h"
#include "common/plan/Plan.h"
#include "meshwright/runtime/Version.h"

#include <numeric>

using namespace meshwright;

static constexpr char initName[] = "--init", compilerName[] = "compiler", historyName[] = "history",
                      adapterName[] = "--adapter", scaleName[] = "--initial-loss-scale";

static Numbers programNumbers(const Plan &plan) {
  Numbers numbers = {{compilerName, version}};
  if (plan.numbers)
    for (const plan::Setting &setting : *plan.numbers)
      numbers[setting.name] = setting.value;
  return numbers;
}

static Numbers withoutHistory(Numbers numbers) {
  numbers.erase(historyName);
  return numbers;
}

Numbers meshwright::numbersOf(const Plan &plan, const Options &options, const TrainingState &state,
                              const Numbers &saved) {
  Numbers numbers = programNumbers(plan);
  FlagTexts kept = keptFlags(options);
  for (const RunFlag &flag : flagTable(options)) {
    auto value = kept.find(flag.name);
    if (value == kept.end() || (flag.idle && !flag.idle(options, plan).empty()))
      continue;
    // Another end changes the rates of a schedule that ends there.
    auto member = std::get_if<RunFlag::Integer>(&flag.member);
    if (member && *member == &Options::steps && !endsAtLastStep(options.lrSchedule))
      continue;
    numbers[flag.name] = value->second;
  }
  numbers["--seed"] = std::to_string(state.seed);
  numbers["--tokens"] = options.tokens;
  // A resumed run goes on with the scale of its checkpoint.
  if (auto scale = saved.find(scaleName); scale != saved.end())
    numbers[scaleName] = scale->second;
  else if (plan.inputs.count("loss_scale"))
    numbers[scaleName] = text(options.initialLossScale);
  numbers["order"] = state.shuffle ? "shuffled" : "in file order";
  if (state.sources.size() > 1) {
    double all = 0;
    for (const TrainingState::Source &source : state.sources)
      all += source.weight;
    std::string shares;
    for (const TrainingState::Source &source : state.sources)
      shares += text(shares.empty() ? "" : ", ", source.weight / all);
    numbers["mixture"] = shares;
  }
  for (const auto &[flag, words] : state.data)
    numbers[flag] = words;
  if (auto before = saved.find(initName); before != saved.end())
    numbers[initName] = before->second;
  else if (state.step == 0 && !options.init.empty())
    numbers[initName] = weightsWords(options.init, "--init");
  if (auto before = saved.find(adapterName); before != saved.end())
    numbers[adapterName] = before->second;
  else if (state.step == 0 && !options.adapter.empty())
    numbers[adapterName] = weightsWords(options.adapter, "--adapter");
  // The steps that were made with other numbers.
  Numbers before = withoutHistory(saved);
  if (auto history = saved.find(historyName); history != saved.end())
    numbers[historyName] = history->second;
  if (before.count(compilerName) && before != withoutHistory(numbers))
    numbers[historyName] += text(numbers[historyName].empty() ? "" : ", ", numbersHash(saved), " up to step ", state.step);
  return numbers;
}

std::string meshwright::numbersHash(const Numbers &numbers) {
  RunningChecksum sum;
  for (const auto &[name, value] : numbers) {
    std::string line = name + '=' + value + '\n';
    sum.add(line.data(), line.size());
  }
  return sum.take().substr(0, 16);
}

std::string meshwright::changedProgram(const Plan &plan, const Numbers &saved) {
  Numbers now = programNumbers(plan), before = saved;
  std::string changes;
  if (!saved.count(compilerName))
    return changes; // It is of an earlier version.
  for (const auto &[name, value] : saved)
    if (name.rfind("--", 0) != 0 && name != "order" && name != "mixture" && name != historyName && !now.count(name))
      now[name] = "";
  for (const auto &[name, value] : now) {
    std::string was = before[name];
    if (name == "batch" || value == was)
      continue;
    changes += text(changes.empty() ? "" : "; ", name, " ", value.empty() ? "not given" : value, ", was ",
                    was.empty() ? "not given" : was);
  }
  return changes;
}
