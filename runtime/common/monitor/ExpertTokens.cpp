//===- ExpertTokens.cpp - how many tokens chose each expert ----------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "common/monitor/ExpertTokens.h"

#include "common/communication/RankGroup.h"
#include "common/monitor/Error.h"
#include "common/plan/Sharding.h"
#include "meshwright/runtime/StorageName.h"

#include <algorithm>
#include <cmath>

using namespace meshwright;

/// The number of a variable's slice `index` among the model's layers.
static int64_t layerNumber(const Variable &variable, int64_t index) {
  const std::string &pattern = variable.storage.tensor;
  size_t begin = pattern.find("{layer");
  if (begin == std::string::npos)
    return index;
  std::optional<std::string> number =
      layerTensorName(pattern.substr(begin, pattern.find('}', begin) + 1 - begin), index);
  return number ? std::stoll(*number) : index;
}

/// The counts of layer `index` of a variable at `address`, where padding may follow those of each layer.
static const float *countsOf(const Variable &variable, const void *address, int64_t index) {
  return static_cast<const float *>(address) + index * variable.localShape.back();
}

bool LayerTokens::isFinite() const {
  return std::all_of(counts.begin(), counts.end(), [](float count) { return std::isfinite(count); });
}

int64_t ExpertTokens::elementsOf(const Variable &variable) {
  int64_t elements = 1;
  for (int64_t size : variable.shape)
    elements *= size;
  return elements;
}

ExpertTokens::ExpertTokens(const Plan &plan, int64_t rank, int64_t idleSteps)
    : rank(rank), idleSteps(idleSteps) {
  for (const Variable &variable : plan.allVariables) {
    if (variable.role != Variable::Tokens)
      continue;
    Counter counter{&variable, 0, std::vector<int64_t>(size_t(elementsOf(variable)))};
    while (plan.programOf(counter.holder) != variable.program)
      ++counter.holder;
    // Servers and workers both have them.
    bool known = std::any_of(counters.begin(), counters.end(), [&](const Counter &other) {
      return other.variable->name == variable.name;
    });
    if (!known)
      counters.push_back(std::move(counter));
  }
}

std::map<int64_t, int64_t> ExpertTokens::expertsOf(const Plan &plan) {
  std::map<int64_t, int64_t> experts;
  for (const Variable &variable : plan.allVariables)
    for (int64_t i = 0; variable.role == Variable::Tokens && i < variable.tensors(); ++i)
      experts[layerNumber(variable, i)] = variable.shape.back();
  return experts;
}

LayerTokens ExpertTokens::layerOf(const Variable &variable, int64_t index) {
  LayerTokens layer;
  layer.layer = layerNumber(variable, index);
  layer.router = storageName(variable, index);
  layer.counts.resize(size_t(variable.shape.back()));
  return layer;
}

std::vector<ArenaRange> ExpertTokens::ranges() const {
  std::vector<ArenaRange> ranges;
  for (const Counter &counter : counters)
    if (rank == counter.holder && counter.variable->space == MemorySpace::Device)
      ranges.push_back(Plan::rangeOf(*counter.variable));
  return ranges;
}

std::vector<LayerTokens> ExpertTokens::gather(RankGroup &world,
                                              const VariableAddresses &addresses) const {
  std::vector<float> mine;
  for (const Counter &counter : counters) {
    size_t begin = mine.size(), elements = counter.idle.size();
    mine.resize(begin + elements);
    const Variable &variable = *counter.variable;
    int64_t experts = variable.shape.back();
    for (int64_t i = 0; rank == counter.holder && i < variable.tensors(); ++i)
      std::copy_n(countsOf(variable, addresses.of(variable), i), experts,
                  mine.data() + begin + size_t(i * experts));
  }
  std::vector<float> all(mine.size());
  world.allReduce(ElementType::F32, Reduction::Sum, mine.data(), all.data(), int64_t(all.size()));
  std::vector<LayerTokens> layers;
  auto next = all.begin();
  for (const Counter &counter : counters)
    for (int64_t i = 0; i < counter.variable->tensors(); ++i) {
      layers.push_back(layerOf(*counter.variable, i));
      std::vector<float> &counts = layers.back().counts;
      std::copy_n(next, counts.size(), counts.begin());
      next += int64_t(counts.size());
    }
  std::sort(layers.begin(), layers.end(),
            [](const LayerTokens &a, const LayerTokens &b) { return a.layer < b.layer; });
  return layers;
}

std::vector<std::string> ExpertTokens::note(const VariableAddresses &addresses) {
  std::vector<std::string> said;
  if (!idleSteps)
    return said;
  for (Counter &counter : counters) {
    if (rank != counter.holder)
      continue;
    int64_t experts = counter.variable->shape.back();
    for (size_t i = 0; i < counter.idle.size(); ++i) {
      // Once said, it is not said again.
      if (counter.idle[i] >= idleSteps)
        continue;
      const float *counts = countsOf(*counter.variable, addresses.of(*counter.variable),
                                     int64_t(i) / experts);
      counter.idle[i] = counts[int64_t(i) % experts] == 0 ? counter.idle[i] + 1 : 0;
      if (counter.idle[i] == idleSteps)
        said.push_back(text("expert ", int64_t(i) % experts, " of layer ",
                            layerNumber(*counter.variable, int64_t(i) / experts), " got no token for ",
                            idleSteps, idleSteps == 1 ? " step" : " steps", " (router ",
                            storageName(*counter.variable, int64_t(i) / experts), ")"));
    }
  }
  return said;
}
