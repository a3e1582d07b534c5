//===- LearningRate.cpp - the course of the learning rate -----------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "common/data/LearningRate.h"

#include <algorithm>
#include <cmath>

double meshwright::learningRate(const Options &options, int64_t step) {
  if (step < options.warmup)
    return options.lr * double(step + 1) / double(options.warmup);
  if (options.lrSchedule == "constant")
    return options.lr;
  if (step >= options.steps)
    return options.minLr;
  double done = double(step - options.warmup) / double(options.steps - options.warmup);
  double left = options.lrSchedule == "cosine" ? 0.5 * (1.0 + std::cos(M_PI * done)) : 1.0 - done;
  return options.minLr + left * (options.lr - options.minLr);
}
