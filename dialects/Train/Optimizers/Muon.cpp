//===- Muon.cpp - momentum, orthogonalized ----------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// Jordan et al. 2024, "Muon: An optimizer for hidden layers in neural networks", as torch.optim.Muon.
// The direction, the orthogonalized average of gradients, is what train-build-optimizer computes of
// whole matrices. It has the factor of the matrix's shape, so weight decay is that of the rate alone.
//
// Li et al. 2025, "NorMuon: Making Muon more efficient and scalable", divides rows of the direction by the
// root of an average of their mean squares.
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

static constexpr Hyperparameter momentumRow{
    "momentum", 0.95, belowOne, "decay rate of the momentum, which is orthogonalized", "momentum"};
static constexpr Hyperparameter decayRow{
    "weight_decay", 0.1, std::nullopt,
    "decoupled weight decay of parameters with two or more dimensions"};
static constexpr Hyperparameter hyperparameters[] = {momentumRow, decayRow};

static constexpr MeanSquare means[] = {{"row", MeanOf::row}};
/// AdamW's flag too, so it is 0.99 at most where variances are bf16.
static constexpr Hyperparameter normalizedHyperparameters[] = {
    momentumRow,
    {"beta2", 0.95, belowOne, "decay rate of the second moments: of AdamW's, and of the rows' mean squares",
     "variance"},
    decayRow};

namespace meshwright::train {
extern const Optimizer adamw;
extern const Optimizer muon = {
    "muon", "orthogonalized momentum for hidden matrices, AdamW for other parameters",
    states,
    hyperparameters,
    {},
    update,
    /*scaledByWidth=*/nullptr,
    Direction::orthogonalized,
    {},
    &adamw};
extern const Optimizer normuon = {
    "normuon",
    "muon with rows of similar size",
    states,
    normalizedHyperparameters,
    {},
    update,
    /*scaledByWidth=*/nullptr,
    Direction::normalized,
    means,
    &adamw};
} // namespace meshwright::train
