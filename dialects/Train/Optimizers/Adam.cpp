//===- Adam.cpp - Adam with weight decay in the gradient --------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// As torch.optim.Adam (Kingma and Ba 2015): weight decay is added to the gradient.
//
//===----------------------------------------------------------------------===//
#include "Moments.h"

using namespace meshwright::train;
using namespace meshwright::train::formula;

static Updated update(const UpdateInputs &in) {
  Expr g = in.clipped();
  return momentStep(in, in.parameter, in.decays ? g + in.decay() * in.parameter : g);
}

static constexpr Hyperparameter hyperparameters[] = {
    beta1Row,
    beta2Row,
    epsRow,
    {"weight_decay", 0, std::nullopt,
     "L2 weight decay of parameters with two or more dimensions, added to their gradients"}};

namespace meshwright::train {
extern const Optimizer adam = {
    "adam", "Adam with weight decay in the gradient", moments, hyperparameters, momentCorrections,
    update, scaleUnitSteps};
} // namespace meshwright::train
