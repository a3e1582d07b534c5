//===- Contraction.h - sums of products as matrix products ------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_LIB_EXEC_CONTRACTION_H
#define MESHWRIGHT_LIB_EXEC_CONTRACTION_H

#include "Exec/Target.h"
#include "Train/ShardingRule.h"

#include <string>

namespace meshwright::exec {

/// The arguments of one batched row-major matrix product.
struct MatrixProduct {
  /// Operand 1 is the left matrix: what the result is transposed of is computed.
  bool swapped = false;
  bool transA = false, transB = false;
  int64_t m = 1, n = 1, k = 1, lda = 1, ldb = 1, ldc = 1;
  int64_t batch = 1, strideA = 0, strideB = 0, strideC = 0;
};

/// How the contraction with this factor table (two operands first, one result)
/// is one matrix product of its operands as they lie in memory, row-major. Rows,
/// columns, summed index and batch may each be several factors if these follow one
/// another in every tensor that has them. Otherwise fails and says which do not.
mlir::FailureOr<MatrixProduct> matrixProductOf(const ShardingRule &rule, std::string &error);

/// What a target is told of such a product of factors and to a result of these element types.
ProductShape shapeOf(const MatrixProduct &product, mlir::Type factors, mlir::Type result);

} // namespace meshwright::exec

#endif // MESHWRIGHT_LIB_EXEC_CONTRACTION_H
