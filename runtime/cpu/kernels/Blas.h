//===- Blas.h - the library of matrix products ----------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_RUNTIME_CPU_KERNELS_BLAS_H
#define MESHWRIGHT_RUNTIME_CPU_KERNELS_BLAS_H

#include <cstdint>

namespace meshwright::cpu {

/// C = alpha * op(A) op(B) + beta * C on the calling thread, with operands as
/// mw_matmul_f32 has them.
void multiply(bool transA, bool transB, int64_t m, int64_t n, int64_t k, float alpha,
              const float *a, int64_t lda, const float *b, int64_t ldb, float beta, float *c,
              int64_t ldc);

} // namespace meshwright::cpu

#endif // MESHWRIGHT_RUNTIME_CPU_KERNELS_BLAS_H
