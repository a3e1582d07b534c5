//===- SparseModels.cpp - the few elements of a tensor that are kept --------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Interpreter/Model.h"

#include "Train/Train.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

using namespace mlir;
using namespace meshwright;
using namespace meshwright::interp;

static LogicalResult sparsify(train::SparsifyOp op, Operands in, Results &results, RankContext &) {
  Tensor values(op.getValues().getType()), ids(op.getIds().getType()), rest(op.getRest().getType());
  int64_t n = in[0].shape().back(), k = values.shape().back();
  double *kept = values.writeFloats(), *others = rest.writeFloats();
  int64_t *columns = ids.writeIntegers();
  std::vector<int64_t> order(n);
  for (int64_t row = 0; row < in[0].size() / n; ++row, kept += k, columns += k, others += n) {
    const double *x = in[0].floats().data() + row * n;
    std::copy_n(x, n, others);
    bool isFinite = std::all_of(x, x + n, [](double v) { return std::isfinite(v); });
    std::iota(order.begin(), order.end(), 0);
    if (isFinite)
      std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return std::fabs(x[a]) > std::fabs(x[b]); });
    for (int64_t i = 0; i < k; ++i) {
      columns[i] = order[i];
      kept[i] = isFinite ? x[order[i]] : std::numeric_limits<double>::quiet_NaN();
      others[order[i]] = 0;
    }
  }
  results.append({values, ids, rest});
  return success();
}

/// The row of element `i` of a tensor of `shape`, counted without dimension `dim`.
static int64_t rowOf(int64_t i, ArrayRef<int64_t> shape, int64_t dim) {
  int64_t inner = 1;
  for (int64_t size : shape.slice(dim + 1).drop_back())
    inner *= size;
  int64_t row = i / shape.back();
  return row / inner / shape[dim] * inner + row % inner;
}

static LogicalResult densify(train::DensifyOp op, Operands in, Results &results, RankContext &) {
  Tensor result(op.getType());
  double *y = result.writeFloats();
  int64_t n = result.shape().back();
  for (auto [i, id] : llvm::enumerate(in[1].integers()))
    if (id >= 0 && id < n)
      y[rowOf(int64_t(i), in[0].shape(), op.getDim()) * n + id] += in[0].floats()[i];
  results.push_back(result);
  return success();
}

static LogicalResult placeIds(train::PlaceIdsOp op, Operands in, Results &results, RankContext &) {
  Tensor result(op.getType());
  int64_t *places = result.writeIntegers();
  for (auto [i, id] : llvm::enumerate(in[0].integers()))
    places[i] = rowOf(int64_t(i), in[0].shape(), op.getDim()) * int64_t(op.getLength()) + id;
  results.push_back(result);
  return success();
}

void interp::attachSparseModels(MLIRContext *context) {
  attach<train::SparsifyOp, sparsify>(context);
  attach<train::DensifyOp, densify>(context);
  attach<train::PlaceIdsOp, placeIds>(context);
}
