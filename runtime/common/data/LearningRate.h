//===- LearningRate.h - the course of the learning rate -------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_RUNTIME_COMMON_LEARNINGRATE_H
#define MESHWRIGHT_RUNTIME_COMMON_LEARNINGRATE_H

#include "common/launch/Options.h"

namespace meshwright {

/// The learning rate of step `step` (from 0): lr * (t + 1) / W for t < W, then as
/// --lr-schedule says. docs/training.md has the formulas.
double learningRate(const Options &options, int64_t step);

/// Whether --lr-schedule `name` depends on --steps, where it ends.
bool endsAtLastStep(const std::string &name);

/// Whether --lr-schedule `name` goes down to --min-lr and no further.
bool fallsToMinimum(const std::string &name);

/// Refuses values of the flags of the schedule that contradict each other.
void checkLearningRate(const Options &options);

} // namespace meshwright

#endif // MESHWRIGHT_RUNTIME_COMMON_LEARNINGRATE_H
