//===- Recovery.cpp - what becomes of a step that is not finite -----------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "common/train/Recovery.h"

#include "common/monitor/Error.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

using namespace meshwright;

static std::string afterDivergence(const Options &options) {
  return text("training has diverged; try a smaller --lr, a longer --warmup or ",
              options.gradClip > 0 ? "a smaller --grad-clip" : "--grad-clip 1",
              options.onNan == "stop" ? ", or leave such batches out with --on-nan skip" : "");
}

/// "a.bin 3, a.bin 17 and 2 more": files and numbers of sequences.
static std::string sequencesText(const Batches &batches, int64_t position) {
  constexpr size_t most = 8;
  std::vector<std::pair<int64_t, int64_t>> places = batches.samples(position);
  std::string words;
  for (size_t i = 0; i < std::min(most, places.size()); ++i)
    words += text(i ? ", " : "", batches.training().path(places[i].first), " ", places[i].second);
  return places.size() > most ? text(words, " and ", places.size() - most, " more") : words;
}

/// Whether the step has changed no variable (train.guard).
static bool changedNothing(const StepMetrics &result) { return !std::isfinite(result.gradNorm); }

/// What is wrong with the step, and with which sequences.
std::string Recovery::trouble(const StepMetrics &result) const {
  std::string batch = text("its batch has the sequences ",
                           sequencesText(batches, run.state.position - run.lastBatch));
  if (const auto &router = result.failedRouter)
    return text("step ", result.step, ": the logits of the router of layer ", router->layer, " (",
                router->router, ") are not finite, as in the steps before, which were skipped; ",
                batch);
  auto word = [](double value) { return std::isnan(value) ? "nan" : text(value); }; // without a sign
  return text("step ", result.step, ": the loss is ", word(result.loss), " and the gradient norm ",
              word(result.gradNorm), "; ", batch);
}

void Recovery::warn(const std::string &message) {
  if (!run.isRoot())
    return;
  report.endLine();
  fprintf(stderr, "warning: %s\n", message.c_str());
}

/// Ends the run with the state before the step, which is saved if any can be.
void Recovery::stop(const StepMetrics &result, const std::string &why) {
  report.endLine();
  std::string message = text(trouble(result), ": ", why, afterDivergence(run.options));
  if (changedNothing(result)) {
    --run.state.step;
    run.state.position -= run.lastBatch;
  }
  saving.failSaved(message);
}

void Recovery::skip(StepMetrics &result) {
  if (++skippedInARow > mostSkipped)
    stop(result, text("the ", mostSkipped, " steps before were skipped too: "));
  if (changedNothing(result)) {
    result.skipped = true;
    report.noteSkipped(result);
  }
  warn(text(trouble(result), ": ",
            result.skipped ? "the step changes nothing" : "its gradient is finite, and was used"));
}

void Recovery::goBack(const StepMetrics &result) {
  saving.finishWriting();
  std::string checkpoint = saving.lastCheckpoint();
  if (checkpoint.empty())
    stop(result, "there is no checkpoint yet to go back to: ");
  if (saving.lastStep() != returnedTo)
    returns = 0;
  returnedTo = saving.lastStep();
  if (++returns > mostReturns)
    stop(result, text("the run has gone back to ", checkpoint, " ", mostReturns, " times: "));
  warn(text(trouble(result), ": going back to ", checkpoint,
            " and continuing with the data after this batch"));
  saving.forgetMemory(); // Or a start would go on from a step that this run no longer has.
  run.goBackTo(checkpoint);
  batches.forgetFilled();
  report.goBackTo(run.state.step);
}

bool Recovery::settle(StepMetrics &result) {
  bool isFinite = std::isfinite(result.loss) && std::isfinite(result.gradNorm);
  if (isFinite) {
    skippedInARow = 0;
    if (std::optional<LossSpikes::Spike> spike = spikes.note(result.loss))
      warn(text("step ", result.step, ": the loss ", result.loss, " is ", std::lround(spike->deviations),
                " standard deviations above ", spike->mean,
                ", the mean of the steps before; its batch has the sequences ",
                sequencesText(batches, run.state.position - run.lastBatch)));
    return true;
  }
  if (result.skipped)
    return true; // An overflow in fp16, or a router's first failures.
  if (run.options.onNan == "skip") {
    skip(result);
    return true;
  }
  if (run.options.onNan == "rollback") {
    goBack(result);
    return false;
  }
  stop(result, "");
}
