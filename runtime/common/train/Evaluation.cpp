//===- Evaluation.cpp - the loss on --eval-data ---------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "common/train/Evaluation.h"

#include "common/checkpoint/OutputFile.h"
#include "common/monitor/Error.h"
#include "common/train/Preferences.h"

#include <algorithm>
#include <cmath>

using namespace meshwright;

/// Whether the losses of `set` can be told for each byte of its text.
static std::optional<double> bytesPerToken(const Batches::EvaluationSet &set) {
  std::optional<double> bytes = set.data->hasPreferencePairs() ? std::nullopt : set.data->bytesPerToken();
  return bytes && *bytes > 0 && !set.data->leavesOut() ? bytes : std::nullopt;
}

std::vector<Evaluation> meshwright::evaluationsOf(Batches &batches) {
  std::vector<Evaluation> results;
  for (const Batches::EvaluationSet &set : batches.evaluationSets())
    results.push_back({set.name, 0, 0, bytesPerToken(set),
                       set.data->hasPreferencePairs() ? std::optional(Rewards()) : std::nullopt});
  return results;
}

/// Writes what the program says of all sequences, which another run would refuse to read if it were not finite.
static void writeLogProbs(const Run &run, const Batches::EvaluationSet &set, const std::vector<float> &all) {
  auto bad = std::find_if(all.begin(), all.end(), [](float value) { return !std::isfinite(value); });
  if (bad != all.end())
    fail("--log-probs ", run.options.logProbs, ": the log-probability of sequence ", bad - all.begin(), " of ",
         set.data->name(), " is ", *bad, ", so nothing is written: the weights have numbers that are not finite, or "
         "overflow in this precision");
  OutputFile file(run.options.logProbs);
  file.write(all.data(), int64_t(all.size() * sizeof(float)));
  file.close();
}

/// The mean loss of direct preference optimization, computed from what the program says of each sequence. With
/// --log-probs the weights are the reference themselves, and that is written: it says nothing of preferences.
static Evaluation evaluatePreferences(Run &run, Batches &batches, Saving &saving, Batches::EvaluationSet &set) {
  const Plan &plan = run.plan;
  Preferences preferences(*plan.dpoBeta);
  std::vector<float> all;
  bool isReference = !run.options.logProbs.empty();
  for (int64_t first = 0; first < set.sequences; first += plan.batch) {
    saving.attempt([&] { batches.fillEvaluation(set, first); });
    saving.agree();
    run.writeInputs(plan.batch);
    run.start(meshwright_eval);
    run.download(Plan::rangeOf(plan.outputs));
    const float *logProbs = run.outputs("log_probs");
    int64_t count = std::min(plan.batch, set.sequences - first);
    if (!isReference)
      preferences.add(logProbs, batches.reference().data(), count);
    all.insert(all.end(), logProbs, logProbs + count);
  }
  Evaluation result;
  result.name = set.name;
  if (isReference) {
    if (run.isRoot())
      writeLogProbs(run, set, all);
    return result;
  }
  result.loss = preferences.loss();
  result.targets = preferences.pairs();
  result.rewards = preferences.rewards();
  return result;
}

static Evaluation evaluateSet(Run &run, Batches &batches, Saving &saving, Batches::EvaluationSet &set) {
  if (set.data->hasPreferencePairs())
    return evaluatePreferences(run, batches, saving, set);
  const Plan &plan = run.plan;
  double sum = 0;
  Evaluation result;
  result.name = set.name;
  for (int64_t first = 0; first < set.sequences; first += plan.batch) {
    saving.attempt([&] { batches.fillEvaluation(set, first); });
    saving.agree();
    run.writeInputs(plan.batch);
    run.start(meshwright_eval);
    run.download(Plan::rangeOf(plan.outputs));
    double loss = run.output("loss");
    if (plan.outputs.count("aux_loss"))
      loss -= run.output("aux_loss");
    sum += loss * double(batches.countedTargets());
    result.targets += batches.countedTargets();
  }
  // The other programs divide by a whole batch's targets, also where some count for nothing.
  if (!plan.inputNames.count("target_weight"))
    result.targets = set.sequences * plan.sequence;
  result.loss = result.targets ? sum / double(result.targets) : 0;
  if (std::optional<double> bytes = bytesPerToken(set))
    result.bitsPerByte = result.loss / std::log(2.0) / *bytes;
  return result;
}

std::vector<Evaluation> meshwright::evaluate(Run &run, Batches &batches, Saving &saving) {
  TraceScope span(run.context.trace.get(), "evaluate", "step");
  ActivityScope activity(run.context.status, "evaluating");
  std::vector<Evaluation> results;
  for (Batches::EvaluationSet &set : batches.evaluationSets())
    results.push_back(evaluateSet(run, batches, saving, set));
  return results;
}
