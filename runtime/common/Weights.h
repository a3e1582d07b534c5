//===- Weights.h - filling a rank's variables -----------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_RUNTIME_COMMON_WEIGHTS_H
#define MESHWRIGHT_RUNTIME_COMMON_WEIGHTS_H

#include "common/Plan.h"

#include <cstdint>
#include <functional>
#include <string>

namespace meshwright {

/// Where a rank's variables go.
struct WeightTarget {
  const Plan &plan;
  int64_t rank;
  VariablePlaces places; ///< zeroed
  int threads;
  /// Called, if there is one, with each part of a variable that has been filled, one after the other, and its bytes.
  std::function<void(const Variable &, const char *data, int64_t bytes)> filled = {};
};

/// Fills the parameters and their masters with their initial values, a function of
/// (seed, name, global index). Padding and optimizer states stay zero.
void initializeWeights(const WeightTarget &target, uint64_t seed);

enum class WeightKind { Parameters, OptimizerStates };

/// Reads the parameters (and their masters) or the optimizer states from a safetensors file that
/// `flag` named: this rank's parts only. All tensors must be there with the right
/// shapes. Returns a note on tensors in the file that the model does not use, or
/// an empty string.
std::string readWeights(const WeightTarget &target, WeightKind kind, const std::string &path,
                        const std::string &flag);

} // namespace meshwright

#endif // MESHWRIGHT_RUNTIME_COMMON_WEIGHTS_H
