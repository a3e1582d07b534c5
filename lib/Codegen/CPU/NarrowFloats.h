//===- NarrowFloats.h - bf16, f16 and 8 bits in vector registers ------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// Kernels load and store bf16, f16 and floats of 8 bits and compute in f32. A narrow value is held as
// its bits, i16 or i8: LLVM would otherwise split vectors or call library functions on
// processors without conversions of their own.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_CODEGEN_CPU_NARROWFLOATS_H
#define MESHWRIGHT_CODEGEN_CPU_NARROWFLOATS_H

#include "Codegen/CPU/KernelEmitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

namespace meshwright::codegen::cpu {

/// Whether elements of this type are held as their bits.
bool isNarrowFloat(mlir::Type element);

/// What elements of a type are in registers: i16 for bf16 and f16, i8 for floats of 8 bits.
mlir::Type registerType(mlir::Type element);

/// The numbers that `bits` (scalar or vector) are as `from`, in f32. Exact.
mlir::Value extendBits(mlir::OpBuilder &b, mlir::Location loc, mlir::FloatType from,
                       mlir::Value bits, const VectorTarget &target);

/// f32 rounded to `to`, to nearest, ties to even, NaN kept, as bits. What is too large becomes infinite, or
/// NaN where the type has no infinity. A processor's
/// own conversion to bf16 takes subnormal numbers for zero.
mlir::Value roundToBits(mlir::OpBuilder &b, mlir::Location loc, mlir::FloatType to,
                        mlir::Value value, const VectorTarget &target);

} // namespace meshwright::codegen::cpu

#endif // MESHWRIGHT_CODEGEN_CPU_NARROWFLOATS_H
