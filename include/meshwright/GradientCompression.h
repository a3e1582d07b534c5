//===- GradientCompression.h - what --grad-compression says ------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_GRADIENTCOMPRESSION_H
#define MESHWRIGHT_GRADIENTCOMPRESSION_H

#include "meshwright/OptionValues.h"

namespace meshwright {
/// What the states are called behind their parameter's name: what is left out of each block, and the factor of the last step.
inline constexpr char gradientResidualState[] = "grad_residual", gradientFactorState[] = "grad_factor";

/// Low-rank approximation of gradients with error feedback (PowerSGD, Vogels et al. 2019).
struct GradientCompression {
  int64_t rank = 0;   ///< of the approximation of a matrix; 0: gradients are sent as they are
  int64_t blocks = 0; ///< parts of the batch whose errors are kept apart; 0: one for each data-parallel rank
};
llvm::Error parseOption(llvm::StringRef text, GradientCompression &compression);
std::string optionText(const GradientCompression &compression);

} // namespace meshwright

#endif // MESHWRIGHT_GRADIENTCOMPRESSION_H
