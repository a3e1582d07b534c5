//===- StepReport.cpp - what a run says of its steps ----------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "common/train/StepReport.h"

#include "common/checkpoint/SaveFolder.h"
#include "common/monitor/Error.h"
#include "common/monitor/TensorNorms.h"

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

/// Those of a table with all that steps of this run may say; not the load of experts, which is many numbers.
std::vector<std::string> StepReport::columns(const std::vector<Evaluation> &evaluations, bool hasPeak) const {
  const Plan &plan = run.plan;
  StepMetrics all;
  all.evaluations = evaluations;
  all.evaluatedOnly = run.state.step >= run.options.steps;
  all.skipped = true;
  if (run.reportsBatch)
    all.batch = 0;
  if (plan.outputs.count("aux_loss"))
    all.auxLoss = 0;
  if (plan.dpoBeta)
    all.rewards.emplace();
  if (hasPeak)
    all.mfu = 0;
  if (experts) {
    all.expertRounds = 0;
    all.failedRouter.emplace();
  }
  if (AttentionShares::areCounted(plan))
    all.attentionImbalance = 0;
  if (run.options.stragglers)
    all.slowest.emplace(0, 1);
  if (run.scaler)
    all.lossScale = 0;
  return MetricsFile::columnsOf(all);
}

void StepReport::open(const std::vector<Evaluation> &evaluations, bool hasPeak) {
  progress.emplace(run.state.step, run.options.steps, run.options.logEvery);
  // An evaluation of an earlier checkpoint repeats no step that the files have.
  bool repeats = run.state.step < run.options.steps || run.state.step == 0;
  int64_t firstStep = repeats ? run.state.step : MetricsFile::noStep;
  if (run.isRoot() && !run.options.metrics.empty())
    metrics = std::make_unique<MetricsFile>(run.options.metrics, firstStep, columns(evaluations, hasPeak));
  if (run.isRoot() && !run.options.tensorboard.empty())
    events.emplace(run.options.tensorboard, firstStep);
  if (run.isRoot() && !run.options.logSamples.empty() && firstStep != MetricsFile::noStep)
    samples.emplace(run.options.logSamples, run.state.step, run.options.data);
  if (run.isRoot() && !run.options.trace.empty())
    traceFile = std::make_unique<OutputFile>(run.options.trace);
}

StepMetrics StepReport::read(int64_t step, const std::vector<float> &reference) {
  StepMetrics result;
  result.step = step;
  result.loss = run.output("loss");
  result.gradNorm = run.output("grad_norm");
  if (run.plan.outputs.count("aux_loss"))
    result.auxLoss = run.output("aux_loss");
  if (run.plan.dpoBeta) {
    Preferences preferences(*run.plan.dpoBeta);
    preferences.add(run.outputs("log_probs"), reference.data(), int64_t(reference.size()));
    result.rewards = preferences.rewards();
    if (run.checkpoint.empty() && step == run.firstStep)
      noteOtherReference(preferences);
  }
  result.expertRounds = mostRounds();
  readExperts(result);
  readScale(result);
  readNorms(result);
  return result;
}

/// A run begins with the reference's weights, unless something else is meant. Other precisions and meshes round the
/// same log-probabilities differently, by far less than a hundredth.
void StepReport::noteOtherReference(const Preferences &preferences) const {
  if (!(preferences.distance() > 0.01))
    return;
  char digits[32];
  snprintf(digits, sizeof(digits), "%.2g%%", 100 * preferences.distance());
  run.note(text("--reference-log-probs: before the first step the weights give log-probabilities that differ from "
                "the reference's by ", digits, ", but a run usually begins with the reference model. The file may be of "
                "other weights or other data than --data; dropout, which is on in training, changes them, too"));
}

void StepReport::readNorms(StepMetrics &result) {
  if (!run.options.logNorms || (result.step + 1) % run.options.logNorms != 0)
    return;
  ActivityScope activity(run.context.status, "computing norms of tensors");
  ArenaRange variables = run.plan.variableRange();
  run.download(variables);
  result.norms = tensorNorms(run.context, run.arena->variables());
  run.forgetVariables();
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
  bool places = run.options.placeExpertsEvery && (result.step + 1) % run.options.placeExpertsEvery == 0;
  failures = std::isfinite(result.gradNorm) ? 0 : failures;
  if (!asked && !places && std::isfinite(result.gradNorm))
    return;
  std::vector<LayerTokens> layers = experts->gather(*run.context.world, addresses);
  auto failed = std::find_if(layers.begin(), layers.end(),
                             [](const LayerTokens &layer) { return !layer.isFinite(); });
  if (!std::isfinite(result.gradNorm) && failed != layers.end()) {
    result.failedRouter = *failed;
    result.skipped = ++failures < failuresInARow;
    if (result.skipped)
      noteSkipped(result);
    if (run.isRoot() && result.skipped)
      fprintf(stderr,
              "warning: step %ld: the logits of the router of layer %ld (%s) are not finite: "
              "the step changes nothing\n",
              long(result.step), long(failed->layer), failed->router.c_str());
  }
  if (places && failed == layers.end()) {
    ExpertLoads loads;
    for (const LayerTokens &layer : layers)
      loads[layer.layer].assign(layer.counts.begin(), layer.counts.end());
    run.placeExperts(std::move(loads), "--place-experts-every");
  }
  if (asked)
    result.expertTokens = std::move(layers);
}

void StepReport::noteSkipped(const StepMetrics &result) {
  if (!run.scaler || result.failedRouter) {
    ++run.state.skipped;
    return;
  }
  run.scaler->update(/*overflow=*/true);
  run.state.lossScale = run.scaler->saved();
}

void StepReport::readScale(StepMetrics &result) {
  if (!run.scaler)
    return;
  LossScaler &scaler = *run.scaler;
  result.lossScale = scaler.scale();
  if (result.failedRouter)
    return; // The scale is not to blame.
  if (std::isfinite(result.gradNorm)) {
    scaler.update(/*overflow=*/false);
    run.state.lossScale = scaler.saved();
  } else if (!scaler.isLeast()) { // Else it is a divergence, and not an effect of the scale.
    result.skipped = true;
    noteSkipped(result);
  }
}

bool StepReport::isLogged(const StepMetrics &result) const {
  int64_t every = std::max<int64_t>(run.options.logEvery, 1), done = result.step + 1;
  return done % every == 0 || done == run.options.steps || result.skipped || result.evaluatedOnly ||
         !result.evaluations.empty() || !result.norms.empty() || result.slowest;
}

void StepReport::write(const StepMetrics &result) {
  if (!isLogged(result))
    return;
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

void StepReport::goBackTo(int64_t step) {
  if (metrics)
    metrics->goBackTo(step);
  if (events)
    events->goBackTo(step);
  if (samples)
    samples->goBackTo(step);
}

void StepReport::close() {
  MwContext &context = run.context;
  if (!run.options.trace.empty()) {
    ActivityScope activity(context.status, "writing the trace");
    context.trace->sentBytes = context.sentBytes;
    for (int32_t engine = 0; engine < copyEngines; ++engine)
      context.trace->copiedBytes[CopyEngine::numbered(engine).key()] =
          context.copiedBytes[size_t(engine)];
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
