//===- ShapeModels.cpp - ops that move, repeat and sum elements -------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Interpreter/Model.h"

#include "Train/Train.h"

#include <cmath>

using namespace mlir;
using namespace meshwright;
using namespace meshwright::interp;

/// For each element of a tensor of shape `whole`, row-major, its offset in the
/// tensor without the dimensions `dims`.
static std::vector<int64_t> offsetsWithout(ArrayRef<int64_t> whole, ArrayRef<int64_t> dims) {
  std::vector<int64_t> offsets = {0};
  for (int64_t d = 0; d < int64_t(whole.size()); ++d) {
    bool dropped = llvm::is_contained(dims, d);
    std::vector<int64_t> next;
    next.reserve(offsets.size() * whole[d]);
    for (int64_t offset : offsets)
      for (int64_t i = 0; i < whole[d]; ++i)
        next.push_back(dropped ? offset : offset * whole[d] + i);
    offsets = std::move(next);
  }
  return offsets;
}

static LogicalResult reshape(train::ReshapeOp op, Operands in, Results &results, RankContext &) {
  results.push_back(in[0].reshaped(cast<RankedTensorType>(op.getType()).getShape()));
  return success();
}

static LogicalResult slice(train::SliceOp op, Operands in, Results &results, RankContext &) {
  SmallVector<int64_t> sizes(in[0].shape()), offsets(in[0].rank(), 0);
  sizes[op.getDim()] = op.getRows();
  offsets[op.getDim()] = op.getFrom();
  results.push_back(in[0].box(offsets, sizes));
  return success();
}
static LogicalResult pad(train::PadOp op, Operands in, Results &results, RankContext &) {
  Tensor result(op.getType());
  SmallVector<int64_t> offsets(in[0].rank(), 0);
  offsets[op.getDim()] = op.getFrom();
  int64_t value = op.getValue();
  if (result.isFloat())
    std::fill_n(result.writeFloats(), result.size(), double(value));
  else
    std::fill_n(result.writeIntegers(), result.size(), value);
  result.setBox(offsets, in[0]);
  results.push_back(result);
  return success();
}

static LogicalResult dynamicSlice(train::DynamicSliceOp op, Operands in, Results &results,
                                  RankContext &) {
  SmallVector<int64_t> offsets(in[0].rank(), 0);
  SmallVector<int64_t> sizes(cast<RankedTensorType>(op.getType()).getShape());
  int64_t offset = in[1].asInteger(), last = in[0].dim(op.getDim()) - sizes[op.getDim()];
  if (offset < 0 || offset > last)
    return op.emitError() << "begins at " << offset << ", outside of 0 to " << last;
  offsets[op.getDim()] = offset;
  results.push_back(in[0].box(offsets, sizes));
  return success();
}

static LogicalResult transposeBlocks(train::TransposeBlocksOp op, Operands in, Results &results,
                                     RankContext &) {
  const Tensor &x = in[0];
  Tensor result(op.getType());
  int64_t rows = x.dim(0), columns = x.dim(1), block = x.dim(2);
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j)
      for (int64_t k = 0; k < block; ++k) {
        int64_t from = (i * columns + j) * block + k, to = (j * rows + i) * block + k;
        if (x.isFloat())
          result.writeFloats()[to] = x.floats()[from];
        else
          result.writeIntegers()[to] = x.integers()[from];
      }
  results.push_back(result);
  return success();
}

static LogicalResult reduce(train::ReduceOp op, Operands in, Results &results, RankContext &) {
  Tensor result(op.getType());
  bool isSum = op.getKind() == train::ReduceKind::Sum;
  double *out = result.writeFloats();
  if (!isSum)
    std::fill_n(out, result.size(), -INFINITY);
  std::vector<int64_t> offsets = offsetsWithout(in[0].shape(), op.getDims());
  for (auto [offset, value] : llvm::zip(offsets, in[0].floats()))
    out[offset] = isSum ? out[offset] + value : std::max(out[offset], value);
  results.push_back(result);
  return success();
}

