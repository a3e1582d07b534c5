//===- MatmulTiling.h - how a product with narrow types is split ------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_RUNTIME_CPU_KERNELS_MATMULTILING_H
#define MESHWRIGHT_RUNTIME_CPU_KERNELS_MATMULTILING_H

#include "meshwright/runtime/ABI.h"

namespace meshwright::cpu {

/// C is divided into blocks; the sum of each is taken in pieces whose factors are
/// converted to f32 first. Depends on the sizes alone, so that the compiler knows the
/// workspace and results do not depend on threads.
struct MatmulTiling {
  MatmulTiling(int64_t m, int64_t n, int64_t k, int64_t batch);

  /// Largest sizes of a block of C and of a piece of the sum.
  int64_t rows, columns, depth;
  int64_t rowBlocks, columnBlocks;
  int64_t items; ///< blocks of all matrices
  int64_t slots; ///< threads that can work at once
  /// Where one thread's blocks begin, in floats, and the size of all three.
  int64_t aOffset, bOffset, cOffset, scratch;
};

} // namespace meshwright::cpu

#endif // MESHWRIGHT_RUNTIME_CPU_KERNELS_MATMULTILING_H
