//===- Trainer.cpp - one rank's training run ------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "common/launch/Trainer.h"

#include "common/checkpoint/Weights.h"
#include "common/data/LearningRate.h"
#include "common/launch/Launch.h"
#include "common/monitor/Error.h"
#include "common/monitor/Rounds.h"
#include "common/monitor/StopSignal.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <unistd.h>

using namespace meshwright;

Trainer::Trainer(MwContext &context, const Options &options)
    : context(context), plan(context.plan), options(options),
      data({"--data", options.data}, {"--loss-mask", options.lossMask},
           {"--documents", options.documents}, options.tokens, plan.sequence, plan.vocabulary) {
  ActivityScope activity(context.status, "preparing the run");
  int64_t sequences = data.sequences(plan.batch);
  if (!options.evalData.empty())
    openEvalData();
  checkTokens();
  checkTargets(data, sequences);
  if (evalData)
    checkTargets(*evalData, evalSequences);
  if (context.device)
    context.device->useGraphs(options.cudaGraphs);
  state.seed = options.seed;
  state.shuffle = options.shuffle;
  if (!options.resume.empty())
    resumeState();
  firstStep = state.step;
  state.tokens = data.tokens();
  state.fileTokens = options.data.size() > 1 ? data.tokensByFile() : std::vector<int64_t>();
  state.batch = plan.batch;
  state.flags = keptFlags(options);
  startLossScaling();
  if (!options.dump.empty())
    checkDump();
  order = std::make_unique<DataOrder>(sequences, state.shuffle, uint64_t(state.seed));
  if (plan.maskedShare) {
    trainingMask.emplace(*plan.maskedShare, *plan.maskToken, plan.vocabulary);
    evaluationMask.emplace(*plan.maskedShare, *plan.maskToken, plan.vocabulary, true);
  }
  if (isRoot())
    checkOutputs();
  arena = makeArena(context);
  context.hostArena = arena->onHost();
  if (!options.tune.empty())
    context.device->tune(*arena, options.tune, *context.world);
  loadWeights();
  if (ExpertTokens::isCounted(plan))
    experts.emplace(plan, context.rank(), options.idleExpertSteps);
  if (AttentionShares::areCounted(plan))
    attentionShares.emplace(plan, context.rank());
  context.world->barrier(); // Every rank has what it needs.
  if (isRoot() && !options.metrics.empty())
    metrics = std::make_unique<MetricsFile>(options.metrics, state.step);
  if (isRoot() && !options.trace.empty())
    traceFile = std::make_unique<OutputFile>(options.trace);
}

/// Finds out before the weights are read whether the run can write what it will.
void Trainer::checkOutputs() {
  if (!options.save.empty()) {
    prepareDirectory(options.save, "--save");
    folder = std::make_unique<SaveFolder>(options.save, checkpoint);
    if (const std::set<std::string> &others = folder->others(); !others.empty())
      note(
          text("--save ", options.save, " has checkpoints of another run, up to ", *others.rbegin(),
               ": this run replaces those of its own steps, and --keep leaves the others; to go on "
               "from them, give --resume, or else name a folder of its own"));
  }
  if (!options.metrics.empty())
    checkWritable(options.metrics);
  if (!options.trace.empty())
    checkWritable(options.trace);
  if (!options.dump.empty())
    prepareDirectory(options.dump, "--dump");
}

void Trainer::checkDump() const {
  if (!Dump::isPossible())
    fail("--dump ", options.dump,
         ": this executable does not say what it computes: compile it with --replay");
  if (options.dumpStep < state.step || options.dumpStep >= options.steps)
    fail("--dump-step ", options.dumpStep, ": this run makes the steps from ", state.step,
         " to before ", options.steps, ": name one of them");
}

