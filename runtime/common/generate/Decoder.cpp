//===- Decoder.cpp - the program that generates tokens --------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "common/generate/Decoder.h"

#include "common/checkpoint/AdapterFiles.h"
#include "common/checkpoint/Checkpoint.h"
#include "common/checkpoint/Weights.h"
#include "common/launch/Launch.h"
#include "common/monitor/Error.h"
#include "common/plan/PlanHash.h"
#include "cpu/ThreadCommunicator.h"
#include "meshwright/runtime/DecoderVariables.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>

using namespace meshwright;

extern "C" {
/// Of the decoder of an encoder-decoder model: reads a source, and keeps the keys and values that the
/// decoder's layers make of it in the variables `source.N`.
void meshwright_decoder_encode(MwContext *context, char *arena) MW_WEAK;
}

static Plan readDecoderPlan() {
  if (!meshwright_decoder_plan) {
    std::string why = "it was compiled by a version without them";
    if (meshwright_no_decoder)
      why.assign(meshwright_no_decoder, size_t(meshwright_no_decoder_size));
    fail("--generate: this executable has no decoder: ", why);
  }
  std::string_view text(meshwright_decoder_plan, size_t(meshwright_decoder_plan_size));
  checkPlanHash(text);
  return Plan::parse(text, 0);
}

/// The plan of training: a decoder's configuration says how it generates, this one what model it is.
static Plan readTrainingPlan() {
  std::string_view text(meshwright_plan, size_t(meshwright_plan_size));
  checkPlanHash(text);
  return Plan::parse(text, 0);
}

static bool isCache(const Variable &variable) {
  return variable.name.rfind(plan::cachePrefix, 0) == 0;
}

/// Whether `variable` is what a recurrence or a convolution keeps of all tokens read so far.
static bool isState(const Variable &variable) {
  return variable.name.rfind(plan::statePrefix, 0) == 0;
}

/// Whether `variable` is computed of a source.
static bool isOfSource(const Variable &variable) {
  return variable.name.rfind(plan::sourcePrefix, 0) == 0;
}

Decoder::Decoder(const Options &options) : plan(readDecoderPlan()), most(plan.maxPositions) {
  int threads = threadsPerRank(1);
  std::vector<RankStatus *> statuses{&status};
  context.emplace(plan, std::move(ThreadCommunicator::createWorld(1, threads, statuses)[0]),
                  threads, status);
  loadWeights(options);
}

void Decoder::loadWeights(const Options &options) {
  arena = makeArena(*context);
  context->offloaded = arena->offloadMemory();
  // Caches and states begin as zeros, which the arena has.
  Plan filled = plan;
  auto isZero = [](const Variable &variable) {
    return isCache(variable) || isState(variable) || isOfSource(variable);
  };
  filled.variables.erase(
      std::remove_if(filled.variables.begin(), filled.variables.end(), isZero),
      filled.variables.end());
  filled.allVariables = filled.variables;
  WeightTarget target{filled, 0, arena->variables(), context->threads};
  Plan trained = readTrainingPlan();
  std::string checkpoint = options.resume.empty() ? "" : findCheckpoint(options.resume);
  if (!checkpoint.empty())
    checkSameWeights(trained, checkpoint);
  if (plan.adapterConfig && !checkpoint.empty())
    checkAdapterConfig(plan, checkpoint, "--resume");
  else if (!options.adapter.empty())
    checkAdapterConfig(plan, std::filesystem::path(options.adapter).parent_path(), "--adapter");
  if (checkpoint.empty() || plan.adapterConfig)
    loadBase(options, checkpoint, target, trained);
  // What is trained may begin as the base says.
  if (!checkpoint.empty())
    readWeights(target, trainedWeights(plan),
                tensorsIn(checkpoint, plan.adapterConfig ? adapterFile : modelFile),
                "--resume", readIds(checkpoint).model);
  else if (!options.adapter.empty())
    readWeights(target, WeightKind::Adapters, options.adapter, "--adapter");
}

/// Fills the weights that the run of `checkpoint` began with, or a new one of `options` does.
void Decoder::loadBase(const Options &options, const std::string &checkpoint, const WeightTarget &target,
                       const Plan &trained) {
  std::string init = options.init;
  int64_t seed = options.seed;
  if (!checkpoint.empty()) {
    TrainingState state = readState(checkpoint);
    seed = state.seed;
    if (auto saved = state.flags.find("--init"); init.empty() && saved != state.flags.end())
      init = saved->second;
  }
  if (init.empty())
    initializeWeights(target, uint64_t(seed));
  else
    readWeights(target, WeightKind::Parameters, init, "--init");
  if (std::string other = otherConfig(trained, init); !init.empty() && !other.empty())
    fprintf(stderr, "note: %s\n", other.c_str());
}

