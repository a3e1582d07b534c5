//===- MeanSquares.cpp - directions from averages of mean squares -----------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// Reductions over rows, columns and matrices of all layers at once, which the passes behind shard as they
// shard the gradient: along a sharded dimension a device sums its part, and the sums, which are small, are
// added.
//
// Padding has to stay zero, so averages leave out the number that Adafactor adds to squares. Weights of an
// average add up to 1 from the first update on, so it is added to the averages instead.
//
//===----------------------------------------------------------------------===//
#include "MeanSquares.h"

#include "llvm/ADT/STLExtras.h"

#include <cmath>

using namespace mlir;
using namespace meshwright;
using namespace meshwright::train;

/// Of Shazeer and Stern 2018 (section 8), and of NorMuon's implementation.
static constexpr double leastSize = 1e-3, addedToRoots = 1e-10;
/// With it the inverse root of 0 is a number, by which only zeros are multiplied.
static constexpr double leastMean = 1e-37;

int64_t train::countsOf(VariableOp parameter) {
  return std::max(parameter.getCounts(), parameter.getNumbered());
}

bool train::isOneMatrix(VariableOp parameter) {
  return parameter.getTensorType().getRank() == int64_t(parameter.getStacked()) + 2 &&
         countsOf(parameter) == int64_t(parameter.getStacked());
}

static bool isMatrix(VariableOp parameter) {
  return parameter.getTensorType().getRank() - countsOf(parameter) >= 2;
}

SmallVector<MeanSquare> train::meansOf(const Optimizer &optimizer, VariableOp parameter) {
  return llvm::filter_to_vector(optimizer.means, [&](const MeanSquare &mean) {
    return isMatrix(parameter) == (mean.of != MeanOf::element);
  });
}

RankedTensorType train::meanType(VariableOp parameter, MeanOf of) {
  SmallVector<int64_t> shape(parameter.getTensorType().getShape());
  if (of == MeanOf::row)
    shape[shape.size() - 1] = 1;
  if (of == MeanOf::column)
    shape[shape.size() - 2] = 1;
  return RankedTensorType::get(shape, Float32Type::get(parameter.getContext()));
}

namespace {
/// Builds ops on tensors of a parameter's shape, and on those that lack some of its last dimensions.
class MatrixOps {
public:
  MatrixOps(VariableOp parameter, OpBuilder &builder)
      : b(builder), loc(parameter.getLoc()), rank(parameter.getTensorType().getRank()) {
    for (int64_t d = countsOf(parameter); d < rank; ++d)
      all.push_back(d);
  }

  Value mul(Value x, Value y) { return MulOp::create(b, loc, x, y); }
  Value square(Value x) { return mul(x, x); }
  Value scale(Value x, double factor) {
    return factor == 1 ? x : Value(ScaleOp::create(b, loc, x, b.getF64FloatAttr(factor)));
  }
  Value lerp(Value from, Value to, Value weight) { return LerpOp::create(b, loc, from, to, weight); }
  Value plus(Value x, Value y) { return AddOp::create(b, loc, x, y); }
  Value plus(Value x, double constant) {
    return plus(x, FillOp::create(b, loc, x.getType(), b.getF64FloatAttr(constant)));
  }
  Value clamp(Value x, double least) {
    return ClampOp::create(b, loc, x, b.getF64FloatAttr(least), b.getF64FloatAttr(INFINITY));
  }
  Value inverseRoot(Value x) { return InverseRootOp::create(b, loc, x, b.getF64FloatAttr(leastMean)); }
  Value root(Value x) { return mul(x, inverseRoot(x)); }

