//===- Adafactor.cpp - squared gradients averaged by rows and columns -------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// Shazeer and Stern 2018, "Adafactor: Adaptive learning rates with sublinear memory cost", without a first
// moment and with the executable's learning rate, as transformers' Adafactor with relative_step and
// scale_parameter off; `adafactor-scaled` has the scale of the parameter, as torch.optim.Adafactor. The
// direction, its averages and the bound on its root mean square are train-build-optimizer's.
//
//===----------------------------------------------------------------------===//
#include "Train/Optimizer.h"

using namespace meshwright::train;
using namespace meshwright::train::formula;

/// Weight decay is that of the rate, without the scale.
static Updated update(const UpdateInputs &in) {
  Expr p = in.parameter;
  Expr decayed = in.decays ? p * (1.0 - in.lr * in.decay()) : p;
  return {decayed - in.lr * *in.direction, {}};
}

static constexpr MeanSquare means[] = {
    {"row", MeanOf::row}, {"column", MeanOf::column}, {"variance", MeanOf::element}};

static constexpr Hyperparameter hyperparameters[] = {
    {"beta2_decay", 0.8, std::nullopt,
     "exponent c of the averages of squared gradients: update t replaces the t^-c-th part of them"},
    {"eps", 1e-30, std::nullopt, "added to squared gradients"},
    {"weight_decay", 0, std::nullopt,
     "decay of parameters with two or more dimensions, beside the gradient's step"}};

/// The first update's is 1, so the averages need no correction for their start at zero.
static constexpr BiasCorrection weights[] = {{"beta2_weight", "beta2_decay", /*isPower=*/true}};

namespace meshwright::train {
extern const Optimizer adafactor = {
    "adafactor",
    "gradients over the root of their mean squares by rows and columns, which need almost no memory",
    {},
    hyperparameters,
    weights,
    update,
    /*scaledByWidth=*/nullptr,
    Direction::factored,
    means};
extern const Optimizer adafactorScaled = {
    "adafactor-scaled",
    "adafactor with steps relative to the size of each parameter",
    {},
    hyperparameters,
    weights,
    update,
    /*scaledByWidth=*/nullptr,
    Direction::scaled,
    means};
} // namespace meshwright::train
