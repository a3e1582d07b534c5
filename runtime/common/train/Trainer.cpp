//===- Trainer.cpp - one rank's training run ------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "common/train/Trainer.h"

#include "common/data/LearningRate.h"
#include "common/launch/Numbers.h"
#include "common/monitor/Error.h"
#include "common/monitor/StopSignal.h"
#include "common/train/Evaluation.h"
#include "meshwright/runtime/Averages.h"

#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstdio>

using namespace meshwright;

/// A number that ranks share that do the same work.
static int32_t workOf(const Plan &plan, int64_t rank) {
  int64_t work = int64_t(plan.program);
  std::vector<int64_t> at = plan.coordinates(rank);
  for (size_t axis = 0; axis < plan.mesh.size(); ++axis)
    if (hasUnevenWork(plan, plan.mesh[axis]))
      work = work * plan.mesh[axis].size + at[axis];
  return int32_t(work);
}

Trainer::Trainer(MwContext &context, const Options &options)
    : run(context, options), context(context), plan(context.plan), options(options), batches(run),
      saving(run), report(run), recovery(run, batches, saving, report) {
  ActivityScope activity(context.status, "preparing the run");
  batches.check();
  if (context.device)
    context.device->useGraphs(options.cudaGraphs);
  run.startState(batches.training());
  if (!options.dump.empty())
    checkDump();
  batches.start();
  saving.open(batches.training());
  report.check();
  if (options.checkReplicas)
    replicas.emplace(context);
  if (options.stragglers)
    stragglers.emplace(*context.world, workOf(plan, context.rank()));
  run.loadWeights();
  peak = peakOfAll();
  context.world->barrier(); // Every rank has what it needs.
  saving.saveResumedFromMemory();
  report.open(evaluationsOf(batches), peak > 0);
}

/// What all ranks compute at most, in FLOP/s, or 0 where --peak-flops does not say it.
double Trainer::peakOfAll() const {
  if (!options.measurePeak)
    return options.peakFlops * double(plan.ranks());
  ActivityScope activity(context.status, "measuring the peak rate of products");
  context.world->barrier(); // All at once, since ranks share caches and clocks.
  auto mine = float(measurePeak(context.threads)), all = 0.0f;
  context.world->allReduce(ElementType::F32, Reduction::Sum, &mine, &all, 1);
  return all;
}

void Trainer::checkReplicas() {
  if (!replicas || comparedStep == run.state.step)
    return;
  comparedStep = run.state.step;
  run.download(plan.variableRange());
  std::string words = replicas->difference(run.arena->variables());
  run.forgetVariables();
  if (words.empty())
    return;
  saving.finishWriting();
  std::string checkpoint = saving.lastCheckpoint();
  saving.forgetMemory(); // Or the next start would go on from it.
  fail("after step ", run.state.step - 1, ", ", words,
       ", where all must have the same: a device, its memory or a link has made an error that nothing else noticed. "
       "The state is not saved; ",
       checkpoint.empty() ? "there is no checkpoint to go on from"
                          : "go on from " + checkpoint + " without the machine of that rank");
}

void Trainer::checkDump() const {
  if (!Dump::isPossible())
    fail("--dump ", options.dump,
         ": this executable does not say what it computes: compile it with --replay");
  if (options.dumpStep < run.state.step || options.dumpStep >= options.steps)
    fail("--dump-step ", options.dumpStep, ": this run makes the steps from ", run.state.step,
         " to before ", options.steps, ": name one of them");
}

