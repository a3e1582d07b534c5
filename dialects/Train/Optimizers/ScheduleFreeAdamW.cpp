//===- ScheduleFreeAdamW.cpp - AdamW with averaged parameters --------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// Defazio et al. 2024, "The Road Less Scheduled", as schedulefree.AdamWScheduleFree with r = 0. Its x, the
// average of z, is the parameter; z makes AdamW's steps, and gradients are those at y = beta1 x + (1 - beta1) z.
// The state y - x is (1 - beta1) (z - x), so that y needs no input of the step.
//
//===----------------------------------------------------------------------===//
#include "Moments.h"
#include "meshwright/runtime/Averages.h"

using namespace meshwright::train;
using namespace meshwright::train::formula;

static Updated update(const UpdateInputs &in) {
  Expr x = in.parameter, ahead = in.state("y_minus_x"), g = in.clipped();
  Expr beta1 = in.scalar("beta1"), beta2 = in.scalar("beta2"), c = in.scalar(meshwright::updateWeight);
  Expr v = beta2 * in.state("variance") + (1.0 - beta2) * (g * g);
  Expr root = sqrt(v) * (1.0 / sqrt(in.scalar("bias_correction2"))) + in.scalar("eps");
  Expr step = g / root;
  if (in.decays)
    step = step + in.decay() * (x + ahead);
  Expr share = 1.0 - beta1;                       // of z in y
  Expr moved = ahead - share * in.lr * step;      // share (z - x) with the new z
  return {x + c / share * moved, {v, (1.0 - c) * moved}};
}

static constexpr OptimizerState states[] = {
    {"variance"},
    {"y_minus_x", /*isAverageOfGradients=*/false, /*isGradientOffset=*/true}};

static constexpr Hyperparameter hyperparameters[] = {
    {"beta1", 0.9, belowOne,
     "share of the averaged parameters in those at which gradients are taken"},
    beta2Row,
    epsRow,
    {"weight_decay", 0.1, std::nullopt,
     "decoupled weight decay of parameters with two or more dimensions"},
    {meshwright::updateWeightPower, 2, std::nullopt,
     "exponent of the largest learning rate so far, which weighs an update in the average"}};

static constexpr BiasCorrection corrections[] = {{"bias_correction2", "beta2"}};

namespace meshwright::train {
extern const Optimizer scheduleFreeAdamw = {
    "schedule-free-adamw",
    "AdamW whose parameters are averages over all steps, which take the place of a decaying learning rate",
    states,
    hyperparameters,
    corrections,
    update};
} // namespace meshwright::train
