//===- Contraction.cpp - sums of products as matrix products ----------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Contraction.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::exec;

namespace {
/// A tensor's stride for each factor, -1 where it does not have it.
using Strides = SmallVector<int64_t>;

/// Factors that are one index, major first, and that index's stride in A, B, C.
struct FactorGroup {
  SmallVector<unsigned> factors;
  int64_t size = 1;
  int64_t strides[3] = {0, 0, 0};
};
} // namespace

static Strides stridesOf(const ShardingRule &rule, const TensorFactors &tensor) {
  Strides strides(rule.factors.size(), -1);
  int64_t stride = 1;
  for (const auto &dim : llvm::reverse(tensor.dims))
    for (unsigned f : llvm::reverse(dim)) {
      strides[f] = stride;
      stride *= rule.factors[f].size;
    }
  return strides;
}

/// Makes one index of the group's factors, in the order of tensor `reference`.
static LogicalResult flatten(const ShardingRule &rule, FactorGroup &group, ArrayRef<Strides> tensors,
                             unsigned reference, std::string &error) {
  llvm::stable_sort(group.factors, [&](unsigned a, unsigned b) {
    return tensors[reference][a] > tensors[reference][b];
  });
  for (auto [t, strides] : llvm::enumerate(tensors)) {
    if (group.factors.empty() || strides[group.factors[0]] < 0)
      continue;
    group.strides[t] = strides[group.factors.back()];
    for (auto [major, minor] : llvm::zip(group.factors, llvm::drop_begin(group.factors)))
      if (strides[major] != strides[minor] * rule.factors[minor].size) {
        static constexpr StringLiteral names[] = {"operand 0", "operand 1", "the result"};
        error = "indices " + rule.factors[major].name + " and " + rule.factors[minor].name +
                " are one index of the matrix product but do not follow one another in " +
                names[t].str();
        return failure();
      }
  }
  for (unsigned f : group.factors)
    group.size *= rule.factors[f].size;
  return success();
}

FailureOr<MatrixProduct> meshwright::exec::matrixProductOf(const ShardingRule &rule,
                                                           std::string &error) {
  Strides tensors[] = {stridesOf(rule, rule.operands[0]), stridesOf(rule, rule.operands[1]),
                       stridesOf(rule, rule.results[0])};
  FactorGroup batch, rows, columns, sum;
  for (unsigned f = 0; f < rule.factors.size(); ++f) {
    if (rule.factors[f].size == 1)
      continue;
    bool a = tensors[0][f] >= 0, b = tensors[1][f] >= 0, c = tensors[2][f] >= 0;
    if (a + b + c < 2) {
      error = "index " + rule.factors[f].name + " is in one tensor only; sum or repeat it apart";
      return failure();
    }
    (a && b && c ? batch : a && c ? rows : b && c ? columns : sum).factors.push_back(f);
  }
  if (failed(flatten(rule, batch, tensors, 2, error)) ||
      failed(flatten(rule, rows, tensors, 2, error)) ||
      failed(flatten(rule, columns, tensors, 2, error)) ||
      failed(flatten(rule, sum, tensors, 0, error)))
    return failure();

  MatrixProduct product;
  unsigned a = 0, b = 1, c = 2;
  if (columns.size > 1 && columns.strides[c] != 1) {
    // C^T = B^T A^T has the other index contiguous.
    if (rows.size > 1 && rows.strides[c] != 1) {
      error = "no index of the result's rows or columns is contiguous in it";
      return failure();
    }
    std::swap(a, b);
    std::swap(rows, columns);
    product.swapped = true;
  }
  product.m = rows.size;
  product.n = columns.size;
  product.k = sum.size;
  product.ldc = rows.size > 1 ? rows.strides[c] : columns.size;

  // A matrix with indices `outer` and `inner` of which one is contiguous.
  auto layout = [&](unsigned tensor, const FactorGroup &outer, const FactorGroup &inner, bool &transposed,
                    int64_t &ld) -> LogicalResult {
    if (inner.size == 1 || inner.strides[tensor] == 1) {
      ld = outer.size > 1 ? outer.strides[tensor] : inner.size;
      return success();
    }
    if (outer.size == 1 || outer.strides[tensor] == 1) {
      transposed = true;
      ld = inner.strides[tensor];
      return success();
    }
    error = ("neither index of operand " + Twine(tensor) + " is contiguous").str();
    return failure();
  };
  if (failed(layout(a, rows, sum, product.transA, product.lda)) ||
      failed(layout(b, sum, columns, product.transB, product.ldb)))
    return failure();
  product.batch = batch.size;
  if (batch.size > 1) {
    product.strideA = batch.strides[a];
    product.strideB = batch.strides[b];
    product.strideC = batch.strides[c];
  }
  return product;
}

ProductShape meshwright::exec::shapeOf(const MatrixProduct &product, Type factors, Type result) {
  return {product.transA, product.transB, product.m,
          product.n,      product.k,      product.ldc,
          product.batch,  !factors.isF32() || !result.isF32(), result};
}
