//===- GradientCompression.h - what --grad-compression says ------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_GRADIENTCOMPRESSION_H
#define MESHWRIGHT_GRADIENTCOMPRESSION_H

#include "meshwright/OptionValues.h"

namespace meshwright {
/// What the states are called behind their parameter's name: what is left out of each block and, with signs, of their sum, and PowerSGD's
/// factor of the last step.
inline constexpr char gradientResidualState[] = "grad_residual", gradientServerResidualState[] = "grad_server_residual",
                      gradientFactorState[] = "grad_factor";

/// Gradients that devices send each other with error feedback: by a low-rank approximation (PowerSGD, Vogels et al. 2019), their
/// largest elements alone (top-k, Aji and Heafield 2017), or signs (1-bit Adam, Tang et al. 2021).
struct GradientCompression {
  int64_t rank = 0;   ///< of the approximation of a matrix; 0: none is approximated
  double density = 0; ///< the share of elements that are sent; 0: all are
  bool signs = false; ///< whether signs are sent, of the optimizer's average of gradients where it has one
  int64_t blocks = 0; ///< parts of the batch whose errors are kept apart; 0: one for each data-parallel rank

  explicit operator bool() const { return rank > 0 || density > 0 || signs; }
};
llvm::Error parseOption(llvm::StringRef text, GradientCompression &compression);
std::string optionText(const GradientCompression &compression);

} // namespace meshwright

MESHWRIGHT_PASS_OPTION(::meshwright::GradientCompression)

#endif // MESHWRIGHT_GRADIENTCOMPRESSION_H
