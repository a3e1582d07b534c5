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

#include <algorithm>
#include <cstdio>
#include <filesystem>

using namespace meshwright;

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

static bool isCache(const Variable &variable) {
  return variable.name.rfind(plan::cachePrefix, 0) == 0;
}

Decoder::Decoder(const Options &options) : plan(readDecoderPlan()) {
  for (const Variable &variable : plan.variables)
    if (isCache(variable))
      most = variable.shape[variable.shape.size() - 2];
  int threads = threadsPerRank(1);
  std::vector<RankStatus *> statuses{&status};
  context.emplace(plan, std::move(ThreadCommunicator::createWorld(1, threads, statuses)[0]),
                  threads, status);
  loadWeights(options);
}

void Decoder::loadWeights(const Options &options) {
  arena = makeArena(*context);
  context->arenas = arena->arenas();
  // Caches begin as zeros, which the arena has.
  Plan filled = plan;
  auto isZero = [](const Variable &variable) { return isCache(variable); };
  filled.variables.erase(
      std::remove_if(filled.variables.begin(), filled.variables.end(), isZero),
      filled.variables.end());
  filled.allVariables = filled.variables;
  WeightTarget target{filled, 0, arena->variables(), context->threads};
  if (!options.resume.empty()) {
    std::string checkpoint = findCheckpoint(options.resume);
    checkSameWeights(plan, checkpoint);
    readWeights(target, trainedWeights(plan),
                checkpoint + "/" + (plan.adapterConfig ? adapterFile : "model.safetensors"),
                "--resume", readIds(checkpoint).model);
    if (plan.adapterConfig)
      checkAdapterConfig(plan, checkpoint, "--resume");
  } else if (!options.adapter.empty()) {
    checkAdapterConfig(plan, std::filesystem::path(options.adapter).parent_path(), "--adapter");
    readWeights(target, WeightKind::Adapters, options.adapter, "--adapter");
  }
  if (!options.resume.empty() && !plan.adapterConfig)
    return;
  std::string init = options.init;
  int64_t seed = options.seed;
  if (!options.resume.empty()) {
    TrainingState state = readState(findCheckpoint(options.resume));
    seed = state.seed;
    if (auto saved = state.flags.find("--init"); init.empty() && saved != state.flags.end())
      init = saved->second;
  }
  if (init.empty())
    initializeWeights(target, uint64_t(seed));
  else
    readWeights(target, WeightKind::Parameters, init, "--init");
  if (std::string other = otherConfig(plan, init); !init.empty() && !other.empty())
    fprintf(stderr, "note: %s\n", other.c_str());
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
    *at("first_position") = int32_t(position);
    context->run(meshwright_decoder_step, arena->program());
    last = arena->at<float>(logits.offset) + (count - 1) * logits.shape.back();
    position += count;
  }
  return last;
}