void Trainer::resumeState() {
  checkpoint = findCheckpoint(options.resume);
  TrainingState saved = readState(checkpoint);
  checkSameModel(plan, checkpoint);
  if (options.given("--seed") && options.seed != saved.seed)
    fail("--seed ", options.seed, ": the checkpoint ", checkpoint, " was trained with --seed ",
         saved.seed, ": drop --seed, it is taken from the checkpoint");
  if (options.shuffle && !saved.shuffle)
    fail("--shuffle: the checkpoint ", checkpoint,
         " was trained without it: drop --shuffle to go on with the same order of the data");
  if (saved.tokens != data.tokens())
    note(text(data.name(), options.data.size() == 1 ? " has " : " have ", grouped(uint64_t(data.tokens())),
              " tokens, the data of the checkpoint ", checkpoint, " had ",
              grouped(uint64_t(saved.tokens))));
  else if (std::vector<int64_t> counts = data.tokensByFile();
           counts != (saved.fileTokens.empty() ? std::vector{saved.tokens} : saved.fileTokens))
    note(text(data.name(), ": the tokens lie in other files, or in another order, than those of the "
              "checkpoint ", checkpoint, ", so its sequences are others: it goes on after ",
              grouped(uint64_t(saved.position)), " of them"));
  if (saved.batch != plan.batch)
    note(text("the batch of the checkpoint ", checkpoint, " was ", saved.batch,
              " sequences, this executable's is ", plan.batch, ": it goes on after ",
              grouped(uint64_t(saved.position)), " sequences of the data, at step ", saved.step));
  if (std::string changes = changedFlags(options, saved.flags); !changes.empty())
    note(changes);
  if (std::string unsaid = unsaidFlags(options, plan, saved.flags); !unsaid.empty())
    note(text("the checkpoint ", checkpoint,
              " is of a version that does not say what its run was given, so these are defaults: ",
              unsaid));
  state = saved;
}

void Trainer::startLossScaling() {
  if (!plan.inputs.count("loss_scale")) {
    state.lossScale.reset();
    return;
  }
  if (state.lossScale && options.given("--initial-loss-scale"))
    fail("--initial-loss-scale: the checkpoint ", checkpoint,
         " says how the loss is scaled: leave ", "it out");
  LossScale start;
  start.scale = options.initialLossScale;
  scaler = LossScaler(state.lossScale.value_or(start), options.lossScaleWindow, options.hysteresis,
                      options.minLossScale);
  state.lossScale = scaler->saved();
}

void Trainer::loadWeights() {
  TraceScope span(context.trace.get(), "load weights", "io");
  // A device has zeros where nothing is filled in. Part by part, so that the host never holds all.
  auto handOn = [this](const Variable &variable, const char *data, int64_t bytes) {
    if (variable.onHost)
      return;
    int64_t begin = data - arena->data();
    upload({begin, begin + bytes});
    arena->forget(begin, begin + bytes);
  };
  WeightTarget target{plan, context.rank(), arena->variables(), context.threads, handOn};
  target.sharing = sameOnMachine(*context.world, "");
  Rounds rounds(*context.world, weightBytes(target));
  target.rounds = &rounds;
  std::string extra;
  if (!checkpoint.empty()) {
    CheckpointIds ids = readIds(checkpoint);
    if (ids.model.empty())
      note(text("the checkpoint ", checkpoint,
                " is of a version without checksums: damage to it "
                "would not be found"));
    readWeights(target, WeightKind::Parameters, checkpoint + "/model.safetensors", "--resume",
                ids.model);
    readWeights(target, WeightKind::OptimizerStates, checkpoint + "/optimizer.safetensors",
                "--resume", ids.optimizer);
  } else if (!options.init.empty()) {
    extra = readWeights(target, WeightKind::Parameters, options.init, "--init");
  } else {
    initializeWeights(target, uint64_t(options.seed));
  }
  rounds.finish();
  if (!extra.empty())
    note(extra);
}

void Trainer::note(const std::string &message) const {
  if (isRoot())
    fprintf(stderr, "note: %s\n", message.c_str());
}

float Trainer::output(const char *name) const {
  return *arena->at<float>(plan.outputs.at(name).offset);
}

void Trainer::fillScalars(int64_t step) {
  auto set = [&](const char *name, double value) {
    if (float *address = input<float>(name))
      *address = float(value);
  };
  set("lr", learningRate(options, step));
  for (const Options::Hyperparameter &number : options.hyperparameters)
    set(number.name.c_str(), number.value);
  set("grad_clip", options.gradClip);
  // Skipped steps do not count.
  int64_t updates = (scaler ? scaler->updates(step) : step) - state.skipped + 1;
  for (const plan::BiasCorrection &correction : plan.biasCorrections)
    set(correction.name.c_str(), options.biasCorrection(correction, updates));
  if (scaler)
    set("loss_scale", scaler->scale());
  if (int32_t *key = input<int32_t>("key")) {
    key[0] = int32_t(state.seed);
    key[1] = int32_t(step);
  }
}

