//===- MatmulMixed.h - matrix products with bf16 and f16 ------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_RUNTIME_CPU_KERNELS_MATMULMIXED_H
#define MESHWRIGHT_RUNTIME_CPU_KERNELS_MATMULMIXED_H

#include "Panels.h"

namespace meshwright::cpu {

/// The arguments of mw_matmul_mixed, and of mw_matmul_fp8.
struct MixedProduct {
  bool transA, transB;
  int64_t m, n, k;
  float alpha, beta;
  int32_t factorType;
  const void *a;
  int64_t lda;
  const void *b;
  int64_t ldb;
  int32_t resultType;
  void *c;
  int64_t ldc, batch, strideA, strideB, strideC;
  int32_t rightType = factorType; ///< of B; another one only of 8 bits
};

/// mw_matmul_mixed with the kernels chosen by the caller, for tests.
void multiplyMixed(const PanelKernels &kernels, int threads, const MixedProduct &product,
                   void *workspace);

} // namespace meshwright::cpu

#endif // MESHWRIGHT_RUNTIME_CPU_KERNELS_MATMULMIXED_H
