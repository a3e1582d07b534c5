//===- Conventions.cpp - how generated sequences begin and end ------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "common/generate/Conventions.h"

#include "common/monitor/Error.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

using namespace meshwright;

static constexpr double never = -std::numeric_limits<double>::infinity();

Conventions meshwright::readConventions(const Plan &plan) {
  Conventions all;
  if (!plan.sourceSequence)
    return all;
  auto json = nlohmann::json::parse(plan.config, nullptr, /*allow_exceptions=*/false);
  try {
    auto tokens = [&](const char *key) { return json.at(key).get<std::vector<int32_t>>(); };
    all.start = json.at("decoder_start_token_id").get<int32_t>();
    all.ends = tokens("eos_token_id");
    all.forcedFirst = tokens("forced_bos_token_id");
    all.forcedLast = tokens("forced_eos_token_id");
    all.suppressed = tokens("suppress_tokens");
    all.renormalizes = json.at("renormalize_logits").get<bool>();
    all.unread = json.at("unread").get<std::string>();
  } catch (const nlohmann::json::exception &error) {
    fail("plan: the decoder's \"config\" does not say how targets begin and end (", error.what(),
         "): compile the executable again");
  }
  return all;
}

bool Conventions::isEnd(int32_t token) const {
  return std::find(ends.begin(), ends.end(), token) != ends.end();
}

/// Subtracts the logarithm of the sum of the exponentials.
static void normalize(std::vector<double> &scores) {
  double most = *std::max_element(scores.begin(), scores.end()), sum = 0;
  for (double score : scores)
    sum += std::exp(score - most);
  for (double &score : scores)
    score -= most + std::log(sum);
}

std::vector<double> meshwright::logProbabilities(const float *logits, int64_t count) {
  std::vector<double> scores(logits, logits + count);
  normalize(scores);
  return scores;
}

void Conventions::apply(std::vector<double> &scores, int64_t made, int64_t most) const {
  for (int32_t token : suppressed)
    scores[size_t(token)] = never;
  // A forced token is certain, whatever is suppressed.
  auto force = [&](const std::vector<int32_t> &tokens) {
    std::fill(scores.begin(), scores.end(), never);
    for (int32_t token : tokens)
      scores[size_t(token)] = 0;
  };
  if (made == 0 && !forcedFirst.empty())
    force(forcedFirst);
  if (made + 1 == most && !forcedLast.empty())
    force(forcedLast);
  if (renormalizes)
    normalize(scores);
}
