//===- Batches.cpp - what a run reads -------------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "common/train/Batches.h"

#include "common/launch/Launch.h"
#include "common/monitor/Error.h"
#include "common/monitor/Rounds.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <numeric>
#include <set>
#include <utility>

using namespace meshwright;

/// What an encoder reads besides, as --source and --source-documents or those of an evaluation say.
static std::optional<TokenData::Sources> sourcesOf(const Plan &plan, const std::string &prefix,
                                                   const Options::Files &source,
                                                   const Options::Files &documents) {
  if (!plan.startToken)
    return std::nullopt;
  return TokenData::Sources{{prefix + "source", source},
                            {prefix + "source-documents", documents},
                            *plan.sourceSequence,
                            *plan.startToken};
}

/// What the flags of the data begin with: of a run that only evaluates, it is what is evaluated.
static std::string prefixOf(const Options &options) { return options.evalOnly ? "--eval-" : "--"; }

Batches::Batches(Run &run)
    : run(run), plan(run.plan), options(run.options),
      data({prefixOf(options) + "data", options.data},
           {prefixOf(options) + "loss-mask", options.lossMask},
           {prefixOf(options) + "documents", options.documents,
            plan.inputNames.count("positions") && options.documents.empty()},
           options.tokens, plan.sequence, plan.vocabulary,
           sourcesOf(plan, prefixOf(options), options.source, options.sourceDocuments), plan.dpoBeta.has_value()) {}

/// The log-probabilities of a set of --eval-data, if they are given.
static std::optional<LogProbs> referenceOf(const Options::Files &files, const TokenData &data) {
  const char *flag = "--eval-reference-log-probs";
  if (files.empty())
    return std::nullopt;
  if (files.size() > 1)
    fail(flag, " names ", files.size(), " files: give one with a number for each sequence of ", data.name());
  return LogProbs(files.front(), flag, data.sequences(), data.name());
}

/// The flags may be given and yet say nothing of this set.
void Batches::requirePairFiles(const Options::EvaluationSet &given) const {
  if (!plan.dpoBeta)
    return;
  const char *what = given.lossMask.empty() ? "--eval-loss-mask"
                     : given.reference.empty() && options.logProbs.empty() ? "--eval-reference-log-probs" : nullptr;
  if (what)
    fail(what, " names no file for ", given.name.empty() ? given.data.front() : given.name,
         ": each set of --eval-data needs its own with --loss dpo: write ", what, " ",
         given.name.empty() ? "" : given.name + "=", "FILE");
}

Batches::EvaluationSet Batches::opened(const Options::EvaluationSet &given) const {
  EvaluationSet set;
  set.name = given.name;
  set.data = std::make_unique<TokenData>(
      TokenData::Files{"--eval-data", given.data},
      TokenData::Files{"--eval-loss-mask", given.lossMask},
      TokenData::Files{"--eval-documents", given.documents,
                       plan.inputNames.count("positions") && given.documents.empty()},
      options.tokens, plan.sequence, plan.vocabulary,
      sourcesOf(plan, "--eval-", given.source, given.sourceDocuments), plan.dpoBeta.has_value());
  set.sequences = set.data->sequences();
  requirePairFiles(given);
  set.reference = referenceOf(given.reference, *set.data);
  // Not multiplied, which could overflow.
  if (options.evalBatches && options.evalBatches <= set.sequences / plan.batch)
    set.sequences = options.evalBatches * plan.batch;
  if (set.sequences % plan.batch == 0 || plan.inputNames.count("targets"))
    return set;
  int64_t whole = set.sequences / plan.batch;
  fail(set.data->name(), ": its ", set.sequences, " sequences are no multiple of the batch of ",
       plan.batch,
       ", and this program has no input \"targets\" to leave out the rest of the last batch: ",
       whole ? text("give --eval-batches ", whole) : "name a longer file");
}

void Batches::check() {
  // An evaluation fills up its last batch, or its only one, with sequences that do not count.
  int64_t sequences = data.sequences(options.evalOnly ? 1 : plan.batch);
  if (!options.referenceLogProbs.empty())
    dataReference.emplace(options.referenceLogProbs, "--reference-log-probs", data.sequences(), data.name());
  for (const Options::EvaluationSet &given : options.evaluationSets)
    evaluation.push_back(opened(given));
  checkTokens();
  if (!options.evalOnly)
    checkTargets(data, sequences);
  for (const EvaluationSet &set : evaluation)
    checkTargets(*set.data, set.sequences);
}