template <typename Visit>
void Decoder::forEachCache(int64_t begin, int64_t end, Visit visit) {
  for (const Variable &variable : plan.variables) {
    if (!isCache(variable))
      continue;
    int64_t width = variable.shape.back(), layerSize = most * width;
    int64_t layers = elementsIn(variable.shape) / layerSize;
    auto *rows = arena->at<float>(variable.offset);
    for (int64_t layer = 0; layer < layers; ++layer)
      visit(rows + layer * layerSize + begin * width, size_t((end - begin) * width));
  }
}

template <typename Visit> void Decoder::forEachState(Visit visit) {
  for (const Variable &variable : plan.variables)
    if (isState(variable))
      visit(arena->at<float>(variable.offset), size_t(elementsIn(variable.shape)));
}

KeptSequence Decoder::keep() {
  if (int64_t begin = kept ? kept->end : 0; begin < position) {
    auto tokens = std::make_shared<KeptTokens>(KeptTokens{kept, position, {}});
    forEachCache(begin, position, [&](const float *rows, size_t count) {
      tokens->rows.insert(tokens->rows.end(), rows, rows + count);
    });
    kept = tokens;
  }
  std::vector<float> states;
  forEachState([&](const float *state, size_t count) { states.insert(states.end(), state, state + count); });
  if (states.empty())
    return {kept, nullptr};
  return {kept, std::make_shared<const std::vector<float>>(std::move(states))};
}

void Decoder::goBackTo(const KeptSequence &sequence) {
  // Rows of what both sequences begin with stay.
  auto endOf = [](const KeptTokens *tokens) { return tokens ? tokens->end : 0; };
  const KeptTokens *wanted = sequence.tokens.get(), *there = kept.get();
  while (wanted != there) {
    if (endOf(wanted) < endOf(there)) {
      there = there->before.get();
      continue;
    }
    const float *rows = wanted->rows.data();
    forEachCache(endOf(wanted->before.get()), wanted->end, [&](float *to, size_t count) {
      std::copy(rows, rows + count, to);
      rows += count;
    });
    wanted = wanted->before.get();
  }
  kept = sequence.tokens;
  // Those of the empty sequence are zeros.
  const float *states = sequence.states ? sequence.states->data() : nullptr;
  forEachState([&](float *to, size_t count) {
    if (!states) {
      std::fill_n(to, count, 0.0F);
      return;
    }
    std::copy(states, states + count, to);
    states += count;
  });
  position = endOf(kept.get());
  // The program adds to rows.
  if (position < written)
    forEachCache(position, written, [](float *rows, size_t count) { std::fill_n(rows, count, 0.0F); });
  written = position;
}

void Decoder::encode(const std::vector<int32_t> &source) {
  goBackTo({});
  auto at = [&](const char *name) { return arena->at<int32_t>(plan.inputs.at(name).offset); };
  std::fill_n(std::copy(source.begin(), source.end(), at("source")),
              sourceLength() - int64_t(source.size()), 0);
  *at("source_lengths") = int32_t(source.size());
  context->run(meshwright_decoder_encode, arena->program());
}

const float *Decoder::read(const std::vector<int32_t> &tokens) {
  auto at = [&](const char *name) { return arena->at<int32_t>(plan.inputs.at(name).offset); };
  const Port &logits = plan.outputs.at(plan::logitsOutput);
  const float *last = nullptr;
  for (size_t begin = 0; begin < tokens.size(); begin += size_t(plan.sequence)) {
    int64_t count = std::min(plan.sequence, int64_t(tokens.size() - begin));
    int32_t *ids = at("tokens"), *positions = at("positions");
    for (int64_t i = 0; i < plan.sequence; ++i) {
      // What pads the call is nowhere: behind the last row of the caches.
      ids[i] = i < count ? tokens[begin + size_t(i)] : 0;
      positions[i] = int32_t(i < count ? position + i : most);
    }
    // Attention alone needs to know.
    if (plan.inputs.count("first_position"))
      *at("first_position") = int32_t(position);
    context->run(meshwright_decoder_step, arena->program());
    last = arena->at<float>(logits.offset) + (count - 1) * logits.shape.back();
    position += count;
  }
  written = std::max(written, position);
  return last;
}