  Value sum(Value x, ArrayRef<int64_t> dims) {
    return dims.empty() ? x : Value(ReduceOp::create(b, loc, ReduceKind::Sum, x, dims));
  }
  Value mean(Value x, ArrayRef<int64_t> dims) {
    double count = 1;
    for (int64_t d : dims)
      count *= double(cast<RankedTensorType>(x.getType()).getDimSize(d));
    return scale(sum(x, dims), 1 / count);
  }
  /// A factor of `like`, along whose dimensions `dims` it is repeated. Products take scalars as they are.
  Value broadcast(Value x, Value like, ArrayRef<int64_t> dims) {
    bool isScalar = cast<RankedTensorType>(x.getType()).getRank() == 0;
    return isScalar || dims.empty() ? x : Value(BroadcastOp::create(b, loc, like.getType(), x, dims));
  }
  /// Without dimension `dim`, of one element, and with it again.
  Value without(Value x, int64_t dim) { return sum(x, {dim}); }
  Value with(Value x, int64_t dim) {
    SmallVector<int64_t> shape(cast<RankedTensorType>(x.getType()).getShape());
    shape.insert(shape.begin() + dim, 1);
    auto type = cast<RankedTensorType>(x.getType()).clone(shape);
    return BroadcastOp::create(b, loc, type, x, dim);
  }

  OpBuilder &b;
  Location loc;
  int64_t rank;
  SmallVector<int64_t> all; ///< the dimensions of a matrix or vector
};
} // namespace

Direct train::factoredDirection(VariableOp parameter, Value gradient, ArrayRef<Value> averages,
                                const FactoredInputs &inputs, OpBuilder &builder) {
  MatrixOps b(parameter, builder);
  int64_t row = b.rank - 2, column = b.rank - 1;
  Value squares = b.square(gradient), direction;
  SmallVector<Value> updated;
  if (isMatrix(parameter)) {
    Value rows = b.lerp(b.without(averages[0], column), b.mean(squares, {column}), inputs.weight);
    Value columns = b.lerp(b.without(averages[1], row), b.mean(squares, {row}), inputs.weight);
    updated = {b.with(rows, column), b.with(columns, row)};
    // An estimate of a square is the product of its row's and column's over the mean of all.
    Value root = b.root(b.plus(b.mean(rows, {row}), inputs.eps));
    Value ofRow = b.mul(b.inverseRoot(b.plus(rows, inputs.eps)), b.broadcast(root, rows, {row}));
    Value ofColumn = b.inverseRoot(b.plus(columns, inputs.eps));
    direction = b.mul(b.mul(gradient, b.broadcast(ofRow, gradient, {column})),
                      b.broadcast(ofColumn, gradient, {row}));
  } else {
    updated = {b.lerp(averages[0], squares, inputs.weight)};
    direction = b.mul(gradient, b.inverseRoot(b.plus(updated[0], inputs.eps)));
  }
  // Its root mean square is at most 1.
  Value factor = b.inverseRoot(b.clamp(b.mean(b.square(direction), b.all), 1));
  if (inputs.scaled)
    factor = b.mul(factor, b.root(b.clamp(b.mean(b.square(inputs.scaled), b.all), leastSize * leastSize)));
  return {b.mul(direction, b.broadcast(factor, direction, b.all)), updated};
}

Direct train::normalizedDirection(VariableOp parameter, Value orthogonal, Value average, Value decay,
                                  double factor, OpBuilder &builder) {
  MatrixOps b(parameter, builder);
  int64_t row = b.rank - 2, column = b.rank - 1;
  Value now = b.mean(b.square(orthogonal), {column});
  Value rows = b.lerp(now, b.without(average, column), decay);
  Value inverse = b.inverseRoot(b.square(b.plus(b.root(rows), addedToRoots)));
  // Squared norms over the number of columns.
  double columns = double(parameter.getTensorType().getDimSize(column));
  Value before = b.sum(now, {row}), after = b.sum(b.mul(now, b.square(inverse)), {row});
  auto norm = [&](Value x) { return b.scale(b.root(x), std::sqrt(columns)); };
  Value ratio = b.mul(norm(before), b.inverseRoot(b.square(b.plus(norm(after), addedToRoots))));
  Value ofRow = b.mul(b.scale(inverse, factor), b.broadcast(ratio, inverse, {row}));
  return {b.mul(orthogonal, b.broadcast(ofRow, orthogonal, {column})), {b.with(rows, column)}};
}
