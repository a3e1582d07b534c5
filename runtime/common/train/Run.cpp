//===- Run.cpp - how a run begins, anew or from a checkpoint --------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "common/train/Run.h"

#include "common/checkpoint/AdapterFiles.h"
#include "common/checkpoint/Json.h"
#include "common/checkpoint/Weights.h"
#include "common/data/LearningRate.h"
#include "common/launch/Agreement.h"
#include "common/launch/Launch.h"
#include "common/launch/Numbers.h"
#include "common/monitor/Error.h"
#include "common/monitor/Rounds.h"
#include "meshwright/runtime/Averages.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <numeric>

using namespace meshwright;
namespace fs = std::filesystem;

void Run::note(const std::string &message) const {
  if (isRoot())
    fprintf(stderr, "note: %s\n", message.c_str());
}

void Run::startState(const TokenData &data) {
  state.seed = options.seed;
  state.shuffle = options.shuffle;
  for (const Options::Source &source : options.sources)
    state.sources.push_back({jsonText(source.name), source.weight, 0}); // as checkpoints have it
  std::map<std::string, std::string> files;
  if (isRoot() && !options.evalOnly)
    files = trainingData(options);
  state.data = files;
  if (!options.resume.empty())
    resumeState(data);
  state.data = std::move(files);
  if (isRoot() && !options.evalOnly)
    state.numbers = numbersOf(plan, options, state, state.numbers);
  startBatchRamp();
  firstStep = state.step;
  state.tokens = data.tokens();
  state.fileTokens = options.data.size() > 1 ? data.tokensByFile() : std::vector<int64_t>();
  state.batch = plan.batch;
  FlagTexts kept = keptFlags(options);
  // A run without a step to make, as for --save-merged, does not end the one that made them.
  if (auto steps = state.flags.find("--steps"); steps != state.flags.end() && state.step >= options.steps)
    kept["--steps"] = steps->second;
  state.flags = std::move(kept);
  startLossScaling();
  startRateWeights();
  startExpertCopies();
}

/// Refuses --steps with which the schedule ends at another step than in the run of the checkpoint, if steps
/// that are made would have had other rates and more are to be made: the rate would jump. Without --steps, the
/// schedule is the checkpoint's.
static void checkHorizon(const Options &options, const TrainingState &saved,
                         const std::string &checkpoint) {
  auto steps = saved.flags.find("--steps");
  if (options.reschedule || options.evalOnly || saved.step == 0 || options.steps <= saved.step ||
      steps == saved.flags.end())
    return;
  Options before = options;
  before.steps = std::strtoll(steps->second.c_str(), nullptr, 10);
  if (learningRate(before, saved.step - 1) == learningRate(options, saved.step - 1))
    return;
  fail("--steps ", options.steps, ": the schedule of the checkpoint ", checkpoint, ", ",
       options.lrSchedule, ", ends at step ", before.steps, ". With this end the rate goes on at ",
       learningRate(options, saved.step), " in step ", saved.step, ", instead of ",
       learningRate(before, saved.step),
       ": add --reschedule to change the schedule, or leave --steps out to end as planned");
}

/// Says which data is not that of the checkpoint, though the run goes on at its place there. `isNoted`: of --data
/// it has been said.
void Run::noteOtherData(const TrainingState &saved, bool isNoted) const {
  std::map<std::string, std::string> all = saved.data;
  if (all.empty()) // It is of an earlier version.
    return;
  all.insert(state.data.begin(), state.data.end());
  auto wordsOf = [](const std::map<std::string, std::string> &data, const std::string &flag) {
    auto found = data.find(flag);
    return found == data.end() ? "not given" : found->second;
  };
  for (const auto &[flag, ignored] : all)
    if (std::string is = wordsOf(state.data, flag), was = wordsOf(saved.data, flag);
        is != was && !(isNoted && flag == "--data"))
      note(text(flag, " is ", is, ", but was ", was, " when the checkpoint ", checkpoint, " was saved"));
}

/// Refuses to go on between the two sequences of a pair, as a run with another loss may have ended: from there on
/// each pair would be of two others.
void Run::checkGroups(const TrainingState &saved) const {
  int64_t size = plan.sequenceGroupSize();
  auto check = [&](int64_t sequences, const std::string &what) {
    if (sequences % size)
      fail("--resume: the run of the checkpoint ", checkpoint, " had read ", sequences, " sequences", what,
           ", which are no whole pairs, as this executable's --loss dpo reads: begin a run from its weights with ",
           plan.adapterConfig ? "--adapter " : "--init ", checkpoint);
  };
  check(saved.position, "");
  check(saved.mixed, " before its mixture of --data began");
  for (const TrainingState::Source &source : saved.sources)
    check(source.taken, text(" of --data ", source.name, " before its mixture began"));
}