void Trainer::startStep(int64_t step) {
  context.status.step = step;
  if (context.trace)
    context.trace->recording =
        step >= options.traceFrom &&
        (options.traceSteps == 0 || step < options.traceFrom + options.traceSteps);
  TraceScope span(context.trace.get(), "read data", "io");
  ActivityScope activity(context.status, "reading data");
  attempt([&] {
    if (filled != state.position)
      fillTokens(data, *order, state.position, step);
  });
}

StepMetrics Trainer::trainStep(int64_t step, Clock::time_point begin) {
  const double attention = attentionFlops; // before the next step's tokens are read
  fillScalars(step);
  {
    TraceScope span(context.trace.get(), "step", "step", step);
    ActivityScope activity(context.status, "computing a step");
    upload(Plan::rangeOf(plan.inputs));
    if (!options.dump.empty() && step == options.dumpStep) {
      context.dump = std::make_unique<Dump>(options.dump, plan, context.rank(), step);
      download(plan.variableRange());
      context.dump->before(arena->variables());
    }
    context.expertRounds.reset();
    context.run(meshwright_step, arena->program());
    readAhead(step + 1);
    download(Plan::rangeOf(plan.outputs));
    if (context.dump) {
      download(plan.variableRange());
      context.dump->after(arena->variables());
      context.dump.reset();
    }
  }
  state.position += plan.batch;
  state.step = step + 1;
  StepMetrics result;
  result.step = step;
  result.loss = output("loss");
  result.gradNorm = output("grad_norm");
  if (plan.outputs.count("aux_loss"))
    result.auxLoss = output("aux_loss");
  result.expertRounds = mostRounds();
  if (attentionShares)
    result.attentionImbalance = attentionShares->imbalance(*context.world, attention);
  result.lr = learningRate(options, step);
  readExperts(result);
  if (scaler && result.failedRouter) {
    result.lossScale = scaler->scale(); // which is not to blame
  } else if (scaler) {
    result.lossScale = scaler->scale();
    // At the least scale an overflow is a divergence and not an effect of the scale.
    result.skipped = !std::isfinite(result.gradNorm) && !scaler->isLeast();
    scaler->update(result.skipped);
    state.lossScale = scaler->saved();
  }
  double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  result.stepMs = seconds * 1e3;
  result.tokensPerSecond = double(plan.batch * plan.sequence) / seconds;
  return result;
}

std::optional<int32_t> Trainer::mostRounds() {
  bool counted = std::any_of(plan.collectives.begin(), plan.collectives.end(),
                             [](const CollectiveEntry &entry) { return entry.inRounds; });
  if (!counted)
    return context.expertRounds;
  int32_t mine = context.expertRounds.value_or(0), most = 0;
  context.world->allReduce(ElementType::I32, Reduction::Max, &mine, &most, 1);
  return most;
}

void Trainer::readExperts(StepMetrics &result) {
  if (!experts)
    return;
  for (ArenaRange range : experts->ranges())
    download(range);
  VariableAddresses addresses = arena->variables();
  for (const std::string &word : experts->note(addresses))
    fprintf(stderr, "warning: %s\n", word.c_str());
  // All ranks have the same norm, so all take part.
  bool asked = options.expertTokensEvery && (result.step + 1) % options.expertTokensEvery == 0;
  failures = std::isfinite(result.gradNorm) ? 0 : failures;
  if (!asked && std::isfinite(result.gradNorm))
    return;
  std::vector<LayerTokens> layers = experts->gather(*context.world, addresses);
  auto failed = std::find_if(layers.begin(), layers.end(),
                             [](const LayerTokens &layer) { return !layer.isFinite(); });
  if (!std::isfinite(result.gradNorm) && failed != layers.end()) {
    result.failedRouter = *failed;
    result.skipped = ++failures < failuresInARow;
    ++state.skipped;
    if (isRoot() && result.skipped)
      fprintf(stderr, "warning: step %ld: the logits of the router of layer %ld (%s) are not finite: "
              "the step changes nothing\n",
              long(result.step), long(failed->layer), failed->router.c_str());
  }
  if (asked)
    result.expertTokens = std::move(layers);
}

