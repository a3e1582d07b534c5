//===- Reference.h - kernel primitives in double precision ------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// Evaluates a decomposed kernel op by op on whole tensors of f64, sharing nothing
// with the planner and the code generator it judges.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_TEST_CODEGEN_REFERENCE_H
#define MESHWRIGHT_TEST_CODEGEN_REFERENCE_H

#include "Train/Train.h"

namespace meshwright::test {

/// Integers are held as their value in a double: i32 fits.
using Values = std::vector<double>;

/// The results of `kernel` for `arguments`.
std::vector<Values> evaluate(mlir::func::FuncOp kernel, const std::vector<Values> &arguments);

} // namespace meshwright::test

#endif // MESHWRIGHT_TEST_CODEGEN_REFERENCE_H
