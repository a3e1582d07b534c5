//===- Matmul.cpp - matrix products by cuBLASLt ---------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "cuda/Gpu.h"

#include "common/Error.h"
#include "common/Failure.h"

namespace meshwright::cuda {

static cudaDataType_t typeOf(ElementType type) {
  switch (type) {
  case ElementType::F32:
    return CUDA_R_32F;
  case ElementType::BF16:
    return CUDA_R_16BF;
  case ElementType::F16:
    return CUDA_R_16F;
  default:
    fail("cuBLASLt multiplies f32, bf16 and f16, not ", nameOf(type));
  }
}

Matmuls::Matmuls() {
  MW_BLAS(cublasLtCreate, &handle);
  MW_CUDA(cuMemAlloc, &workspace, workspaceBytes);
}

// The process ends with the run: nothing here may fail any more.
Matmuls::~Matmuls() {
  const Blas &blas = Blas::load();
  for (auto &[key, entry] : prepared) {
    blas.cublasLtMatmulDescDestroy(entry.operation);
    for (cublasLtMatrixLayout_t layout : {entry.a, entry.b, entry.c})
      blas.cublasLtMatrixLayoutDestroy(layout);
  }
  blas.cublasLtDestroy(handle);
  Driver::load().cuMemFree(workspace);
}

/// A matrix stored with `rows` rows of `columns`; cuBLASLt sees it column-major, that
/// is, transposed.
static cublasLtMatrixLayout_t layoutOf(ElementType type, int64_t rows, int64_t columns, int64_t ld,
                                       int64_t batch, int64_t stride) {
  cublasLtMatrixLayout_t layout;
  MW_BLAS(cublasLtMatrixLayoutCreate, &layout, typeOf(type), uint64_t(columns), uint64_t(rows), ld);
  auto count = int32_t(batch);
  MW_BLAS(cublasLtMatrixLayoutSetAttribute, layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count,
          sizeof(count));
  MW_BLAS(cublasLtMatrixLayoutSetAttribute, layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET,
          &stride, sizeof(stride));
  return layout;
}

/// Asks for the algorithm. C^T = op(B)^T op(A)^T, so the factors change places.
const Matmuls::Prepared &Matmuls::prepare(const Product &p) {
  auto [place, isNew] = prepared.try_emplace(p.key());
  Prepared &entry = place->second;
  if (!isNew)
    return entry;
  // Without TF32: f32 means f32.
  MW_BLAS(cublasLtMatmulDescCreate, &entry.operation, CUBLAS_COMPUTE_32F, CUDA_R_32F);
  cublasOperation_t first = p.transB ? CUBLAS_OP_T : CUBLAS_OP_N;
  cublasOperation_t second = p.transA ? CUBLAS_OP_T : CUBLAS_OP_N;
  MW_BLAS(cublasLtMatmulDescSetAttribute, entry.operation, CUBLASLT_MATMUL_DESC_TRANSA, &first,
          sizeof(first));
  MW_BLAS(cublasLtMatmulDescSetAttribute, entry.operation, CUBLASLT_MATMUL_DESC_TRANSB, &second,
          sizeof(second));
  entry.a = layoutOf(p.factors, p.transA ? p.k : p.m, p.transA ? p.m : p.k, p.lda, p.batch,
                     p.strideA);
  entry.b = layoutOf(p.factors, p.transB ? p.n : p.k, p.transB ? p.k : p.n, p.ldb, p.batch,
                     p.strideB);
  entry.c = layoutOf(p.result, p.m, p.n, p.ldc, p.batch, p.strideC);

  cublasLtMatmulPreference_t preference;
  MW_BLAS(cublasLtMatmulPreferenceCreate, &preference);
  size_t bytes = workspaceBytes;
  MW_BLAS(cublasLtMatmulPreferenceSetAttribute, preference,
          CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &bytes, sizeof(bytes));
  auto alignment = uint32_t(p.alignment);
  for (cublasLtMatmulPreferenceAttributes_t attribute :
       {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES})
    MW_BLAS(cublasLtMatmulPreferenceSetAttribute, preference, attribute, &alignment,
            sizeof(alignment));
  cublasLtMatmulHeuristicResult_t best;
  int found = 0;
  MW_BLAS(cublasLtMatmulAlgoGetHeuristic, handle, entry.operation, entry.b, entry.a, entry.c,
          entry.c, preference, 1, &best, &found);
  MW_BLAS(cublasLtMatmulPreferenceDestroy, preference);
  if (!found)
    fail("cuBLASLt has no algorithm for a product of ", p.m, " x ", p.k, " and ", p.k, " x ", p.n,
         " in ", nameOf(p.factors));
  entry.algorithm = best.algo;
  return entry;
}

void Matmuls::run(const Product &product, float alpha, const void *a, const void *b, float beta,
                  void *c, CUstream stream) {
  const Prepared &entry = prepare(product);
  MW_BLAS(cublasLtMatmul, handle, entry.operation, &alpha, b, entry.b, a, entry.a, &beta, c,
          entry.c, c, entry.c, &entry.algorithm, reinterpret_cast<void *>(workspace),
          workspaceBytes, stream);
}

/// The largest power of two up to 256 that divides the addresses.
static int64_t commonAlignment(std::initializer_list<const void *> addresses) {
  uintptr_t bits = 256;
  for (const void *address : addresses)
    bits |= reinterpret_cast<uintptr_t>(address);
  return int64_t(bits & -bits);
}

} // namespace meshwright::cuda

using namespace meshwright;

void mw_matmul_mixed(MwContext *context, int32_t transA, int32_t transB, int64_t m, int64_t n,
                     int64_t k, float alpha, int32_t factorType, const void *a, int64_t lda,
                     const void *b, int64_t ldb, float beta, int32_t resultType, void *c,
                     int64_t ldc, int64_t batch, int64_t strideA, int64_t strideB, int64_t strideC,
                     void *) {
  cuda::Gpu::enqueue(context, [&](cuda::Gpu &device) {
    cuda::Product product{transA != 0, transB != 0, m, n, k, lda, ldb, ldc, batch, strideA, strideB,
                          strideC, ElementType(factorType), ElementType(resultType),
                          cuda::commonAlignment({a, b, c})};
    device.matmuls->run(product, alpha, a, b, beta, c, device.stream);
  });
}

void mw_matmul_f32(MwContext *context, int32_t transA, int32_t transB, int64_t m, int64_t n,
                   int64_t k, float alpha, const float *a, int64_t lda, const float *b, int64_t ldb,
                   float beta, float *c, int64_t ldc, int64_t batch, int64_t strideA,
                   int64_t strideB, int64_t strideC) {
  mw_matmul_mixed(context, transA, transB, m, n, k, alpha, MW_F32, a, lda, b, ldb, beta, MW_F32, c,
                  ldc, batch, strideA, strideB, strideC, nullptr);
}
