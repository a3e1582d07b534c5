//===- BatchRamp.h - how the batch of a step grows ------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_RUNTIME_COMMON_BATCHRAMP_H
#define MESHWRIGHT_RUNTIME_COMMON_BATCHRAMP_H

#include <cstdint>
#include <string>

namespace meshwright {

/// The value of --batch-ramp in a resumed run whose batch is to grow no more, but to be whole.
inline constexpr char noBatchRamp[] = "none";

/// How --batch-ramp lets the batch grow, as Megatron-LM's --rampup-batch-size does: the first of equal parts of the
/// ramp's sequences comes in batches of `start`, each part after it in batches of `increment` more, and what follows
/// in whole batches. The batch is a function of how many sequences a run has read, so a run can be resumed anywhere.
class BatchRamp {
public:
  /// START+INCREMENT:SAMPLES, or an Error that says why these can be no sizes of batches of a program for `batch`
  /// sequences in `microbatches` parts.
  BatchRamp(const std::string &text, int64_t batch, int64_t microbatches);

  /// How many sequences a ramp written so takes, or an Error.
  static int64_t samplesOf(const std::string &text);

  /// The sequences of the batch that begins after `position` sequences.
  int64_t batchAt(int64_t position) const;

private:
  struct Numbers {
    int64_t start, increment, samples;
  };
  static Numbers parse(const std::string &text);

  Numbers numbers;
  int64_t batch;
};

} // namespace meshwright

#endif // MESHWRIGHT_RUNTIME_COMMON_BATCHRAMP_H
