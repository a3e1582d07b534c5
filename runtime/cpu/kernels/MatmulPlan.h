//===- MatmulPlan.h - how a matrix product is cut into work items ---------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_RUNTIME_CPU_KERNELS_MATMULPLAN_H
#define MESHWRIGHT_RUNTIME_CPU_KERNELS_MATMULPLAN_H

#include <stdint.h>

namespace meshwright::cpu {

/// The arguments of mw_matmul_f32 for one matrix of the batch.
struct Product {
  bool transA, transB;
  int64_t m, n, k;
  float alpha, beta;
  const float *a;
  int64_t lda;
  const float *b;
  int64_t ldb;
  float *c;
  int64_t ldc;
};

/// A part of C that one thread computes.
struct Block {
  int64_t rowBegin, rowEnd, columnBegin, columnEnd;
};

/// Sums over k are made of runs of this many terms, each added to C in turn: long
/// enough that C, which may not fit any cache, is seldom visited. Nothing else
/// decides the order of a sum: any cut into blocks gives the same bits.
constexpr int64_t kDepthBlock = 768;
/// Rows of A packed at a time, for the second-level cache.
constexpr int64_t kRowBlock = 126;
/// Columns of B packed at a time, for the third.
constexpr int64_t kColumnBlock = 768;

/// Floats of packing space a thread needs: A's block, then B's. The slack lets
/// whole vectors be written at the end.
constexpr int64_t kPackedA = kDepthBlock * kRowBlock + 64;
constexpr int64_t kPackedB = kDepthBlock * kColumnBlock + 64;

/// The kernel of one instruction set.
struct MatmulKernel {
  const char *name;
  void (*multiply)(const Product &product, const Block &block, float *packedA, float *packedB);
};

/// Those this machine can run, best first.
const MatmulKernel *const *availableMatmulKernels(int *count);

/// mw_matmul_f32 with the kernel chosen by the caller, for tests.
void multiplyMatrices(const MatmulKernel &kernel, int threads, const Product &first, int64_t batch,
                      int64_t strideA, int64_t strideB, int64_t strideC);

} // namespace meshwright::cpu

#endif // MESHWRIGHT_RUNTIME_CPU_KERNELS_MATMULPLAN_H