void Run::resumeState(const TokenData &data) {
  checkpoint = findCheckpoint(options.resume);
  TrainingState saved = readState(checkpoint);
  checkSameModel(plan, checkpoint);
  if (options.given("--seed") && options.seed != saved.seed)
    fail("--seed ", options.seed, ": the checkpoint ", checkpoint, " was trained with --seed ",
         saved.seed, ": drop --seed, it is taken from the checkpoint");
  if (options.given("--shuffle") && !saved.shuffle)
    fail("--shuffle: the checkpoint ", checkpoint,
         " was trained without it: drop --shuffle to keep the order of the data");
  if (options.noShuffle && saved.shuffle)
    fail("--no-shuffle: the checkpoint ", checkpoint,
         " was trained on shuffled data: drop --no-shuffle to keep the order of the data");
  checkHorizon(options, saved, checkpoint);
  // What is only evaluated on goes on with nothing.
  if (options.evalOnly) {
    state = saved;
    state.sources.resize(1);
    return;
  }
  checkGroups(saved);
  bool isNoted = true;
  if (saved.tokens != data.tokens())
    note(text(data.name(), options.data.size() == 1 ? " has " : " have ",
              grouped(uint64_t(data.tokens())), " tokens, the data of the checkpoint ", checkpoint,
              " had ", grouped(uint64_t(saved.tokens))));
  else if (std::vector<int64_t> counts = data.tokensByFile();
           counts != (saved.fileTokens.empty() ? std::vector{saved.tokens} : saved.fileTokens))
    note(text(data.name(),
              ": the tokens are in other files, or in another order, than when the checkpoint ",
              checkpoint, " was saved, so the sequences differ: training continues after ",
              grouped(uint64_t(saved.position)), " of them"));
  else
    isNoted = false;
  if (isRoot())
    noteOtherData(saved, isNoted);
  if (saved.batch != plan.batch)
    note(text("the batch of the checkpoint ", checkpoint, " was ", saved.batch,
              " sequences, this executable's is ", plan.batch, ": training continues after ",
              grouped(uint64_t(saved.position)), " sequences of the data, at step ", saved.step));
  if (std::string changes = changedFlags(options, saved.flags);
      !changes.empty() && saved.step < options.steps)
    note(changes);
  auto frozenAt = saved.flags.find("--freeze-variance");
  if (options.freezeVariance > 0 && saved.step > options.freezeVariance &&
      (frozenAt == saved.flags.end() || frozenAt->second != std::to_string(options.freezeVariance)))
    fail("--freeze-variance ", options.freezeVariance, ": the checkpoint ", checkpoint, " has the variance after ", saved.step,
         " steps: give ", saved.step, " or more");
  if (std::string changes = changedProgram(plan, saved.numbers); !changes.empty())
    note(text("this executable computes other numbers than the one that wrote the checkpoint ", checkpoint, ": ",
              changes));
  if (std::string unsaid = unsaidFlags(options, plan, saved.flags); !unsaid.empty())
    note(text("the checkpoint ", checkpoint,
              " does not say what these flags of its run were, so defaults are used: ", unsaid));
  std::vector<TrainingState::Source> given = std::move(state.sources);
  state = saved;
  resumeMixture(std::move(given));
}

/// Whether the shares of two mixtures are the same.
static bool areSame(const std::vector<TrainingState::Source> &a,
                    const std::vector<TrainingState::Source> &b) {
  auto sum = [](double all, const TrainingState::Source &source) { return all + source.weight; };
  double ofA = std::accumulate(a.begin(), a.end(), 0.0, sum);
  double ofB = std::accumulate(b.begin(), b.end(), 0.0, sum);
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [&](const auto &x, const auto &y) {
    return (a.size() == 1 || x.name == y.name) && std::abs(x.weight / ofA - y.weight / ofB) < 1e-12;
  });
}

