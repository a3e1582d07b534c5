//===- Matmul.h - matrix products by cuBLASLt -----------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_RUNTIME_CUDA_MATMUL_H
#define MESHWRIGHT_RUNTIME_CUDA_MATMUL_H

#include "cuda/Kernels.h"
#include "cuda/Libraries.h"
#include "meshwright/runtime/cuda/ABI.h"

#include <string>
#include <vector>

namespace meshwright::cuda {

/// The executable's products, each with the algorithm that cuBLASLt's heuristic prefers
/// or that was chosen. All are asked for at the start: one that cuBLASLt has no algorithm
/// for ends the run before it has begun. What cuBLASLt would do behind a product, its epilogue,
/// kernels of the executable's do where it cannot, or where `check` finds it wrong.
class Matmuls {
public:
  explicit Matmuls(const Kernels &kernels);
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
  /// Has `run` made once, on operands that may be overwritten, so that nothing is loaded later,
  /// and an epilogue compared with what kernels make of it. Where the two differ kernels do it
  /// from then on, and the result says why.
  std::string check(int64_t number, void *const *operands, CUstream stream);
  /// ... with an algorithm that is tried, and without what kernels do behind it; false where
  /// cuBLASLt does not run it.
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
    bool byKernels = false; ///< the epilogue
  };
  void prepare(Product &product) const;
  /// Of what `prepare` has made; null where there is one.
  const char *findAlgorithms(const Product &product, int most,
                             std::vector<cublasLtMatmulAlgo_t> &found) const;
  /// The same product without an epilogue, which kernels then do.
  Product withKernels(const Product &product) const;
  void runEpilogue(const Product &product, void *const *operands, CUstream stream) const;
  std::string compare(const Product &product, void *const *operands, CUstream stream) const;
  cublasStatus_t call(const Product &product, const cublasLtMatmulAlgo_t &algorithm,
                      void *const *operands, CUstream stream) const;

  const Kernels &kernels;
  cublasLtHandle_t handle = nullptr;
  std::vector<Product> products;
};

} // namespace meshwright::cuda

#endif // MESHWRIGHT_RUNTIME_CUDA_MATMUL_H
