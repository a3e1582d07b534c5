//===- Sgd.cpp - stochastic gradient descent --------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "MaximalUpdate.h"

using namespace meshwright::train;
using namespace meshwright::train::formula;

static Updated update(const UpdateInputs &in) {
  return {in.parameter - in.lr * in.clip * in.gradient, {}};
}

static constexpr Hyperparameter hyperparameters[] = {
    {"weight_decay", 0, 0.0, "sgd decays no parameters"}};

namespace meshwright::train {
extern const Optimizer sgd = {
    "sgd", "gradient descent without momentum or weight decay", {}, hyperparameters, {}, update,
    scaleGradientSteps};
} // namespace meshwright::train
