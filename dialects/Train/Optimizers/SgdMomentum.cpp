//===- SgdMomentum.cpp - stochastic gradient descent with momentum ----------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// Polyak 1964, as torch.optim.SGD with momentum.
//
//===----------------------------------------------------------------------===//
#include "Momentum.h"

using namespace meshwright::train;

static Updated update(const UpdateInputs &in) {
  MomentumStep step = momentumStep(in);
  return {in.parameter - in.lr * step.momentum, {step.momentum}};
}

namespace meshwright::train {
extern const Optimizer sgdMomentum = {
    "sgd-momentum", "gradient descent with momentum", momentumBuffer, momentumRows, {}, update,
    scaleGradientSteps};
} // namespace meshwright::train