/// Goes on with the mixture of the checkpoint, or begins the one that is given: each source goes on where it
/// was, by its name, or by its number where as many others have taken the place of all.
void Run::resumeMixture(std::vector<TrainingState::Source> given) {
  if (state.sources.empty())
    state.sources = {{given.front().name, 1, 0}};
  const std::vector<TrainingState::Source> &was = state.sources;
  if (areSame(was, given))
    return;
  std::vector<DataOrder::Source> sources;
  for (const TrainingState::Source &source : was)
    sources.push_back({0, plan.sequenceGroupSize(), source.weight, source.taken});
  std::vector<int64_t> taken =
      DataOrder(sources, state.mixed, false, 0, plan.sequenceGroupSize()).taken(state.position);
  auto find = [&](const std::string &name) {
    return std::find_if(was.begin(), was.end(), [&](const auto &source) { return source.name == name; });
  };
  bool anyKnown = std::any_of(given.begin(), given.end(),
                              [&](const auto &source) { return find(source.name) != was.end(); });
  std::string words;
  for (size_t i = 0; i < given.size(); ++i) {
    auto before = find(given[i].name);
    if (!anyKnown && given.size() == was.size())
      before = was.begin() + int64_t(i);
    given[i].taken = before == was.end() ? 0 : taken[size_t(before - was.begin())];
    words += text(i ? ", " : "", given[i].name, " after ", grouped(uint64_t(given[i].taken)), " sequences");
  }
  note(text("--data: the sources or their weights differ from those of the checkpoint ", checkpoint,
            ": the new mixture starts here, with ", words));
  state.sources = std::move(given);
  state.mixed = state.position;
}

/// Refuses a given --batch-ramp that changes nothing. That of the checkpoint may be given again, as restarts do.
void Run::checkGivenRamp() const {
  auto saved = state.flags.find("--batch-ramp");
  const std::string &given = options.batchRamp, was = saved == state.flags.end() ? "" : saved->second;
  auto isOver = [&](const std::string &ramp) {
    return ramp.empty() || ramp == noBatchRamp || state.position >= BatchRamp::samplesOf(ramp);
  };
  if (!options.given("--batch-ramp") || given == was || !isOver(given))
    return;
  if (given != noBatchRamp)
    fail("--batch-ramp ", given, ": the run of the checkpoint ", checkpoint, " has read ", state.position,
         " sequences, so this ramp is over: leave it out",
         isOver(was) ? "" : text(", to continue with ", was, ", or give --batch-ramp ", noBatchRamp, " to continue with the whole batch"));
  if (isOver(was))
    fail("--batch-ramp ", given, ": the batch of the run of the checkpoint ", checkpoint, " is whole already: leave it out");
}

/// The ramp's text may be the checkpoint's, which this executable or its sizes do not go with.
void Run::startBatchRamp() {
  const std::string &text = options.batchRamp;
  if (!options.evalOnly)
    checkGivenRamp();
  if (options.evalOnly || text.empty() || text == noBatchRamp)
    return;
  reportsBatch = plan.inputNames.count(microbatchesInput);
  if (state.position >= BatchRamp::samplesOf(text))
    return;
  if (!reportsBatch)
    fail("--batch-ramp ", text, ": the run of the checkpoint ", checkpoint, " has read ", state.position,
         " sequences, so its batch is to grow further, but each step of this executable has the whole batch of ", plan.batch,
         ": compile with --batch-ramp, or give --batch-ramp ", noBatchRamp, " to continue with the whole batch");
  ramp.emplace(text, plan.batch, plan.microbatches);
}

void Run::writeInputs(int64_t batch) const {
  if (int32_t *microbatches = input<int32_t>(microbatchesInput))
    *microbatches = int32_t(batch * plan.microbatches / plan.batch);
  if (float *weight = input<float>(batchWeightInput))
    *weight = float(double(plan.batch) / double(batch));
  if (int32_t *placement = copies ? input<int32_t>(expertPlacementInput) : nullptr)
    std::copy(copies->table().begin(), copies->table().end(), placement);
}

void Run::startLossScaling() {
  if (plan.inputs.count("loss_scale") && state.lossScale && options.given("--initial-loss-scale"))
    fail("--initial-loss-scale: the checkpoint ", checkpoint,
         " says how the loss is scaled: leave it out");
  takeLossScale(state.lossScale);
}

/// Goes on as the checkpoint says, which need not be of the same precision.
void Run::takeLossScale(std::optional<LossScale> saved) {
  if (!plan.inputs.count("loss_scale")) {
    // The steps that overflowed in fp16 are no updates in another precision either.
    if (saved)
      state.skipped += saved->skipped;
    state.lossScale.reset();
    return;
  }
  LossScale start;
  start.scale = options.initialLossScale;
  scaler = LossScaler(saved.value_or(start), options.lossScaleWindow, options.hysteresis, options.minLossScale);
  state.lossScale = scaler->saved();
}

