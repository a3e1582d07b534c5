//===- Muon.cpp - momentum, orthogonalized ----------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// Jordan et al. 2024, "Muon: An optimizer for hidden layers in neural networks", as torch.optim.Muon.
// The direction, the orthogonalized average of gradients, is what train-build-optimizer computes of
// whole matrices. It has the factor of the matrix's shape, so weight decay is that of the rate alone.
//
//===----------------------------------------------------------------------===//
#include "Train/Optimizer.h"

using namespace meshwright::train;
using namespace meshwright::train::formula;

static Updated update(const UpdateInputs &in) {
  Expr p = in.parameter, mu = in.scalar("momentum");
  Expr decayed = in.decays ? p * (1.0 - in.lr * in.decay()) : p;
  return {decayed - in.lr * *in.direction,
          {mu * in.state("momentum") + (1.0 - mu) * in.clipped()}};
}

static constexpr OptimizerState states[] = {{"momentum", /*isAverageOfGradients=*/true}};

static constexpr Hyperparameter hyperparameters[] = {
    {"momentum", 0.95, belowOne, "decay rate of the momentum, which is orthogonalized",
     "momentum"},
    {"weight_decay", 0.1, std::nullopt,
     "decoupled weight decay of parameters with two or more dimensions"}};

namespace meshwright::train {
extern const Optimizer adamw;
extern const Optimizer muon = {
    "muon", "orthogonalized momentum for hidden matrices, AdamW for other parameters",
    states, hyperparameters,
    {},     update,
    &adamw};
} // namespace meshwright::train
