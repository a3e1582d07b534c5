//===- Averages.h - names of averages of weights ----------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// `compile --ema` keeps them as one more state beside those of the optimizer. Schedule-free optimizers have
// averages as their parameters.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_RUNTIME_AVERAGES_H
#define MESHWRIGHT_RUNTIME_AVERAGES_H

namespace meshwright {

/// The state's role, and its name in files behind the parameter's.
inline constexpr const char *averageState = "ema";
/// The inputs of a step: the decay d, and 1 - d^t in the t-th update.
inline constexpr const char *averageDecay = "ema_decay", *averageCorrection = "ema_correction";

/// The input of a step with a schedule-free optimizer that is the weight of its update in the averages, and the
/// hyperparameter by which it follows from the learning rates of all updates so far (common/data/RateWeights.h).
inline constexpr char updateWeight[] = "average_weight", updateWeightPower[] = "weight_lr_power";

} // namespace meshwright

#endif // MESHWRIGHT_RUNTIME_AVERAGES_H
