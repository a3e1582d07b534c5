//===- Lion.cpp - Lion ------------------------------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// Chen et al. 2023, "Symbolic Discovery of Optimization Algorithms", algorithm 2.
//
//===----------------------------------------------------------------------===//
#include "MaximalUpdate.h"

using namespace meshwright::train;
using namespace meshwright::train::formula;

static Updated update(const UpdateInputs &in) {
  Expr p = in.parameter, g = in.clipped(), m = in.state("momentum");
  Expr beta1 = in.scalar("beta1"), beta2 = in.scalar("beta2");
  Expr direction = sign(beta1 * m + (1.0 - beta1) * g);
  Expr decayed = in.decays ? p * (1.0 - in.lr * in.decay()) : p;
  return {decayed - in.lr * direction, {beta2 * m + (1.0 - beta2) * g}};
}

static constexpr OptimizerState states[] = {{"momentum", /*isAverageOfGradients=*/true}};

static constexpr Hyperparameter hyperparameters[] = {
    {"beta1", 0.9, belowOne, "weight of the momentum in the update direction"},
    {"beta2", 0.99, belowOne, "decay rate of the momentum (moving average of gradients)", "momentum"},
    {"weight_decay", 0.1, std::nullopt,
     "decoupled weight decay of parameters with two or more dimensions"}};

namespace meshwright::train {
extern const Optimizer lion = {
    "lion", "sign of momentum: each element moves by the learning rate",
    states, hyperparameters,
    {},     update,          scaleUnitSteps};
} // namespace meshwright::train
