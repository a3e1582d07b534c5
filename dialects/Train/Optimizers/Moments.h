//===- Moments.h - the step of Adam and AdamW -------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// Kingma and Ba 2015: both moments are corrected for their start at zero, eps is outside of the
// root.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_DIALECTS_TRAIN_OPTIMIZERS_MOMENTS_H
#define MESHWRIGHT_DIALECTS_TRAIN_OPTIMIZERS_MOMENTS_H

#include "MaximalUpdate.h"

namespace meshwright::train {

inline constexpr OptimizerState moments[] = {
    {"momentum", /*isAverageOfGradients=*/true, /*isGradientOffset=*/false, /*isPositive=*/false, /*decay=*/"beta1"},
    {"variance", /*isAverageOfGradients=*/false, /*isGradientOffset=*/false, /*isPositive=*/true}};
inline constexpr Hyperparameter beta1Row{
    "beta1", 0.9, belowOne, "decay rate of the first moment (moving average of gradients)"},
    beta2Row{"beta2", 0.95, belowOne,
             "decay rate of the second moment (moving average of squared gradients)", "variance"},
    epsRow{"eps", 1e-8, std::nullopt, "added to the square root of the second moment"};
inline constexpr BiasCorrection momentCorrections[] = {{"bias_correction1", "beta1"},
                                                       {"bias_correction2", "beta2"}};

/// `from` after a step along the moments of the gradients up to `gradient`.
inline Updated momentStep(const UpdateInputs &in, formula::Expr from, formula::Expr gradient) {
  using namespace formula;
  Expr beta1 = in.scalar("beta1"), beta2 = in.scalar("beta2");
  Expr m = beta1 * in.state("momentum") + (1.0 - beta1) * gradient;
  Expr v = beta2 * in.state("variance") + (1.0 - beta2) * (gradient * gradient);
  Expr root = sqrt(v) * (1.0 / sqrt(in.scalar("bias_correction2"))) + in.scalar("eps");
  Expr step = in.lr / in.scalar("bias_correction1") * m / root;
  return {from - step, {m, v}};
}

} // namespace meshwright::train

#endif // MESHWRIGHT_DIALECTS_TRAIN_OPTIMIZERS_MOMENTS_H
