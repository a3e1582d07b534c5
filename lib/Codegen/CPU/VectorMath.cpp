//===- VectorMath.cpp - elementary functions on vectors ---------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Codegen/CPU/VectorMath.h"

#include "mlir/Dialect/Math/Transforms/Passes.h"

using namespace mlir;

void meshwright::codegen::cpu::expandMath(ModuleOp module) {
  RewritePatternSet patterns(module.getContext());
  populateMathPolynomialApproximationPatterns(
      patterns, [](StringRef name) { return name != "math.sin" && name != "math.cos"; });
  (void)applyPatternsGreedily(module, std::move(patterns));
}