/// Finds tokens that the model does not know, and masks that are none, before it trains on the
/// others. The ranks of a machine share its files out.
void Batches::checkTokens() {
  TraceScope span(run.context.trace.get(), "check tokens", "io");
  std::vector<int> here = sameOnMachine(*run.context.world, "");
  int64_t part = std::find(here.begin(), here.end(), run.context.rank()) - here.begin();
  std::vector<const TokenData *> sources;
  if (!options.evalOnly) // Else it is the first set.
    sources.push_back(&data);
  for (const EvaluationSet &set : evaluation)
    sources.push_back(set.data.get());
  for (const TokenData *source : sources) {
    Rounds rounds(*run.context.world, source->bytes() / int64_t(here.size()));
    source->check(part, int64_t(here.size()), run.context.threads,
                  [&](int64_t bytes) { rounds.done(bytes); });
    rounds.finish();
    if (source->hasSources() || source->hasPreferencePairs())
      noteLonger(*source, part, int64_t(here.size()));
    if (source->hasPreferencePairs())
      checkPairs(*source, part, int64_t(here.size()));
    bool mayMask = (plan.inputNames.count("target_weight") || plan.dpoBeta) && !plan.maskedShare && !source->hasSources();
    for (const std::string &word : {source->unused(), run.isRoot() ? source->doubt() : "",
                                    mayMask ? source->unusedMask() : ""})
      if (!word.empty())
        run.note(word);
  }
  noteTokenizers(sources);
}

/// Says it once if files are of different tokenizers: the same number is another word then.
void Batches::noteTokenizers(const std::vector<const TokenData *> &sources) const {
  std::vector<std::pair<std::string, uint64_t>> known;
  for (const TokenData *source : sources)
    for (const auto &file : source->tokenizers())
      known.push_back(file);
  for (const auto &[file, sum] : known)
    if (sum != known.front().second)
      return run.note(text(file, " was made with another tokenizer than ", known.front().first,
                           ": its tokens stand for other text"));
}

/// Says how many sources and targets are cut off. The ranks of a machine share them out, and the first
/// machine's counts are those of all.
void Batches::noteLonger(const TokenData &source, int64_t part, int64_t parts) {
  bool counts = sameOnMachine(*run.context.world, "").front() == 0; // This machine has rank 0.
  std::vector<float> here = {counts && source.hasSources() ? float(source.longerSources(part, parts)) : 0.0f,
                             counts ? float(source.longerTargets(part, parts)) : 0.0f},
                     sums(2);
  run.context.world->allReduce(ElementType::F32, Reduction::Sum, here.data(), sums.data(), 2);
  auto say = [&](float count, const char *what, int64_t most, const char *flag) {
    if (count > 0)
      run.note(text(source.name(), ": ", int64_t(count), " ", what, count > 1 ? "s have" : " has",
                    " more than ", most, " tokens (", flag, "), of which the rest is not read"));
  };
  say(sums[0], "source", plan.sourceSequence.value_or(0), "--source-seq");
  if (source.hasPreferencePairs())
    say(sums[1], "document", plan.sequence + 1, "those of --seq and the last target");
  else
    say(sums[1], "target", plan.sequence, "--seq");
}

/// Refuses pairs that are none, and those of which neither completion is read, which would add to losses and
/// accuracies without a word. The ranks of a machine share them out, and the first machine's counts are those of all.
void Batches::checkPairs(const TokenData &source, int64_t part, int64_t parts) {
  int64_t pairs = source.sequences() / 2;
  Rounds rounds(*run.context.world, pairs / parts * 2 * (plan.sequence + 1) * int64_t(sizeof(int32_t)));
  TokenData::Uncounted here = source.checkPreferencePairs(part, parts, [&](int64_t bytes) { rounds.done(bytes); });
  rounds.finish();
  bool counts = sameOnMachine(*run.context.world, "").front() == 0; // This machine has rank 0.
  constexpr int32_t largest = std::numeric_limits<int32_t>::max();
  std::vector<int32_t> numbers = {int32_t(counts ? here.ofBoth : 0), int32_t(counts ? here.ofOne : 0)}, sums(2);
  // The first pair has the largest of these.
  std::vector<int32_t> places = {here.ofBoth ? int32_t(largest - here.firstOfBoth) : 0,
                                 here.ofOne ? int32_t(largest - here.firstOfOne) : 0},
                       firsts(2);
  run.context.world->allReduce(ElementType::I32, Reduction::Sum, numbers.data(), sums.data(), 2);
  run.context.world->allReduce(ElementType::I32, Reduction::Max, places.data(), firsts.data(), 2);
  std::string where = text("within --seq ", plan.sequence, " or counted by the mask");
  std::string remedy = "compile with a longer --seq, or shorten the prompts, behind which completions are cut off first";
  auto first = [&](size_t i) { return source.pairText(largest - firsts[i]); };
  if (sums[0] == pairs)
    fail(source.name(), ": no completion of its ", pairs, pairs == 1 ? " pair" : " pairs", " is ", where, ": ", remedy,
         "; or check that ", source.leavingOut(), " is of this file");
  if (sums[0])
    fail(source.name(), ": of ", sums[0], " of ", pairs, " pairs, neither completion is ", where, ", so nothing could be preferred: ",
         first(0), sums[0] > 1 ? " is the first. " : ". ", "Leave them out, ", remedy);
  if (sums[1])
    run.note(text(source.name(), ": of ", sums[1], " of ", pairs, " pairs, one of the two completions is not ", where,
                  ", so its log-probability is 0 (", first(1), sums[1] > 1 ? " is the first): " : "): ", remedy));
}

