//===- Evaluation.cpp - the loss on --eval-data ---------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "common/train/Evaluation.h"

#include <cmath>

using namespace meshwright;

Evaluation meshwright::evaluate(Run &run, Batches &batches, Saving &saving) {
  TraceScope span(run.context.trace.get(), "evaluate", "step");
  ActivityScope activity(run.context.status, "evaluating");
  const Plan &plan = run.plan;
  int64_t sequences = batches.evaluationSequences();
  double sum = 0;
  Evaluation result;
  for (int64_t first = 0; first < sequences; first += plan.batch) {
    saving.attempt([&] { batches.fillEvaluation(first); });
    saving.agree();
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
    result.targets = sequences * plan.sequence;
  result.loss = result.targets ? sum / double(result.targets) : 0;
  if (std::optional<double> bytes = batches.evaluation().bytesPerToken();
      bytes && *bytes > 0 && !batches.evaluation().leavesOut())
    result.bitsPerByte = result.loss / std::log(2.0) / *bytes;
  return result;
}
