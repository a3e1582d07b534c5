//===- Matmul.h - matrix products by cuBLASLt -----------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_RUNTIME_CUDA_MATMUL_H
#define MESHWRIGHT_RUNTIME_CUDA_MATMUL_H

#include "cuda/Libraries.h"
#include "meshwright/runtime/cuda/ABI.h"

#include <string>
#include <vector>

namespace meshwright::cuda {

/// The executable's products, each with the algorithm that cuBLASLt's heuristic prefers
/// or that was chosen. All are asked for at the start: one that cuBLASLt has no algorithm
/// for ends the run before it has begun.
class Matmuls {
public:
  Matmuls();
  ~Matmuls();
  Matmuls(const Matmuls &) = delete;
  Matmuls &operator=(const Matmuls &) = delete;

  int64_t size() const { return int64_t(products.size()); }
  const MwProduct &shape(int64_t number) const { return products[size_t(number)].shape; }
  /// All that tells a product from others, in words.
  std::string describe(int64_t number) const;
  const char *location(int64_t number) const { return products[size_t(number)].location; }

  /// Product `number` with these operands, as ABI.h has them.
  void run(int64_t number, void *const *operands, CUstream stream);
  /// ... with an algorithm that is tried; false where cuBLASLt does not run it.
  bool tryRun(int64_t number, const cublasLtMatmulAlgo_t &algorithm, void *const *operands,
              CUstream stream);

  /// What the heuristic thinks best, at most `most`, the best first.
  std::vector<cublasLtMatmulAlgo_t> candidates(int64_t number, int most) const;
  /// Which algorithm runs from now on; an Error if cuBLASLt refuses it.
  void choose(int64_t number, const cublasLtMatmulAlgo_t &algorithm);
  const cublasLtMatmulAlgo_t &chosen(int64_t number) const {
    return products[size_t(number)].algorithm;
  }

private:
  struct Product {
    MwProduct shape;
    const char *location;
    cublasLtMatmulDesc_t operation = nullptr;
    cublasLtMatrixLayout_t a = nullptr, b = nullptr, d = nullptr;
    cublasLtMatmulAlgo_t algorithm = {};
  };
  void prepare(Product &product) const;
  cublasStatus_t call(Product &product, const cublasLtMatmulAlgo_t &algorithm,
                      void *const *operands, CUstream stream) const;

  cublasLtHandle_t handle = nullptr;
  std::vector<Product> products;
};

} // namespace meshwright::cuda

#endif // MESHWRIGHT_RUNTIME_CUDA_MATMUL_H
