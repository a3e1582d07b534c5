//===- Sampler.h - the next token, by its logits --------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_RUNTIME_COMMON_SAMPLER_H
#define MESHWRIGHT_RUNTIME_COMMON_SAMPLER_H

#include <cstdint>

namespace meshwright {

struct Sampler {
  double temperature = 1; ///< 0: the most likely token, of equal ones the first
  int64_t topK = 0;       ///< only the K most likely; 0: all
  double topP = 1;        ///< only the most likely whose probabilities come to P (Holtzman et al. 2020)
  uint64_t seed = 0;

  /// The token at `position`, of `count` whose logits these are. Random numbers are a function of
  /// seed and position.
  int32_t choose(const float *logits, int64_t count, int64_t position) const;
};

} // namespace meshwright

#endif // MESHWRIGHT_RUNTIME_COMMON_SAMPLER_H
