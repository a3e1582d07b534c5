//===- VectorMath.h - elementary functions on vectors -----------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_CODEGEN_VECTORMATH_H
#define MESHWRIGHT_CODEGEN_VECTORMATH_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/BuiltinOps.h"

namespace meshwright::codegen {

/// The flags of generated arithmetic: a product and a sum may become one fused multiply-add.
inline constexpr auto contract = mlir::arith::FastMathFlags::contract;

/// How exp is computed: by arithmetic alone, or from an instruction for powers of two,
/// which math.exp2 becomes.
enum class Exponential { Polynomial, PowerOfTwo };

/// Rewrites f32 math.exp, log, tanh and erf as arithmetic, on vectors and scalars.
void expandMath(mlir::ModuleOp module, Exponential exponential);

/// The same for math.sin and cos of numbers up to 1e9, where there is no libm: the
/// multiple of pi/2 is taken off in f64.
void expandTrigonometry(mlir::ModuleOp module);

} // namespace meshwright::codegen

#endif // MESHWRIGHT_CODEGEN_VECTORMATH_H
