//===- LaunchShape.h - how a stage is spread over a GPU's threads -----------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// | shape   | who does what                                                          |
// |---------|------------------------------------------------------------------------|
// | points  | each thread one vector of columns of one row; with sums over everything,|
// |         | each block walks the vectors of one chunk                              |
// | rows    | a warp or a block a row; with sums over rows, each block walks the rows |
// |         | of one chunk and each thread keeps the sums of its columns             |
// | columns | each thread one vector of columns, walking the sequential rows in order |
// | owners  | as columns, but each block adds only rows whose target it owns         |
//
// All depends on shapes alone, so that results have the same bits on every run.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_CODEGEN_CUDA_LAUNCHSHAPE_H
#define MESHWRIGHT_CODEGEN_CUDA_LAUNCHSHAPE_H

#include "Codegen/KernelPlan.h"

namespace meshwright::codegen::cuda {

constexpr int64_t warpSize = 32;

struct LaunchShape {
  enum Kind { Points, Rows, Columns, Owners };
  Kind kind = Points;
  /// Elements in a thread's vector.
  unsigned lanes = 1;
  int64_t blocks = 1, threads = 1;
  /// Rows: threads that share a row; `threads` is a multiple of it.
  int64_t group = 1;
  /// Rows: whether a thread holds all it needs of its row in registers.
  bool inRegisters = false;
  /// Owners: among how many blocks the rows of the target are divided.
  int64_t owners = 1;
};

LaunchShape launchShapeOf(const Stage &stage, const KernelPlan &plan,
                          llvm::ArrayRef<int64_t> alignment);

/// Pieces that `group` threads with vectors of `lanes` need to walk `columns`.
inline int64_t slotsOf(int64_t columns, int64_t group, int64_t lanes) {
  return llvm::divideCeil(columns, group * lanes);
}

} // namespace meshwright::codegen::cuda

#endif // MESHWRIGHT_CODEGEN_CUDA_LAUNCHSHAPE_H
