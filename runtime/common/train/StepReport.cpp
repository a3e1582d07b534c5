//===- StepReport.cpp - what a run says of its steps ----------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "common/train/StepReport.h"

#include "common/checkpoint/SaveFolder.h"
#include "common/monitor/Error.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

using namespace meshwright;

StepReport::StepReport(Run &run) : run(run) {
  if (ExpertTokens::isCounted(run.plan))
    experts.emplace(run.plan, run.context.rank(), run.options.idleExpertSteps);
}

void StepReport::check() const {
  const Options &options = run.options;
  if (!run.isRoot())
    return;
  if (!options.metrics.empty())
    checkWritable(options.metrics);
  if (!options.logSamples.empty())
    checkWritable(options.logSamples);
  if (!options.trace.empty())
    checkWritable(options.trace);
  if (!options.dump.empty())
    prepareDirectory(options.dump, "--dump");
}

void StepReport::open() {
  progress.emplace(run.state.step, run.options.steps);
  if (run.isRoot() && !run.options.metrics.empty())
    metrics = std::make_unique<MetricsFile>(run.options.metrics, run.state.step);
  if (run.isRoot() && !run.options.tensorboard.empty())
    events.emplace(run.options.tensorboard, run.state.step);
  if (run.isRoot() && !run.options.logSamples.empty())
    samples.emplace(run.options.logSamples, run.state.step, run.options.data);
  if (run.isRoot() && !run.options.trace.empty())
    traceFile = std::make_unique<OutputFile>(run.options.trace);
}

StepMetrics StepReport::read(int64_t step) {
  StepMetrics result;
  result.step = step;
  result.loss = run.output("loss");
  result.gradNorm = run.output("grad_norm");
  if (run.plan.outputs.count("aux_loss"))
    result.auxLoss = run.output("aux_loss");
  result.expertRounds = mostRounds();
  readExperts(result);
  readScale(result);
  return result;
}

std::optional<int32_t> StepReport::mostRounds() const {
  bool counted = std::any_of(run.plan.collectives.begin(), run.plan.collectives.end(),
                             [](const CollectiveEntry &entry) { return entry.inRounds; });
  if (!counted)
    return run.context.expertRounds;
  int32_t mine = run.context.expertRounds.value_or(0), most = 0;
  run.context.world->allReduce(ElementType::I32, Reduction::Max, &mine, &most, 1);
  return most;
}

void StepReport::readExperts(StepMetrics &result) {
  if (!experts)
    return;
  for (ArenaRange range : experts->ranges())
    run.download(range);
  VariableAddresses addresses = run.arena->variables();
  for (const std::string &word : experts->note(addresses))
    fprintf(stderr, "warning: %s\n", word.c_str());
  // All ranks have the same norm, so all take part.
  bool asked =
      run.options.expertTokensEvery && (result.step + 1) % run.options.expertTokensEvery == 0;
  failures = std::isfinite(result.gradNorm) ? 0 : failures;
  if (!asked && std::isfinite(result.gradNorm))
    return;
  std::vector<LayerTokens> layers = experts->gather(*run.context.world, addresses);
  auto failed = std::find_if(layers.begin(), layers.end(),
                             [](const LayerTokens &layer) { return !layer.isFinite(); });
  if (!std::isfinite(result.gradNorm) && failed != layers.end()) {
    result.failedRouter = *failed;
    result.skipped = ++failures < failuresInARow;
    ++run.state.skipped;
    if (run.isRoot() && result.skipped)
      fprintf(stderr,
              "warning: step %ld: the logits of the router of layer %ld (%s) are not finite: "
              "the step changes nothing\n",
              long(result.step), long(failed->layer), failed->router.c_str());
  }
  if (asked)
    result.expertTokens = std::move(layers);
}

void StepReport::readScale(StepMetrics &result) {
  if (!run.scaler)
    return;
  LossScaler &scaler = *run.scaler;
  result.lossScale = scaler.scale();
  if (result.failedRouter)
    return; // The scale is not to blame.
  // At the least scale an overflow is a divergence and not an effect of the scale.
  result.skipped = !std::isfinite(result.gradNorm) && !scaler.isLeast();
  scaler.update(result.skipped);
  run.state.lossScale = scaler.saved();
}

static std::string afterDivergence(const Options &options) {
  return text("training has diverged; try a smaller --lr, a longer --warmup or ",
              options.gradClip > 0 ? "a smaller --grad-clip" : "--grad-clip 1",
              options.save.empty() ? "" : ", and go on from the last checkpoint");
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

void StepReport::checkFinite(const StepMetrics &result, const Batches &batches,
                             int64_t position) {
  if (result.skipped || (std::isfinite(result.loss) && std::isfinite(result.gradNorm)))
    return;
  endLine();
  if (result.failedRouter)
    fail("step ", result.step, ": the logits of the router of layer ", result.failedRouter->layer,
         " (", result.failedRouter->router, ") are not finite, as in the ", failures - 1,
         " steps before, which were skipped: ", afterDivergence(run.options));
  fail("step ", result.step, ": the loss is ", result.loss, " and the gradient norm ",
       result.gradNorm, ": ", afterDivergence(run.options), "; its batch has the sequences ",
       sequencesText(batches, position));
}

void StepReport::write(const StepMetrics &result) {
  if (metrics)
    metrics->write(result);
  if (events)
    events->write(result);
}

void StepReport::writeSamples(int64_t step, const Batches &batches, int64_t position) {
  if (samples)
    samples->write(step, batches.samples(position));
}

void StepReport::show(const StepMetrics &result) {
  if (run.isRoot())
    progress->show(result);
}

void StepReport::endLine() { progress->endLine(); }

void StepReport::close() {
  MwContext &context = run.context;
  if (!run.options.trace.empty()) {
    ActivityScope activity(context.status, "writing the trace");
    context.trace->sentBytes = context.sentBytes;
    context.trace->copiedBytes = {{"to_device", context.copiedBytes[0]},
                                  {"to_host", context.copiedBytes[1]}};
    if (uint64_t dropped = context.trace->droppedSpans())
      run.note(text("--trace ", run.options.trace, " has the first ", grouped(Trace::limit),
                    " spans of rank 0; ", grouped(dropped),
                    " later ones were dropped: choose steps with --trace-from and --trace-steps"));
    Trace::write(*context.trace, *context.world, traceFile.get());
  }
  if (metrics)
    metrics->close();
  if (events)
    events->close();
  if (samples)
    samples->close();
}
