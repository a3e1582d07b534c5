//===- Arithmetic.h - ops on the values of all threads ----------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_TEST_CODEGEN_CUDA_ARITHMETIC_H
#define MESHWRIGHT_TEST_CODEGEN_CUDA_ARITHMETIC_H

#include "mlir/Dialect/LLVMIR/LLVMTypes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Operation.h"

#include <vector>

namespace meshwright::test {

/// One value of every thread: `width` elements each, or members, as their bits.
struct Lanes {
  Lanes(mlir::Type type, int64_t threads) {
    if (auto vector = llvm::dyn_cast<mlir::VectorType>(type))
      width = vector.getNumElements();
    else if (auto structure = llvm::dyn_cast<mlir::LLVM::LLVMStructType>(type))
      width = structure.getBody().size();
    bits.resize(threads * width);
  }
  uint64_t *at(int64_t thread) { return &bits[thread * width]; }
  const uint64_t *at(int64_t thread) const { return &bits[thread * width]; }

  unsigned width = 1;
  std::vector<uint64_t> bits;
};

/// Numbers of bf16, f16, f32 and f64, exact.
double toDouble(uint64_t bits, mlir::Type type);

/// Computes `op`, which touches no memory, for all threads; false if it is unknown.
bool compute(mlir::Operation *op, llvm::ArrayRef<const Lanes *> operands,
             llvm::ArrayRef<Lanes *> results, int64_t threads);

} // namespace meshwright::test

#endif // MESHWRIGHT_TEST_CODEGEN_CUDA_ARITHMETIC_H