/// Refuses data of which no target counts: the loss would be 0 for ever. The ranks of a machine
/// look through a part each, which ends at the first target that counts.
void Batches::checkTargets(const TokenData &source, int64_t sequences) {
  if (!source.leavesOut() || source.hasPreferencePairs()) // Each pair has one: see checkPairs.
    return;
  std::vector<int> here = sameOnMachine(*run.context.world, "");
  auto part = int64_t(std::find(here.begin(), here.end(), run.context.rank()) - here.begin());
  auto parts = int64_t(here.size());
  int64_t end = sequences * (part + 1) / parts;
  DataOrder inOrder(source.sequences(), false, 0);
  Rounds rounds(*run.context.world, sequences / parts * plan.sequence);
  int32_t found = 0;
  for (int64_t i = sequences * part / parts; i < end && !found; ++i) {
    found = source.countTargets(inOrder, i, 1) > 0;
    rounds.done(plan.sequence);
  }
  rounds.finish();
  int32_t anywhere = 0;
  run.context.world->allReduce(ElementType::I32, Reduction::Max, &found, &anywhere, 1);
  if (anywhere)
    return;
  fail(source.leavingOut(), ": no target of the ", sequences, " sequences of ", source.name(),
       " counts, so each loss would be 0: ",
       source.hasMasks() ? "check that the mask is of this file; its byte is 1 for each token that "
                           "counts as a target"
                         : "check that the documents are of this file; the first token of a "
                           "document is no target, "
                           "so some must have two");
}

void Batches::start() {
  const TrainingState &state = run.state;
  std::vector<DataOrder::Source> sources = data.sources(options.sources);
  for (size_t i = 0; i < sources.size(); ++i) {
    sources[i].weight = state.sources[i].weight;
    sources[i].taken = state.sources[i].taken;
  }
  order = std::make_unique<DataOrder>(sources, state.mixed, state.shuffle, uint64_t(state.seed), plan.sequenceGroupSize());
  noteRepeats();
  if (plan.maskedShare) {
    trainingMask.emplace(*plan.maskedShare, *plan.maskToken, plan.vocabulary);
    evaluationMask.emplace(*plan.maskedShare, *plan.maskToken, plan.vocabulary, true);
  }
  if (AttentionShares::areCounted(plan))
    shares.emplace(plan, run.context.rank());
}

/// "70.0%" of `share`.
static std::string percent(double share) {
  char digits[32];
  snprintf(digits, sizeof(digits), "%.1f%%", 100 * share);
  return digits;
}

std::string Batches::mixtureText() const {
  const std::vector<TrainingState::Source> &sources = run.state.sources;
  double sum = 0;
  for (const TrainingState::Source &source : sources)
    sum += source.weight;
  std::string words;
  for (size_t i = 0; sources.size() > 1 && i < sources.size(); ++i)
    words += text(i == 0 ? "" : i + 1 < sources.size() ? ", " : " and ", percent(sources[i].weight / sum),
                  " ", sources[i].name);
  return words;
}

std::string Batches::readText() const {
  std::vector<int64_t> taken = order->taken(run.state.position);
  std::vector<DataOrder::Source> sources = data.sources(options.sources);
  int64_t sum = std::accumulate(taken.begin(), taken.end(), int64_t(0));
  std::string words;
  for (size_t i = 0; sum > 0 && sources.size() > 1 && i < sources.size(); ++i) {
    char epochs[32];
    snprintf(epochs, sizeof(epochs), "%.2f", double(taken[i]) / double(sources[i].sequences));
    words += text(i == 0 ? "" : ", ", options.sources[i].name, " ", percent(double(taken[i]) / double(sum)),
                  " (", epochs, " epochs)");
  }
  return words;
}

