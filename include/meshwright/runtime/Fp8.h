//===- Fp8.h - the part of the ABI that is of 8-bit floats ----------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_RUNTIME_FP8_H
#define MESHWRIGHT_RUNTIME_FP8_H

#include "meshwright/runtime/ABI.h"

#ifdef __cplusplus
extern "C" {
#endif

/// More of MwElementType. MW_F8E4M3 has no infinities (f8E4M3FN in MLIR): exponent 15 with digits 7 is NaN.
enum { MW_F8E4M3 = 5, MW_F8E5M2 = 6 };

/// mw_matmul_mixed where factors are of 8 bits, each of its own type and with a scale:
/// C = *scaleA * *scaleB * op(A) op(B) + beta * C. All products of such numbers are exact in f32. The
/// workspace is as large as that of mw_matmul_mixed.
void mw_matmul_fp8(MwContext *context, int32_t transA, int32_t transB, int64_t m, int64_t n,
                   int64_t k, int32_t typeA, const void *a, int64_t lda, const float *scaleA,
                   int32_t typeB, const void *b, int64_t ldb, const float *scaleB, float beta,
                   int32_t resultType, void *c, int64_t ldc, int64_t batch, int64_t strideA,
                   int64_t strideB, int64_t strideC, void *workspace);

#ifdef __cplusplus
} // extern "C"
#endif

#endif // MESHWRIGHT_RUNTIME_FP8_H
