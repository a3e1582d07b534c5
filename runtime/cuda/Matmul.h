//===- Matmul.h - matrix products by cuBLASLt -----------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_RUNTIME_CUDA_MATMUL_H
#define MESHWRIGHT_RUNTIME_CUDA_MATMUL_H

#include "common/ElementType.h"
#include "cuda/Libraries.h"

#include <array>
#include <map>

namespace meshwright::cuda {

/// A product as mw_matmul_mixed describes it, without addresses.
struct Product {
  bool transA, transB;
  int64_t m, n, k, lda, ldb, ldc, batch, strideA, strideB, strideC;
  ElementType factors, result;
  /// Largest power of two, at most 256, that divides all addresses.
  int64_t alignment;

  auto key() const {
    return std::array<int64_t, 16>{transA,  transB,  m,       n,       k,
                                   lda,     ldb,     ldc,     batch,   strideA,
                                   strideB, strideC, int64_t(factors), int64_t(result), alignment, 0};
  }
};

/// Products with the algorithm that cuBLASLt's heuristic prefers, asked for once each.
class Matmuls {
public:
  /// Bytes of scratch memory; NVIDIA's advice for Hopper.
  static constexpr size_t workspaceBytes = 32 << 20;

  Matmuls();
  ~Matmuls();

  /// C = alpha * op(A) * op(B) + beta * C, row-major, sums in f32.
  void run(const Product &product, float alpha, const void *a, const void *b, float beta, void *c,
           CUstream stream);

private:
  struct Prepared {
    cublasLtMatmulDesc_t operation = nullptr;
    cublasLtMatrixLayout_t a = nullptr, b = nullptr, c = nullptr;
    cublasLtMatmulAlgo_t algorithm;
  };
  const Prepared &prepare(const Product &product);

  cublasLtHandle_t handle = nullptr;
  CUdeviceptr workspace = 0;
  std::map<std::array<int64_t, 16>, Prepared> prepared;
};

} // namespace meshwright::cuda

#endif // MESHWRIGHT_RUNTIME_CUDA_MATMUL_H
