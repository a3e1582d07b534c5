//===- ExpertCopies.cpp - which experts have copies on other devices ------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "common/train/ExpertCopies.h"

#include "common/monitor/Error.h"
#include "common/monitor/ExpertTokens.h"

#include <charconv>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>

using namespace meshwright;
using Json = nlohmann::json;

/// The number that a layer's key is; nothing if it is none.
static std::optional<int64_t> layerOf(const std::string &key) {
  int64_t layer = 0;
  auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), layer);
  return error == std::errc() && end == key.data() + key.size() && layer >= 0 ? std::optional(layer) : std::nullopt;
}

ExpertLoads meshwright::readExpertLoads(const std::string &path) {
  std::ifstream input(path);
  ExpertLoads loads;
  for (std::string line; std::getline(input, line);) {
    Json json = Json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (!json.is_object() || !json.contains("expert_tokens") || !json["expert_tokens"].is_object())
      continue;
    ExpertLoads ofStep;
    for (const auto &[key, counts] : json["expert_tokens"].items()) {
      std::optional<int64_t> layer = layerOf(key);
      bool areCounts = layer && counts.is_array() && !counts.empty(), failed = false;
      for (const Json &count : counts) {
        failed |= count.is_null(); // as those of a router that failed are
        areCounts &= count.is_null() || (count.is_number() && count.get<double>() >= 0 && count.get<double>() < 1e18);
      }
      if (!areCounts)
        fail("--expert-loads ", path, ": expert_tokens of layer \"", key, "\" is ", counts.dump(),
             ", no list of counts: name a file that --metrics and --expert-tokens-every wrote");
      if (!failed)
        ofStep[*layer] = counts.get<std::vector<double>>();
    }
    if (!ofStep.empty())
      loads = std::move(ofStep);
  }
  if (loads.empty())
    fail("--expert-loads ", path, ": no line has \"expert_tokens\", which a run with --metrics FILE.jsonl and "
         "--expert-tokens-every N writes: name a file that has");
  return loads;
}

ExpertCopies::ExpertCopies(const Plan &plan) : experts(ExpertTokens::expertsOf(plan)) {
  auto found = plan.inputs.find(expertPlacementInput);
  if (found == plan.inputs.end())
    return;
  const std::vector<int64_t> &shape = found->second.shape;
  for (const auto &axis : plan.mesh)
    if (axis.name == "expert")
      sizes.devices = axis.size;
  if (shape.size() != 3 || shape[1] < 2 || shape[2] % sizes.devices)
    fail("plan: input \"", expertPlacementInput, "\" is no table of layers, residues and slots on ", sizes.devices, " devices");
  layers = shape[0];
  sizes.residues = shape[1] - 1;
  sizes.slots = shape[2];
  place({}, "");
}

void ExpertCopies::place(const ExpertLoads &loads, const std::string &source) {
  for (const auto &[layer, tokens] : loads) {
    auto known = experts.find(layer);
    int64_t have = known == experts.end() ? 0 : known->second;
    if (have != int64_t(tokens.size()))
      fail(source, ": layer ", layer, " has loads of ", tokens.size(), " experts, but this executable's model has ",
           have, " there: name loads of this model");
  }
  all.clear();
  for (int64_t layer = 0; layer < layers; ++layer) {
    auto found = loads.find(layer);
    std::vector<int32_t> table = found == loads.end() ? withoutCopies(sizes) : placeExperts(found->second, sizes).table;
    all.insert(all.end(), table.begin(), table.end());
  }
}