void Trainer::fillScalars(int64_t step) {
  auto set = [&](const char *name, double value) {
    if (float *address = run.input<float>(name))
      *address = float(value);
  };
  set("lr", learningRate(options, step));
  // Skipped steps do not count.
  int64_t updates = (run.scaler ? run.scaler->updates(step) : step) - run.state.skipped + 1;
  for (const Options::Hyperparameter &number : options.hyperparameters)
    set(number.name.c_str(), options.hyperparameter(number, updates));
  set("grad_clip", options.gradClip);
  for (const plan::BiasCorrection &correction : plan.biasCorrections)
    set(correction.name.c_str(), options.biasCorrection(correction, updates));
  if (run.state.rates)
    set(updateWeight, run.state.rates->share(learningRate(options, step),
                                             options.hyperparameter(updateWeightPower)));
  if (run.scaler)
    set("loss_scale", run.scaler->scale());
  if (int32_t *key = run.input<int32_t>("key")) {
    key[0] = int32_t(run.state.seed);
    key[1] = int32_t(step);
  }
}

void Trainer::startStep(int64_t step) {
  context.status.step = step;
  if (context.trace) {
    context.trace->keeping =
        !options.trace.empty() && step >= options.traceFrom &&
        (options.traceSteps == 0 || step - options.traceFrom < options.traceSteps);
    context.trace->recording = context.trace->keeping || isMeasured(step);
    context.trace->kernels = 0;
  }
  TraceScope span(context.trace.get(), "read data", "io");
  ActivityScope activity(context.status, "reading data");
  saving.attempt([&] { batches.fill(step); });
}

StepMetrics Trainer::trainStep(int64_t step, Clock::time_point begin) {
  const double attention = batches.attentionFlops(); // before the next step's tokens are read
  const std::vector<float> reference = batches.reference();
  const int64_t batch = run.batchAt(run.state.position);
  fillScalars(step);
  run.writeInputs(batch);
  {
    TraceScope span(context.trace.get(), "step", "step", step);
    ActivityScope activity(context.status, "computing a step");
    if (!options.dump.empty() && step == options.dumpStep) {
      context.dump = std::make_unique<Dump>(options.dump, plan, context.rank(), step);
      run.download(plan.variableRange());
      context.dump->before(run.arena->variables());
      run.arena->settle();
    }
    context.expertRounds.reset();
    run.start(meshwright_step);
    // While a device is still at this step.
    if (context.device && step + 1 < options.steps)
      saving.attempt([&] { batches.fillAhead(step + 1); });
    run.download(Plan::rangeOf(plan.outputs));
    if (context.dump) {
      run.download(plan.variableRange());
      context.dump->after(run.arena->variables());
      context.dump.reset();
      run.arena->settle();
    }
  }
  run.state.position += batch;
  run.lastBatch = batch;
  run.state.step = step + 1;
  StepMetrics result = report.read(step, reference);
  result.attentionImbalance = batches.attentionImbalance(attention);
  result.lr = learningRate(options, step);
  if (run.state.rates && std::isfinite(result.gradNorm)) // Other steps change nothing.
    run.state.rates->add(result.lr, options.hyperparameter(updateWeightPower));
  double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  result.stepMs = seconds * 1e3;
  result.tokensPerSecond = double(batch * plan.sequence) / seconds;
  result.tokens = run.state.position * plan.sequence;
  if (peak > 0)
    result.mfu = (plan.flops - plan.recomputedFlops) * (double(batch) / double(plan.batch)) / (peak * seconds);
  if (run.reportsBatch)
    result.batch = batch;
  return result;
}

/// What a run does that has no step to make.
void Trainer::evaluateOnly() {
  if (batches.evaluationSets().empty())
    return;
  StepMetrics result;
  result.step = run.state.step;
  result.evaluatedOnly = true;
  result.evaluations = evaluate(run, batches, saving);
  if (!options.logProbs.empty()) { // Of the reference beside itself there is nothing to say.
    if (run.isRoot())
      printf("wrote the log-probabilities of %s sequences to %s\n",
             grouped(uint64_t(batches.evaluationSets().front().sequences)).c_str(), options.logProbs.c_str());
    return;
  }
  report.write(result);
  for (const Evaluation &evaluation : result.evaluations) {
    char bits[64] = "";
    if (evaluation.bitsPerByte)
      snprintf(bits, sizeof(bits), ", %.4f bits per byte", *evaluation.bitsPerByte);
    if (run.isRoot() && evaluation.rewards)
      printf("%s %.4f after %ld steps, over %s pairs: accuracy %.4f, margin %.4g\n",
             evaluation.key("eval loss").c_str(), evaluation.loss, long(run.state.step),
             grouped(uint64_t(evaluation.targets)).c_str(), evaluation.rewards->accuracy, evaluation.rewards->margin);
    else if (run.isRoot())
      printf("%s %.4f after %ld steps, over %s tokens: perplexity %.4g%s\n",
             evaluation.key("eval loss").c_str(), evaluation.loss, long(run.state.step),
             grouped(uint64_t(evaluation.targets)).c_str(), std::exp(evaluation.loss), bits);
  }
}

