//===- Sampler.cpp - the next token, by its logits ------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "common/generate/Sampler.h"

#include "meshwright/runtime/Philox.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

using namespace meshwright;

int32_t Sampler::choose(const float *logits, int64_t count, int64_t position) const {
  if (temperature == 0)
    return int32_t(std::max_element(logits, logits + count) - logits);
  std::vector<int32_t> tokens(static_cast<size_t>(count));
  std::iota(tokens.begin(), tokens.end(), 0);
  auto isLikelier = [&](int32_t a, int32_t b) {
    return logits[a] != logits[b] ? logits[a] > logits[b] : a < b;
  };
  size_t kept = topK > 0 ? size_t(std::min(topK, count)) : size_t(count);
  std::partial_sort(tokens.begin(), tokens.begin() + std::ptrdiff_t(kept), tokens.end(), isLikelier);
  std::vector<double> weights(kept);
  double most = logits[tokens[0]], sum = 0;
  for (size_t i = 0; i < kept; ++i)
    sum += weights[i] = std::exp((double(logits[tokens[i]]) - most) / temperature);
  double wanted = topP * sum, within = 0;
  size_t last = 0;
  while (last < kept && (last == 0 || within < wanted))
    within += weights[last++];
  std::array<uint32_t, 2> key{uint32_t(seed), uint32_t(seed >> 32)};
  double drawn = (double(randomBits(key, /*stream=*/0, uint64_t(position))) + 0.5) / 4294967296.0;
  double left = drawn * within;
  for (size_t i = 0; i + 1 < last; ++i)
    if ((left -= weights[i]) < 0)
      return tokens[i];
  return tokens[last - 1];
}
