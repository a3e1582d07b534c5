//===- Products.h - the matrix products of an executable --------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_CODEGEN_CUDA_PRODUCTS_H
#define MESHWRIGHT_CODEGEN_CUDA_PRODUCTS_H

#include "Codegen/CUDA/Alignments.h"

#include <map>
#include <vector>

namespace meshwright::codegen::cuda {

/// The distinct products of all programs, numbered, as MwProduct in ABI.h has them: the
/// runtime asks for their algorithms before the first step.
class ProductTable {
public:
  explicit ProductTable(mlir::ModuleOp module) : alignments(module) {}

  /// The number of a product, new or known; an error for what cuBLASLt is not asked for.
  mlir::FailureOr<int64_t> numberOf(exec::MatmulOp op);

  /// The addresses that mw_product takes, null for none.
  static llvm::SmallVector<mlir::Value> operandsOf(exec::MatmulOp op);

  const std::vector<int64_t> &rows() const { return table; }
  size_t size() const { return numbers.size(); }
  llvm::StringRef locations() const { return callSites; }

private:
  Alignments alignments;
  std::map<std::vector<int64_t>, int64_t> numbers;
  std::vector<int64_t> table;
  std::string callSites;
};

} // namespace meshwright::codegen::cuda

#endif // MESHWRIGHT_CODEGEN_CUDA_PRODUCTS_H