/// The bytes of the rank that needs most, "up to" where programs differ.
static std::string mostText(const Plan &plan, MemorySpace space) {
  int64_t most = 0;
  bool differ = false;
  for (const Program &program : plan.programs) {
    int64_t bytes = program.spaces[space].bytes;
    differ |= bytes != plan.programs.front().spaces[space].bytes;
    most = std::max(most, bytes);
  }
  return most ? (differ ? "up to " : "") + grouped(uint64_t(most)) : "";
}

static int64_t bytesOfShards(const Plan &plan) {
  int64_t bytes = 0;
  for (int64_t rank = 0; rank < plan.ranks(); ++rank)
    bytes += shardBytes(plan, rank);
  return bytes;
}

void Trainer::sayHello() const {
  std::string offloaded;
  for (MemorySpace space : offloadSpaces)
    if (std::string bytes = mostText(plan, space); !bytes.empty())
      offloaded += " and " + bytes + " on " + spaceRow(space).text;
  std::string mixture = batches.mixtureText();
  std::string cores = context.cores.empty() ? "" : " on cores " + context.cores;
  printf("meshwright: %s, %ld %s (%s), %d %s each%s, arena %s bytes%s, data %s%s%s%s\n",
         plan.model.c_str(), long(plan.ranks()), plan.ranks() == 1 ? "rank" : "ranks",
         plan.meshText().c_str(), context.threads, context.threads == 1 ? "thread" : "threads",
         cores.c_str(), mostText(plan, MemorySpace::Device).c_str(), offloaded.c_str(),
         run.state.shuffle ? "shuffled" : "in file order", mixture.empty() ? "" : ", ", mixture.c_str(),
         run.checkpoint.empty() ? "" : (", resumed from " + run.checkpoint).c_str());
  if (!run.state.numbers.empty())
    printf("numbers %s: runs with this hash compute the same losses up to rounding, on every mesh\n",
           numbersHash(run.state.numbers).c_str());
  if (run.ramp)
    printf("--batch-ramp %s: batches of %ld sequences, growing until %s have been read to %ld\n", options.batchRamp.c_str(),
           long(run.batchAt(run.state.position)), grouped(uint64_t(BatchRamp::samplesOf(options.batchRamp))).c_str(),
           long(plan.batch));
  if (options.asyncSave && writesShards(options, plan))
    printf("--async-save: the ranks have %s bytes of host memory for a copy of the state, rank 0 %s of them\n",
           grouped(uint64_t(bytesOfShards(plan))).c_str(), grouped(uint64_t(shardBytes(plan, 0))).c_str());
  else if (options.asyncSave)
    printf("--async-save: rank 0 has %s bytes of host memory for a copy of the state\n",
           grouped(uint64_t(checkpointBytes(plan))).c_str());
  if (const Buddy *memory = saving.memory())
    printf("--buddy: the state after each step is in the memory of %s, up to %s bytes of each\n",
           memory->machines() == 1 ? "this machine alone" : text(memory->machines(), " machines, and of each one's next").c_str(),
           grouped(uint64_t(memory->mostBytes())).c_str());
  for (const OffloadMemory *memory : run.arena->offloadMemory().values)
    if (memory && !memory->note().empty())
      printf("%s\n", memory->note().c_str());
  if (context.device)
    printf("%s\n", context.device->describe().c_str());
  if (run.state.step >= options.steps && options.steps > 0)
    printf("nothing to train: %ld of %ld steps are done; --steps counts from the beginning of the run\n", long(run.state.step),
           long(options.steps));
  fflush(stdout);
}