static LogicalResult broadcast(train::BroadcastOp op, Operands in, Results &results,
                               RankContext &) {
  Tensor result(op.getType());
  std::vector<int64_t> offsets = offsetsWithout(result.shape(), op.getDims());
  if (result.isFloat()) {
    double *out = result.writeFloats();
    for (auto [i, offset] : llvm::enumerate(offsets))
      out[i] = in[0].floats()[offset];
  } else {
    int64_t *out = result.writeIntegers();
    for (auto [i, offset] : llvm::enumerate(offsets))
      out[i] = in[0].integers()[offset];
  }
  results.push_back(result);
  return success();
}

static LogicalResult fill(train::FillOp op, Operands, Results &results, RankContext &) {
  Tensor result(op.getType());
  std::fill_n(result.writeFloats(), result.size(), op.getValue().convertToDouble());
  results.push_back(result);
  return success();
}

//===--- kernel primitives --------------------------------------------------===//

static LogicalResult iota(train::IotaOp op, Operands, Results &results, RankContext &) {
  Tensor result(op.getType());
  ArrayRef<int64_t> shape = result.shape();
  int64_t inner = product(shape.drop_front(op.getDim() + 1)), size = shape[op.getDim()];
  int64_t *out = result.writeIntegers();
  for (int64_t i = 0; i < result.size(); ++i)
    out[i] = i / inner % size;
  results.push_back(result);
  return success();
}

static LogicalResult gatherRows(train::GatherRowsOp op, Operands in, Results &results,
                                RankContext &) {
  const Tensor &table = in[0];
  Tensor result(op.getType());
  int64_t width = product(result.shape().drop_front(in[1].rank()));
  for (auto [i, id] : llvm::enumerate(in[1].integers())) {
    if (id < 0 || id >= table.size() / width)
      continue; // zeros
    if (table.isFloat())
      std::copy_n(table.floats().data() + id * width, width, result.writeFloats() + i * width);
    else
      std::copy_n(table.integers().data() + id * width, width, result.writeIntegers() + i * width);
  }
  results.push_back(result);
  return success();
}

static LogicalResult scatterRows(train::ScatterRowsOp op, Operands in, Results &results,
                                 RankContext &) {
  Tensor result = op.getInit() ? in[2] : Tensor(op.getType());
  int64_t width = product(result.shape().drop_front());
  double *out = result.writeFloats();
  for (auto [i, id] : llvm::enumerate(in[1].integers()))
    for (int64_t j = 0; j < width && id >= 0 && id < result.dim(0); ++j)
      out[id * width + j] += in[0].floats()[i * width + j];
  results.push_back(result);
  return success();
}

static LogicalResult rotateHalf(train::RotateHalfOp op, Operands in, Results &results,
                                RankContext &) {
  Tensor result(op.getType());
  int64_t n = result.shape().back();
  double *out = result.writeFloats();
  for (int64_t row = 0; row < result.size(); row += n)
    for (int64_t i = 0; i < n / 2; ++i) {
      out[row + i] = -in[0].floats()[row + n / 2 + i];
      out[row + n / 2 + i] = in[0].floats()[row + i];
    }
  results.push_back(result);
  return success();
}

static LogicalResult duplicateHalf(train::DuplicateHalfOp op, Operands in, Results &results,
                                   RankContext &) {
  Tensor result(op.getType());
  int64_t half = in[0].shape().back();
  double *out = result.writeFloats();
  for (int64_t i = 0; i < result.size(); ++i)
    out[i] = in[0].floats()[i / (2 * half) * half + i % half];
  results.push_back(result);
  return success();
}

void interp::attachShapeModels(MLIRContext *context) {
  attach<train::ReshapeOp, reshape>(context);
  attach<train::SliceOp, slice>(context);
  attach<train::PadOp, pad>(context);
  attach<train::DynamicSliceOp, dynamicSlice>(context);
  attach<train::TransposeBlocksOp, transposeBlocks>(context);
  attach<train::ReduceOp, reduce>(context);
  attach<train::BroadcastOp, broadcast>(context);
  attach<train::FillOp, fill>(context);
  attach<train::IotaOp, iota>(context);
  attach<train::GatherRowsOp, gatherRows>(context);
  attach<train::ScatterRowsOp, scatterRows>(context);
  attach<train::RotateHalfOp, rotateHalf>(context);
  attach<train::DuplicateHalfOp, duplicateHalf>(context);
}
