//===- VectorMath.h - elementary functions on vectors -----------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_CODEGEN_CPU_VECTORMATH_H
#define MESHWRIGHT_CODEGEN_CPU_VECTORMATH_H

#include "mlir/IR/BuiltinOps.h"

namespace meshwright::codegen::cpu {

/// Rewrites f32 math.exp, log, tanh and erf as arithmetic, on vectors and scalars.
void expandMath(mlir::ModuleOp module);

} // namespace meshwright::codegen::cpu

#endif // MESHWRIGHT_CODEGEN_CPU_VECTORMATH_H
