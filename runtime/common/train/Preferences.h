//===- Preferences.h - what pairs say of a model's preferences --------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_RUNTIME_COMMON_PREFERENCES_H
#define MESHWRIGHT_RUNTIME_COMMON_PREFERENCES_H

#include "common/monitor/Metrics.h"

#include <cstdint>

namespace meshwright {

/// The means over pairs of direct preference optimization, of the log-probabilities of a program and
/// of the reference: what TRL's DPOTrainer reports. The reward of a completion is beta times the
/// difference of both.
class Preferences {
public:
  explicit Preferences(double beta) : beta(beta) {}

  /// Adds `sequences` sequences, of which each second one is the rejected completion of the pair.
  void add(const float *logProbs, const float *reference, int64_t sequences);

  int64_t pairs() const { return count; }
  /// -log(sigmoid(margin)).
  double loss() const { return mean(lossSum); }
  Rewards rewards() const;
  /// How far the log-probabilities are from the reference's: the mean difference as a share of the mean size.
  double distance() const { return sizeSum > 0 ? differenceSum / sizeSum : 0; }

private:
  double mean(double sum) const { return count ? sum / double(count) : 0; }

  double beta;
  int64_t count = 0, preferred = 0; ///< pairs, and those whose chosen completion has the larger reward
  double lossSum = 0, chosenSum = 0, rejectedSum = 0, chosenLogProbs = 0, rejectedLogProbs = 0;
  double differenceSum = 0, sizeSum = 0;
};

} // namespace meshwright

#endif // MESHWRIGHT_RUNTIME_COMMON_PREFERENCES_H
