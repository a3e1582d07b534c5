//===- Fragments.h - what tensor cores multiply ------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// mma.sync.m16n8k16 of bf16 or f16 with sums in f32. Fragments of 16 x 16 and 16 x 8 as the PTX
// ISA has them, for lane 4 g + t: a row operand has rows g and g + 8 and of each columns 2 t,
// 2 t + 1 and eight further; the results rows g and g + 8 with columns 2 t and 2 t + 1; the
// columns' operand column g with the row operand's columns as its rows.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_CODEGEN_CUDA_FRAGMENTS_H
#define MESHWRIGHT_CODEGEN_CUDA_FRAGMENTS_H

#include "Codegen/CUDA/BlockEmitter.h"

#include <array>

namespace meshwright::codegen::cuda {

/// Four registers of two elements each.
using Fragment = std::array<mlir::Value, 4>;

class Fragments {
public:
  /// Rows and depth of a fragment, elements of 16 bytes, of which cp.async copies.
  static constexpr int64_t side = 16, piece = 8;

  Fragments(BlockEmitter &e, mlir::Type element) : e(e), element(element) {}

  /// Four matrices of 8 x 8, whose rows the lanes' addresses begin.
  Fragment load(mlir::Value address, bool transposed);
  /// Adds a product to the four sums of a thread: two of row g and two of row g + 8.
  void multiply(const Fragment &a, mlir::Value b0, mlir::Value b1,
                const std::array<mlir::Value *, 4> &sums);
  /// Begins to copy 16 bytes to shared memory; `size` is 16, or 0 for zeros.
  void copy(mlir::Value to, mlir::Value from, mlir::Value size);
  /// Ends a group of copies, and waits until no more than `groups` of this thread are under way.
  void commit();
  void wait(int64_t groups);

  mlir::VectorType pair(mlir::Type of) const { return mlir::VectorType::get({2}, of); }
  mlir::Value bitcast(mlir::Type type, mlir::Value value);
  /// Two numbers, rounded, as a register.
  mlir::Value pack(mlir::Value x, mlir::Value y);

private:
  BlockEmitter &e;
  mlir::Type element;
};

} // namespace meshwright::codegen::cuda

#endif // MESHWRIGHT_CODEGEN_CUDA_FRAGMENTS_H