/// A source that is small for its weight repeats itself within a batch, which may not be meant; nor may a
/// file of two sources.
void Batches::noteRepeats() {
  std::vector<DataOrder::Source> sources = data.sources(options.sources);
  double sum = 0;
  for (const DataOrder::Source &source : sources)
    sum += source.weight;
  for (size_t i = 0; sources.size() > 1 && i < sources.size(); ++i)
    if (double share = sources[i].weight / sum * double(plan.batch); share > double(sources[i].sequences))
      run.note(text("--data ", options.sources[i].name, " has ", sources[i].sequences, " sequences of ",
                    plan.sequence, ", of which a batch takes ", int64_t(std::ceil(share)),
                    ": they repeat within batches"));
  std::set<std::string> seen;
  size_t file = 0;
  for (const Options::Source &source : options.sources)
    for (size_t end = file + size_t(source.files); file < end; ++file)
      if (std::error_code ignored;
          !seen.insert(std::filesystem::weakly_canonical(options.data[file], ignored)).second)
        run.note(text("--data ", source.name, ": ", options.data[file],
                      " is there twice, so its sequences are read more often than others"));
}

std::vector<std::pair<int64_t, int64_t>> Batches::samples(int64_t position) const {
  std::vector<std::pair<int64_t, int64_t>> places;
  for (int64_t i = 0, batch = run.batchAt(position); i < batch; ++i)
    places.push_back(data.placeOf(order->at(position + i)));
  return places;
}

/// What a step reads after those that the host has: the disk is at it while the step is computed.
void Batches::readAhead(int64_t position) const {
  bool all = data.leavesOut(); // Every rank counts the targets of the whole batch.
  std::vector<int64_t> coordinates = plan.coordinates(run.context.rank());
  int64_t batch = run.batchAt(position), count = all ? batch : batch / plan.axesSize(plan.dataAxes);
  int64_t first = all ? 0 : plan.axesIndex(plan.dataAxes, coordinates) * count;
  for (int64_t i = 0; i < count; ++i)
    data.readAhead(order->at(position + first + i));
}

void Batches::fill(int64_t step) {
  if (filled == run.state.position)
    return;
  fillStep(run.state.position, step);
}

// What has been uploaded is the device's, so the host's copy is free.
void Batches::fillAhead(int64_t step) {
  filled = run.state.position + run.batchAt(run.state.position);
  fillStep(filled, step);
}

void Batches::fillStep(int64_t position, int64_t step) {
  int64_t batch = run.batchAt(position);
  fill(data, *order, position, batch, step, saidNoTargets, dataReference);
  readAhead(position + batch);
}

void Batches::fillEvaluation(EvaluationSet &set, int64_t first) {
  filled = -1; // Its tokens take their place.
  fill(*set.data, DataOrder(set.data->sequences(), false, 0), first, plan.batch, std::nullopt, set.saidNoTargets, set.reference,
       set.sequences);
}

std::optional<double> Batches::attentionImbalance(double flops) const {
  if (!shares)
    return std::nullopt;
  return shares->imbalance(*run.context.world, flops);
}

/// Says that a batch has no targets: so it may be meant, or the mask, or the documents, are another file's.
void Batches::noteNoTargets(const TokenData &source, std::optional<int64_t> step) const {
  std::string from = source.leavingOut();
  run.note(step
               ? text(from, ": no target of step ", *step,
                      " counts, so its loss is 0; other such steps are not mentioned")
               : text(from,
                      ": no target of a batch counts, so it adds nothing to the mean; other such "
                      "batches are not mentioned"));
}

/// Which of the `batch` sequences of a step is at `place` of the ranks' inputs, one rank after the other. A rank's
/// sequences are contiguous, and so are its microbatches; of its blocks of compressed gradients, which are contiguous parts of what
/// it has, each microbatch has a part of each.
int64_t Batches::sequenceAt(int64_t place, int64_t batch) const {
  int64_t blocks = plan.gradientBlocks.value_or(1);
  if (blocks == 1)
    return place;
  // Of one microbatch and block, and of all microbatches of a block.
  int64_t part = plan.batch / (plan.microbatches * blocks), block = batch / blocks;
  int64_t ranks = plan.axesSize(plan.dataAxes), blocksOfRank = blocks / ranks;
  int64_t rank = place / (batch / ranks), within = place % (batch / ranks);
  int64_t microbatch = within / (part * blocksOfRank), row = within % (part * blocksOfRank);
  return (rank * blocksOfRank + row / part) * block + microbatch * part + row % part;
}