void Run::startRateWeights() {
  if (!plan.inputNames.count(updateWeight))
    return state.rates.reset();
  if (!state.rates && state.step > 0)
    fail("--resume: ", checkpoint, "/state.json has no \"rates\", the weights of the steps in the averages that ",
         plan.optimizer, " keeps: the file was changed; name another checkpoint");
  if (!state.rates)
    state.rates.emplace();
}

/// By the loads that are given, or else those of the checkpoint.
void Run::startExpertCopies() {
  if (!ExpertCopies::arePossible(plan))
    return state.expertLoads.clear();
  copies.emplace(plan);
  if (!options.expertLoads.empty())
    placeExperts(readExpertLoads(options.expertLoads), "--expert-loads " + options.expertLoads);
  else
    placeExperts(state.expertLoads, "--resume " + checkpoint);
}

void Run::placeExperts(ExpertLoads loads, const std::string &source) {
  copies->place(loads, source);
  state.expertLoads = std::move(loads);
}

void Run::loadWeights() {
  context.ssd = options.ssd;
  arena = makeArena(context);
  context.offloaded = arena->offloadMemory();
  if (!options.tune.empty())
    context.device->tune(*arena, options.tune, *context.world);
  fillWeights(checkpoint);
}

void Run::goBackTo(const std::string &from) {
  ActivityScope activity(context.status, "going back to a checkpoint");
  TrainingState saved = readState(from);
  checkSameModel(plan, from);
  state.step = saved.step;
  state.skipped = saved.skipped;
  if (state.rates)
    state.rates = saved.rates.value_or(RateWeights());
  takeLossScale(saved.lossScale);
  if (copies)
    placeExperts(saved.expertLoads, from);
  fillWeights(from);
  context.world->barrier(); // No rank replaces what another still reads.
}

/// Fills the variables from the checkpoint `from`, or as a new run begins if it is empty.
void Run::fillWeights(const std::string &from) {
  TraceScope span(context.trace.get(), "load weights", "io");
  // A device has zeros where nothing is filled in. Part by part, so that the host never holds all.
  auto handOn = [this](const Variable &variable, const char *data, int64_t bytes) {
    if (variable.space != MemorySpace::Device)
      return;
    int64_t begin = data - arena->data();
    upload({begin, begin + bytes});
    arena->forget(begin, begin + bytes);
  };
  WeightTarget target{plan, context.rank(), arena->variables(), context.threads, handOn};
  target.sharing = sameOnMachine(*context.world, "");
  Rounds rounds(*context.world, weightBytes(target));
  target.rounds = &rounds;
  target.names = &context.fileNames;
  std::string extra, begun;
  target.begun = &begun;
  if (from.empty() && !options.adapter.empty())
    checkAdapterConfig(plan, fs::path(options.adapter).parent_path(), "--adapter");
  // Checkpoints of adapters do not hold the frozen weights, which are as the run began with them. What is trained
  // may begin as they say, so they come first.
  if (plan.adapterConfig && options.init.empty())
    initializeWeights(target, uint64_t(state.seed), WeightKind::Parameters);
  else if (!options.init.empty() && (from.empty() || plan.adapterConfig))
    extra = readWeights(target, WeightKind::Parameters, options.init, "--init");
  if (!from.empty()) {
    CheckpointIds ids = readIds(from);
    if (ids.model.empty())
      note(text("the checkpoint ", from,
                " is of a version without checksums: damage to it "
                "would not be found"));
    readWeights(target, trainedWeights(plan), tensorsIn(from, plan.adapterConfig ? adapterFile : modelFile), "--resume",
                ids.model);
    readWeights(target, WeightKind::OptimizerStates, tensorsIn(from, optimizerFile), "--resume", ids.optimizer);
  } else if (!options.adapter.empty()) {
    readWeights(target, WeightKind::Adapters, options.adapter, "--adapter");
  } else if (plan.adapterConfig || options.init.empty()) {
    initializeWeights(target, uint64_t(options.seed), trainedWeights(plan));
  }
  if (from.empty())
    initializeWeights(target, uint64_t(options.seed), WeightKind::OptimizerStates);
  rounds.finish();
  if (!begun.empty())
    note(text("the checkpoint ", from, " has no state ", begun, ": gradients are compressed from this step on, with nothing left out of earlier ones"));
  if (!extra.empty())
    note(extra);
  if (!options.init.empty() && from.empty())
    if (std::string other = otherConfig(plan, options.init); !other.empty())
      note(other);
  arena->settle();
}

void Run::forgetVariables() const {
  arena->forget(plan.variableRange().begin, plan.variableRange().end);
  arena->settle();
}
