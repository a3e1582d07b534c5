//===- LearningRate.h - the course of the learning rate -------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_RUNTIME_COMMON_LEARNINGRATE_H
#define MESHWRIGHT_RUNTIME_COMMON_LEARNINGRATE_H

#include "common/launch/Options.h"

namespace meshwright {

/// The learning rate of step `step` (from 0): lr * (t + 1) / W for t < W; then lr,
/// or from lr down to min-lr at --steps along half a cosine or a line.
double learningRate(const Options &options, int64_t step);

} // namespace meshwright

#endif // MESHWRIGHT_RUNTIME_COMMON_LEARNINGRATE_H