// What has been uploaded is the device's, so the host's copy is free.
void Trainer::readAhead(int64_t step) {
  if (!context.device || step >= options.steps)
    return;
  attempt([&] {
    fillTokens(data, *order, state.position + plan.batch, step);
    filled = state.position + plan.batch;
  });
}

/// The mean over all tokens evaluated, the same for every batch size and mesh: without the routers'
/// part, which is no mean over tokens.
double Trainer::evaluate() {
  filled = -1; // Its tokens take their place.
  TraceScope span(context.trace.get(), "evaluate", "step");
  ActivityScope activity(context.status, "evaluating");
  DataOrder inOrder(evalData->sequences(), false, 0);
  double sum = 0;
  evaluatedTargets = 0;
  for (int64_t first = 0; first < evalSequences; first += plan.batch) {
    attempt([&] { fillTokens(*evalData, inOrder, first, std::nullopt, evalSequences); });
    agree();
    upload(Plan::rangeOf(plan.inputs));
    context.run(meshwright_eval, arena->program());
    download(Plan::rangeOf(plan.outputs));
    double loss = output("loss");
    if (plan.outputs.count("aux_loss"))
      loss -= output("aux_loss");
    sum += loss * double(countedTargets);
    evaluatedTargets += countedTargets;
  }
  // The other programs divide by a whole batch's targets, also where some count for nothing.
  if (!plan.inputNames.count("target_weight"))
    evaluatedTargets = evalSequences * plan.sequence;
  return evaluatedTargets ? sum / double(evaluatedTargets) : 0;
}

void Trainer::evaluateOnly() {
  if (!evalData)
    return;
  StepMetrics result;
  result.step = state.step;
  result.evaluatedOnly = true;
  result.evalLoss = evaluate();
  if (metrics)
    metrics->write(result);
  if (isRoot())
    printf("eval loss %.4f after %ld steps, over %s tokens\n", *result.evalLoss, long(state.step),
           grouped(uint64_t(evaluatedTargets)).c_str());
}

void Trainer::save() {
  if (options.save.empty() || savedStep == state.step)
    return;
  download(plan.variableRange());
  try {
    saveCheckpoint(context, arena->variables(), folder.get(), options.keep, state);
  } catch (const Error &error) {
    std::string latest = options.save + "/latest";
    fail(error.what(), access(latest.c_str(), F_OK) ? "" : "; the last good one is " + latest);
  }
  arena->forget(plan.variableRange().begin, plan.variableRange().end);
  savedStep = state.step;
}

template <typename Work> void Trainer::attempt(Work work) {
  if (options.save.empty()) {
    work();
    return;
  }
  try {
    work();
  } catch (const Error &error) {
    if (failed.empty())
      failed = error.what();
  }
}

int Trainer::agree() {
  if (!stopsLater())
    return 0;
  int size = context.world->size();
  // The first rank that has failed, counted from behind, and the signal.
  int32_t mine[2] = {failed.empty() ? 0 : size - context.rank(), stopRequest()}, all[2];
  context.world->allReduce(ElementType::I32, Reduction::Max, mine, all, 2);
  if (all[0] == 0)
    return all[1];
  // All fail with its message, in 32-bit words.
  int from = size - all[0];
  auto words = int32_t(failed.size() / 4 + 1);
  context.world->broadcast(ElementType::I32, &words, 1, from);
  failed.resize(size_t(words) * 4, ' ');
  context.world->broadcast(ElementType::I32, failed.data(), words, from);
  failed.erase(failed.find_last_not_of(' ') + 1);
  if (state.step == firstStep)
    fail(failed);
  try {
    save();
  } catch (const Error &error) {
    fail(failed, "; and ", error.what());
  }
  fail(failed, "; the state after ", state.step, state.step == 1 ? " step" : " steps",
       " is saved in ", options.save, "/", checkpointName(state.step));
}

static std::string afterDivergence(const Options &options) {
  return text("training has diverged; try a smaller --lr, a longer --warmup or ",
              options.gradClip > 0 ? "a smaller --grad-clip" : "--grad-clip 1",
              options.save.empty() ? "" : ", and go on from the last checkpoint");
}

/// The bytes of the rank that needs most, "up to" where programs differ.
static std::string mostText(const Plan &plan, int64_t Program::*bytes) {
  int64_t most = 0;
  bool differ = false;
  for (const Program &program : plan.programs) {
    differ |= program.*bytes != plan.programs.front().*bytes;
    most = std::max(most, program.*bytes);
  }
  return most ? (differ ? "up to " : "") + grouped(uint64_t(most)) : "";
}

