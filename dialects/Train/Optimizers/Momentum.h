//===- Momentum.h - what gradient descent with momentum has in common -------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// As torch.optim.SGD without dampening: weight decay is added to the gradient, and the buffer,
// which begins as zeros, is the decayed sum of gradients, not their average.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_DIALECTS_TRAIN_OPTIMIZERS_MOMENTUM_H
#define MESHWRIGHT_DIALECTS_TRAIN_OPTIMIZERS_MOMENTUM_H

#include "MaximalUpdate.h"

namespace meshwright::train {

inline constexpr OptimizerState momentumBuffer[] = {{"momentum", /*isAverageOfGradients=*/true}};

inline constexpr Hyperparameter momentumRows[] = {
    {"momentum", 0.9, belowOne, "momentum: decay rate of the sum of gradients", "momentum"},
    {"weight_decay", 0, std::nullopt,
     "L2 weight decay of parameters with two or more dimensions, added to their gradients"}};

/// The gradient with weight decay, and the sum of gradients that includes it.
struct MomentumStep {
  formula::Expr gradient, momentum;
};

inline MomentumStep momentumStep(const UpdateInputs &in) {
  formula::Expr g = in.clipped();
  if (in.decays)
    g = g + in.decay() * in.parameter;
  return {g, in.scalar("momentum") * in.state("momentum") + g};
}

} // namespace meshwright::train

#endif // MESHWRIGHT_DIALECTS_TRAIN_OPTIMIZERS_MOMENTUM_H
