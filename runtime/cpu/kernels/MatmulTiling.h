//===- MatmulTiling.h - how a product with narrow types is split ------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_RUNTIME_CPU_KERNELS_MATMULTILING_H
#define MESHWRIGHT_RUNTIME_CPU_KERNELS_MATMULTILING_H

#include "meshwright/runtime/ABI.h"

namespace meshwright::cpu {

/// Words of a packed line (Panels.h) that are multiplied at once. A sum is taken in pieces of so
/// many on every machine and with every number of threads.
constexpr int64_t kWords = 192;
/// Rows that are packed at once: with as many words they stay in the second-level cache while
/// they meet all columns of a block.
constexpr int64_t kPackedRows = 192;

/// C is divided into blocks, each of which one thread computes in scratch memory of its own.
/// How large they are depends on the number of threads, but no sum does.
struct MatmulTiling {
  /// For as many threads as useful, `threads` at most: the blocks that take the least time and fit
  /// the workspace.
  MatmulTiling(int64_t m, int64_t n, int64_t k, int64_t batch, int64_t threads);
  /// With blocks of at most these sizes.
  MatmulTiling(int64_t m, int64_t n, int64_t k, int64_t batch, int64_t threads, int64_t mostRows,
               int64_t mostColumns);

  int64_t rows, columns; ///< largest sizes of a block
  int64_t rowBlocks, columnBlocks;
  int64_t items; ///< blocks of all matrices
  int64_t team;  ///< threads that work
  /// Where one thread's packed columns and its sums begin, behind the packed rows, and the size of
  /// all three, in floats.
  int64_t columnOffset, sumOffset, scratch;
};

} // namespace meshwright::cpu

#endif // MESHWRIGHT_RUNTIME_CPU_KERNELS_MATMULTILING_H
