//===- BeamSearch.h - the likeliest sequence that a search finds ----------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_RUNTIME_COMMON_BEAMSEARCH_H
#define MESHWRIGHT_RUNTIME_COMMON_BEAMSEARCH_H

#include "common/generate/Conventions.h"
#include "common/generate/Decoder.h"

namespace meshwright {

/// When a search ends that has as many finished sequences as beams.
enum class EarlyStopping {
  On,    ///< at once
  Off,   ///< when the best beam, were it finished at its length, would not be among them
  Never, ///< when it could not be at any length
};

/// "on", "off" or "never".
EarlyStopping earlyStoppingNamed(const std::string &name);

/// Beam search with as many sequences at a time as `beams`, as transformers' `generate` does it: the score of
/// a finished sequence is the logarithm of its probability over its number of tokens ^ lengthPenalty.
struct BeamSearch {
  int64_t beams = 1;
  double lengthPenalty = 1;
  EarlyStopping earlyStopping = EarlyStopping::Off;

  /// What the best sequence of at most `most` tokens behind `prompt` has, with the token that ends it.
  std::vector<int32_t> run(Decoder &decoder, const Conventions &conventions,
                           const std::vector<int32_t> &prompt, int64_t most) const;
};

} // namespace meshwright

#endif // MESHWRIGHT_RUNTIME_COMMON_BEAMSEARCH_H
