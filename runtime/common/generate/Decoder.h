//===- Decoder.h - the program that generates tokens ----------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_RUNTIME_COMMON_DECODER_H
#define MESHWRIGHT_RUNTIME_COMMON_DECODER_H

#include "common/checkpoint/Weights.h"
#include "common/launch/Options.h"
#include "common/monitor/RankStatus.h"
#include "common/plan/Arena.h"
#include "common/train/Context.h"

#include <memory>
#include <optional>

namespace meshwright {

/// Keys and values of the last tokens of a sequence. Sequences that begin alike share those before.
struct KeptTokens {
  std::shared_ptr<const KeptTokens> before; ///< null at the begin
  int64_t end;                              ///< how many tokens the sequence has with these
  std::vector<float> rows; ///< of each cache and layer, those of these tokens
};

/// A sequence to go on from; without `tokens` the empty one. States are of the whole sequence alone: tokens, which longer
/// sequences share, do not keep those behind them.
struct KeptSequence {
  std::shared_ptr<const KeptTokens> tokens;
  std::shared_ptr<const std::vector<float>> states; ///< of recurrences and convolutions; null where a model has none
};

/// One sequence, and what the model says comes next.
class Decoder {
public:
  /// Reads the weights that --resume or --init name. An Error if the executable has no decoder.
  explicit Decoder(const Options &options);

  const Plan &itsPlan() const { return plan; }
  int64_t vocabulary() const { return plan.vocabulary; }
  /// Tokens that a sequence may have.
  int64_t length() const { return most; }
  /// Tokens that a source may have; 0 without an encoder.
  int64_t sourceLength() const { return plan.sourceSequence.value_or(0); }
  /// Reads a source, whose targets the sequences from here on are.
  void encode(const std::vector<int32_t> &source);
  /// Reads tokens that follow those before. Returns the logits of what follows the last, one for
  /// each of the vocabulary; valid until the next call.
  const float *read(const std::vector<int32_t> &tokens);

  /// What has been read since the begin, to go on from later: without the source.
  KeptSequence keep();
  /// Goes on from `sequence`; from the begin, `{}`.
  void goBackTo(const KeptSequence &sequence);

private:
  void loadWeights(const Options &options);
  void loadBase(const Options &options, const std::string &checkpoint, const WeightTarget &target,
                const Plan &trained);
  /// Calls `visit` with the memory of rows `begin` to `end` of each cache and layer, in order, and how many
  /// floats these are.
  template <typename Visit> void forEachCache(int64_t begin, int64_t end, Visit visit);
  /// Calls `visit` with the memory of each state, and how many floats it has.
  template <typename Visit> void forEachState(Visit visit);

  Plan plan;
  RankStatus status{0};
  std::optional<MwContext> context;
  std::unique_ptr<Arena> arena;
  int64_t most = 0;     ///< tokens that a sequence may have
  int64_t position = 0; ///< of the next token
  int64_t written = 0;  ///< rows of the caches from here on are zero
  std::shared_ptr<const KeptTokens> kept; ///< whose rows the arena holds, of sequences that were kept
};

} // namespace meshwright

#endif // MESHWRIGHT_RUNTIME_COMMON_DECODER_H