int Trainer::runSteps() {
  while (run.state.step < options.steps) {
    auto begin = Clock::now();
    int64_t step = run.state.step;
    startStep(step);
    if (int stopped = saving.agree())
      return stopped;
    time.book(TimeUse::Data);
    StepMetrics result = trainStep(step, begin);
    bool counts = recovery.settle(result);
    time.book(counts && !result.skipped ? TimeUse::Steps : TimeUse::Lost);
    if (!counts) {
      comparedStep = -1; // The steps from here on are made again.
      time.loseSteps();
      continue;
    }
    if (isMeasured(step)) {
      for (const std::string &words : stragglers->note(double(context.trace->kernels) / 1e9)) {
        report.endLine();
        run.note(text("step ", step, ": ", words));
      }
      context.trace->recording = context.trace->keeping; // What follows is none of the step.
      result.slowest = stragglers->slowest();
    }
    bool last = step + 1 == options.steps;
    if (!batches.evaluationSets().empty() &&
        (last || (options.evalEvery && (step + 1) % options.evalEvery == 0)))
      result.evaluations = evaluate(run, batches, saving);
    time.book(TimeUse::Evaluation);
    saving.attempt([&] {
      report.write(result);
      report.writeSamples(step, batches, run.state.position - run.lastBatch);
    });
    report.show(result);
    time.book(TimeUse::Other);
    if ((options.checkReplicas && (step + 1) % options.checkReplicas == 0) || saving.isDue())
      checkReplicas();
    if (saving.saveDue())
      time.keepSteps();
    saving.keepInMemory();
    time.book(TimeUse::Saving);
  }
  saving.agree(); // The last step may have left an error.
  return 0;
}

int Trainer::train() {
  if (run.isRoot())
    sayHello();
  if (run.state.step >= options.steps)
    evaluateOnly();
  std::optional<StopRequests> listening;
  if (saving.stopsLater())
    listening.emplace(!run.isRoot() ? nullptr
                      : options.save.empty()
                          ? "writing the trace after this step; again to end at once"
                          : "saving after this step; again to end at once");
  time.book(run.state.step < options.steps ? TimeUse::Start : TimeUse::Evaluation);
  int stopped = runSteps();
  if (!options.save.empty() && run.state.step > run.firstStep)
    checkReplicas();
  saving.save();
  saving.saveMerged();
  saving.forgetMemory();
  time.book(TimeUse::Saving);
  report.close();
  // For good: after the barrier the other ranks may end at any time.
  context.status.activity = "finishing";
  context.status.ending = true;
  context.world->barrier();
  int64_t saved = saving.savedStep();
  if (run.isRoot() && run.state.step > run.firstStep) {
    report.endLine();
    if (std::string read = batches.readText(); !read.empty())
      printf("data: %s\n", read.c_str());
    printf("time: %s\n", time.text().c_str());
  }
  if (run.isRoot() && (saved >= 0 || stopped))
    report.endLine();
  if (run.isRoot() && saved >= 0)
    for (const std::string &folder : options.save)
      printf("saved %s/%s\n", folder.c_str(), checkpointName(saved).c_str());
  if (!stopped)
    return 0;
  if (run.isRoot())
    fprintf(stderr, "stopped by %s after %ld of %ld steps%s%s\n",
            stopped == SIGTERM ? "SIGTERM" : "SIGINT", long(run.state.step), long(options.steps),
            options.save.empty() ? "" : ": go on with --resume ",
            options.save.empty() ? "" : options.save.front().c_str());
  return 128 + stopped; // As shells have it of a process that a signal has ended.
}
