//===- Conventions.h - how generated sequences begin and end --------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_RUNTIME_COMMON_CONVENTIONS_H
#define MESHWRIGHT_RUNTIME_COMMON_CONVENTIONS_H

#include "common/plan/Plan.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace meshwright {

/// What a model's configuration says of the tokens that are generated.
struct Conventions {
  std::optional<int32_t> start;     ///< what an encoder-decoder model's targets begin behind
  std::vector<int32_t> ends;        ///< each of these ends a sequence
  std::vector<int32_t> forcedFirst; ///< the first token is one of these, if there are some
  std::vector<int32_t> forcedLast;  ///< and the last one where a sequence is as long as it may be
  std::vector<int32_t> suppressed;  ///< never generated
  bool renormalizes = false;        ///< probabilities of what is left add up to 1
  std::string unread;               ///< other settings that transformers would follow

  bool isEnd(int32_t token) const;
  /// Changes the logarithms of the probabilities of token number `made` of at most `most`.
  void apply(std::vector<double> &scores, int64_t made, int64_t most) const;
};

/// Of the plan of a decoder, whose configuration, if it reads a source, is what the compiler has made of
/// the model's for generation (python-free-frontend/Generation.cpp).
Conventions readConventions(const Plan &plan);

/// The logarithms of the probabilities of `count` tokens, whose logits these are.
std::vector<double> logProbabilities(const float *logits, int64_t count);

} // namespace meshwright

#endif // MESHWRIGHT_RUNTIME_COMMON_CONVENTIONS_H
