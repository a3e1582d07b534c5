//===- Decoder.h - the program that generates tokens ----------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_RUNTIME_COMMON_DECODER_H
#define MESHWRIGHT_RUNTIME_COMMON_DECODER_H

#include "common/launch/Options.h"
#include "common/monitor/RankStatus.h"
#include "common/plan/Arena.h"
#include "common/train/Context.h"

#include <memory>
#include <optional>

namespace meshwright {

/// One sequence, and what the model says comes next.
class Decoder {
public:
  /// Reads the weights that --resume or --init name. An Error if the executable has no decoder.
  explicit Decoder(const Options &options);

  int64_t vocabulary() const { return plan.vocabulary; }
  /// Tokens that a sequence may have.
  int64_t length() const { return most; }
  /// Reads tokens that follow those before. Returns the logits of what follows the last, one for
  /// each of the vocabulary; valid until the next call.
  const float *read(const std::vector<int32_t> &tokens);

private:
  void loadWeights(const Options &options);

  Plan plan;
  RankStatus status{0};
  std::optional<MwContext> context;
  std::unique_ptr<Arena> arena;
  int64_t most = 0;     ///< tokens that the caches hold
  int64_t position = 0; ///< of the next token
};

} // namespace meshwright

#endif // MESHWRIGHT_RUNTIME_COMMON_DECODER_H
