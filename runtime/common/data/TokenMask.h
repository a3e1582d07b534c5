//===- TokenMask.h - which tokens a model is to predict ---------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_RUNTIME_COMMON_TOKENMASK_H
#define MESHWRIGHT_RUNTIME_COMMON_TOKENMASK_H

#include <array>
#include <cstdint>

namespace meshwright {

/// An id that is no row of any table and no column of any logits: it adds no loss.
inline constexpr int32_t noTarget = -1;

/// Chooses tokens for a model to predict and hides them from it (Devlin et al. 2019): of the
/// chosen ones eight in ten become the mask token, one any token, one stays. A function of
/// (key, sequence, index), so every rank knows all choices.
class TokenMask {
public:
  /// `share` of all tokens are chosen. Training and evaluation have streams of their own.
  TokenMask(double share, int64_t maskToken, int64_t vocabulary, bool evaluates = false);

  /// Replaces chosen ones of the `length` tokens of `sequence`. `targets` gets what they were, and
  /// `noTarget` elsewhere.
  void apply(std::array<uint32_t, 2> key, int64_t sequence, int64_t length, int32_t *tokens,
             int32_t *targets) const;

  /// How many `apply` chooses of `sequences` sequences from `first` on.
  int64_t count(std::array<uint32_t, 2> key, int64_t first, int64_t sequences,
                int64_t length) const;

private:
  /// What is drawn for a token, by its number in the batch.
  std::array<uint32_t, 4> wordsOf(std::array<uint32_t, 2> key, int64_t number) const;

  uint64_t below; ///< the first word of a chosen token
  int32_t maskToken;
  uint64_t vocabulary;
  uint32_t stream;
};

} // namespace meshwright

#endif // MESHWRIGHT_RUNTIME_COMMON_TOKENMASK_H