/// What the program and the metrics of pairs read: zeros without a reference, and for sequences from `end` on. In a step sequences are
/// where `sequenceAt` says.
void Batches::fillReference(const std::optional<LogProbs> &reference, const DataOrder &order, int64_t position,
                            int64_t batch, bool isStep, int64_t end) {
  if (!plan.dpoBeta)
    return;
  referenceOfBatch.assign(size_t(batch), 0);
  for (int64_t i = 0; reference && i < batch && position + i < end; ++i)
    referenceOfBatch[size_t(i)] = reference->at(order.at(position + (isStep ? sequenceAt(i, batch) : i)));
  int64_t count = batch / plan.axesSize(plan.dataAxes);
  int64_t first = plan.axesIndex(plan.dataAxes, plan.coordinates(run.context.rank())) * count;
  if (float *input = run.input<float>("reference_log_probs"))
    std::copy_n(referenceOfBatch.begin() + first, count, input);
}

/// Writes this rank's part of the `batch` sequences that start at `position` of `order`: data
/// rank d of D has the d-th contiguous batch / D, its microbatches one after the
/// other, which are the first of the program's; see `sequenceAt`. Sequences from `end` on have no targets, so that they count for nothing.
void Batches::fill(const TokenData &source, const DataOrder &order, int64_t position, int64_t batch,
                   std::optional<int64_t> step, bool &saidNoTargets, const std::optional<LogProbs> &reference,
                   int64_t end) {
  std::vector<int64_t> coordinates = plan.coordinates(run.context.rank());
  int64_t count = batch / plan.axesSize(plan.dataAxes);
  int64_t first = plan.axesIndex(plan.dataAxes, coordinates) * count;
  int32_t *tokens = run.input<int32_t>("tokens"), *targets = run.input<int32_t>("targets");
  int32_t *ids = run.input<int32_t>("sequence_ids"), *positions = run.input<int32_t>("positions");
  int32_t *sources = run.input<int32_t>("source"), *lengths = run.input<int32_t>("source_lengths");
  std::vector<int32_t> unread(size_t(plan.sourceSequence.value_or(0)));
  std::vector<int32_t> unused(size_t(3 * plan.sequence)); // Programs need not take all three.
  int32_t *otherTargets = unused.data() + plan.sequence, *others = otherTargets + plan.sequence;
  const std::optional<TokenMask> &mask = step ? trainingMask : evaluationMask;
  std::array<uint32_t, 2> key = {uint32_t(run.state.seed), uint32_t(step.value_or(0))};
  // An evaluation's choices do not depend on the batch, a step's not on where it is in the data.
  int64_t base = step ? 0 : position;
  flops = 0;
  for (int64_t i = 0; i < count; ++i) {
    int32_t *inputs = tokens ? tokens + i * plan.sequence : unused.data();
    int32_t *wanted = targets ? targets + i * plan.sequence : otherTargets;
    int32_t *places = positions ? positions + i * plan.sequence : others;
    int64_t number = step ? sequenceAt(first + i, batch) : first + i;
    if (position + number < end) {
      source.read(order.at(position + number), inputs, wanted, places);
      if (sources || lengths) {
        // A pipeline stage may need the lengths alone.
        int32_t length = source.readSource(order.at(position + number),
                                           sources ? sources + i * *plan.sourceSequence : unread.data());
        if (lengths)
          lengths[i] = length;
      }
      if (mask)
        mask->apply(key, base + number, plan.sequence, inputs, wanted);
    } else {
      std::fill_n(inputs, plan.sequence, 0);
      std::fill_n(wanted, plan.sequence, noTarget);
      std::fill_n(places, plan.sequence, 0);
      if (sources)
        std::fill_n(sources + i * *plan.sourceSequence, *plan.sourceSequence, 0);
      if (lengths)
        lengths[i] = 1;
    }
    if (shares && step)
      flops += shares->flops(places);
    if (ids)
      ids[i] = int32_t(number);
  }
  fillReference(reference, order, position, batch, step.has_value(), end);
  // The program divides by all targets itself unless it asks for their weight.
  counted = batch * plan.sequence;
  if (!plan.inputNames.count("target_weight"))
    return;
  int64_t sequences = std::min(batch, end - position);
  if (mask)
    counted = mask->count(key, base, sequences, plan.sequence);
  else
    counted = source.countTargets(order, position, sequences);
  if (source.leavesOut() && counted == 0 && !std::exchange(saidNoTargets, true))
    noteNoTargets(source, step);
  if (float *weight = run.input<float>("target_weight"))
    *weight = counted ? float(1.0 / double(counted)) : 0.0f;
}
