//===- SgdNesterov.cpp - stochastic gradient descent with Nesterov momentum -===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// Sutskever et al. 2013, "On the importance of initialization and momentum in deep learning", as
// torch.optim.SGD with nesterov=True writes it: parameters are those at which gradients are taken.
//
//===----------------------------------------------------------------------===//
#include "Momentum.h"

using namespace meshwright::train;

static Updated update(const UpdateInputs &in) {
  MomentumStep step = momentumStep(in);
  formula::Expr ahead = step.gradient + in.scalar("momentum") * step.momentum;
  return {in.parameter - in.lr * ahead, {step.momentum}};
}

namespace meshwright::train {
extern const Optimizer sgdNesterov = {
    "sgd-nesterov", "gradient descent with Nesterov momentum", momentumBuffer, momentumRows, {},
    update, scaleGradientSteps};
} // namespace meshwright::train