int Trainer::run() {
  if (isRoot()) {
    std::string onHost = mostText(plan, &Program::hostBytes);
    if (!onHost.empty())
      onHost = " and " + onHost + " on the host";
    std::string cores = context.cores.empty() ? "" : " on cores " + context.cores;
    printf("meshwright: %s, %ld %s (%s), %d %s each%s, arena %s bytes%s, data %s%s\n",
           plan.model.c_str(), long(plan.ranks()), plan.ranks() == 1 ? "rank" : "ranks",
           plan.meshText().c_str(), context.threads, context.threads == 1 ? "thread" : "threads",
           cores.c_str(), mostText(plan, &Program::arenaBytes).c_str(), onHost.c_str(),
           state.shuffle ? "shuffled" : "in file order",
           checkpoint.empty() ? "" : (", resumed from " + checkpoint).c_str());
    if (context.device)
      printf("%s\n", context.device->describe().c_str());
    if (state.step >= options.steps && options.steps > 0)
      printf("nothing to train: %ld of %ld steps are done\n", long(state.step),
             long(options.steps));
    fflush(stdout);
  }
  if (state.step >= options.steps)
    evaluateOnly();
  Progress progress(state.step, options.steps);
  std::optional<StopRequests> listening;
  if (stopsLater())
    listening.emplace(!isRoot() ? nullptr
                      : options.save.empty()
                          ? "writing the trace after this step; again to end at once"
                          : "saving after this step; again to end at once");
  int stopped = 0;
  for (int64_t step = state.step; step < options.steps; ++step) {
    auto begin = Clock::now();
    startStep(step);
    if ((stopped = agree()))
      break;
    StepMetrics result = trainStep(step, begin);
    bool last = step + 1 == options.steps;
    bool finite = result.skipped || (std::isfinite(result.loss) && std::isfinite(result.gradNorm));
    if (finite && evalData && (last || (options.evalEvery && (step + 1) % options.evalEvery == 0)))
      result.evalLoss = evaluate();
    if (metrics && finite)
      attempt([&] { metrics->write(result); });
    if (!finite && result.failedRouter) {
      progress.endLine();
      fail("step ", step, ": the logits of the router of layer ", result.failedRouter->layer, " (",
           result.failedRouter->router, ") are not finite, as in the ", failures - 1,
           " steps before, which were skipped: ", afterDivergence(options));
    }
    if (!finite) {
      progress.endLine();
      fail("step ", step, ": the loss is ", result.loss, " and the gradient norm ", result.gradNorm,
           ": ", afterDivergence(options));
    }
    if (isRoot())
      progress.show(result);
    if (options.saveEvery && (step + 1) % options.saveEvery == 0)
      save();
  }
  if (!stopped)
    agree(); // The last step may have left an error.
  save();
  if (!options.trace.empty()) {
    ActivityScope activity(context.status, "writing the trace");
    context.trace->sentBytes = context.sentBytes;
    context.trace->copiedBytes = {{"to_device", context.copiedBytes[0]},
                                  {"to_host", context.copiedBytes[1]}};
    if (uint64_t dropped = context.trace->droppedSpans())
      note(text("--trace ", options.trace, " has the first ", grouped(Trace::limit),
                " spans of rank 0; ", grouped(dropped),
                " later ones were dropped: choose steps with --trace-from and --trace-steps"));
    Trace::write(*context.trace, *context.world, traceFile.get());
  }
  if (metrics)
    metrics->close();
  // For good: after the barrier the other ranks may end at any time.
  context.status.activity = "finishing";
  context.status.ending = true;
  context.world->barrier();
  if (isRoot() && (savedStep >= 0 || stopped))
    progress.endLine();
  if (isRoot() && savedStep >= 0) {
    printf("saved %s/%s\n", options.save.c_str(), checkpointName(savedStep).c_str());
  }
  if (!stopped)
    return 0;
  if (isRoot())
    fprintf(stderr, "stopped by %s after %ld of %ld steps%s%s\n",
            stopped == SIGTERM ? "SIGTERM" : "SIGINT", long(state.step), long(options.steps),
            options.save.empty() ? "" : ": go on with --resume ", options.save.c_str());
  return 128 + stopped; // As shells have it of a process that a signal has ended.
}
