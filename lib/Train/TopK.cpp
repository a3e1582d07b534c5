//===- TopK.cpp - the largest elements of gradients -------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// Top-k sparsification with error feedback (Aji and Heafield 2017; Stich et al. 2018, "mem-SGD"). G[d] is block d's share
// of the gradient, E[d] what earlier steps have left out of it:
//
//   M[d] = G[d] + E[d]
//   gradient = sum over d of top(M[d])
//   E[d] = M[d] - top(M[d])
//
// top() keeps some elements in each group of a row and sets the others to 0. The papers choose among all elements of a matrix. With
// groups it is known how many elements are sent of each part of a matrix, so that a device with a part of it, by tensor
// parallelism or ZeRO, chooses on its own what the others would choose there.
//
//===----------------------------------------------------------------------===//
#include "TopK.h"
#include "FunctionUtils.h"
#include "MeanSquares.h"

#include <cmath>

using namespace mlir;
using namespace meshwright;
using namespace meshwright::train;

/// The length of a group: the largest that divides a row and is at most 512, so that the rows of large matrices have groups for
/// several devices.
static int64_t groupOf(int64_t row) {
  int64_t length = std::min<int64_t>(row, 512);
  while (row % length)
    --length;
  return length;
}

static int64_t keptOf(int64_t group, double density) {
  return std::max<int64_t>(1, std::llround(density * double(group)));
}

bool train::isWorthIds(VariableOp parameter, double density) {
  if (!isOneMatrix(parameter))
    return false;
  int64_t group = groupOf(parameter.getTensorType().getShape().back());
  return 2 * keptOf(group, density) < group;
}

Sparse train::largest(VariableOp parameter, Value blocks, Value residual, double density, OpBuilder &b) {
  Location loc = nameLocation((parameter.getSymName() + ".top_k").str(), parameter.getLoc());
  auto type = cast<RankedTensorType>(residual.getType()), of = parameter.getTensorType();
  if (blocks.getType() != type)
    blocks = CastOp::create(b, loc, type, blocks);
  Value wanted = AddOp::create(b, loc, blocks, residual);
  int64_t length = groupOf(of.getShape().back());
  auto inGroups = [&](RankedTensorType type, int64_t last) {
    SmallVector<int64_t> shape(type.getShape());
    shape.back() /= length;
    shape.push_back(last);
    return RankedTensorType::get(shape, b.getF32Type());
  };
  RankedTensorType groups = inGroups(type, length), kept = inGroups(type, keptOf(length, density));
  Value rows = ReshapeOp::create(b, loc, groups, wanted);
  auto sparse = SparsifyOp::create(b, loc, kept, kept.clone(b.getI32Type()), groups, rows);
  Value sum = DensifyOp::create(b, loc, inGroups(of, length), sparse.getValues(), sparse.getIds(), parameter.getStacked());
  return {ReshapeOp::create(b, loc, withElementType(of, b.getF32Type()), sum), ReshapeOp::create(b, loc, type, sparse.getRest())};
}
