//===- RateWeights.h - weights of updates in an average of parameters ----===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// Schedule-free optimizers (Defazio et al. 2024) average the parameters of all updates. An update weighs as much
// as the largest learning rate up to it, to a power: warm-up counts less, and a rate that falls changes nothing.
// The sum depends on all updates made, so a checkpoint keeps it.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_RUNTIME_COMMON_RATEWEIGHTS_H
#define MESHWRIGHT_RUNTIME_COMMON_RATEWEIGHTS_H

#include <algorithm>
#include <cmath>

namespace meshwright {

/// Of the updates made so far.
struct RateWeights {
  double largest = 0; ///< learning rate
  double sum = 0;     ///< of the weights

  /// What an update at the learning rate `lr` weighs.
  double weight(double lr, double power) const { return std::pow(std::max(largest, lr), power); }
  /// The part of the average that this update is; none where no update has had a rate yet.
  double share(double lr, double power) const {
    double own = weight(lr, power);
    return own > 0 ? own / (sum + own) : 0;
  }
  void add(double lr, double power) {
    sum += weight(lr, power);
    largest = std::max(largest, lr);
  }
};

} // namespace meshwright

#endif // MESHWRIGHT_RUNTIME_COMMON_RATEWEIGHTS_H
