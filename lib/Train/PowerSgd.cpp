//===- PowerSgd.cpp - low-rank approximations of gradients ------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// PowerSGD (Vogels et al. 2019, algorithm 1). G[d] is block d's share of the gradient, E[d] what earlier
// steps have left out of it, Q the right factor of the last step:
//
//   M[d] = G[d] + E[d]
//   P = sum over d of M[d] Q, its columns orthonormalized
//   Q = sum over d of M[d]^T P
//   gradient = P Q^T, E[d] = M[d] - gradient / blocks
//
// Sums over d are of thin matrices, and where blocks are sharded along the data axes only these are sent.
// The paper's gradients are means over workers where these are sums, which changes neither the approximation nor
// what is left out, relative to the gradient.
//
// Products are of each block, and summed behind it: a device may have several blocks. All layers are one batch of products, so that their factors are summed at once. Orthonormalizing is a repeat over
// columns, with all layers in each.
//
//===----------------------------------------------------------------------===//
#include "PowerSgd.h"
#include "FunctionUtils.h"
#include "MeanSquares.h"

#include <cmath>

using namespace mlir;
using namespace meshwright;
using namespace meshwright::train;

/// The inverse root of what is less is a number, by which only zeros are multiplied.
static constexpr double leastSquare = 1e-37;

bool train::isWorthFactors(VariableOp parameter, int64_t rank) {
  if (!isOneMatrix(parameter))
    return false;
  ArrayRef<int64_t> shape = parameter.getTensorType().getShape().take_back(2);
  return 2 * rank * (shape[0] + shape[1]) < shape[0] * shape[1];
}

RankedTensorType train::factorType(VariableOp parameter, int64_t rank) {
  SmallVector<int64_t> shape(parameter.getTensorType().getShape());
  shape.erase(shape.end() - 2);
  shape.push_back(rank);
  return RankedTensorType::get(shape, Float32Type::get(parameter.getContext()));
}

namespace {
/// Builds ops on matrices, of each layer where these are stacked.
class MatrixBuilder {
public:
  MatrixBuilder(OpBuilder &builder, Location loc, bool stacked) : b(builder), loc(loc), stacked(stacked) {}

  /// A product by the names of indices, with that of layers, l, where there are layers.
  Value contract(StringRef rule, Value x, Value y) {
    std::string text;
    for (char c : rule)
      if (c != 'l')
        text += c;
      else if (stacked)
        text += "l ";
    return ContractOp::create(b, loc, text, x, y, Value());
  }
  Value scale(Value x, double factor) { return ScaleOp::create(b, loc, x, b.getF64FloatAttr(factor)); }
  Value add(Value x, Value y) { return AddOp::create(b, loc, x, y); }
  Value mul(Value x, Value y) { return MulOp::create(b, loc, x, y); }
  Value minus(Value x, Value y) { return add(x, scale(y, -1)); }
  Value clamp(Value x, double least, double most) {
    return ClampOp::create(b, loc, x, b.getF64FloatAttr(least), b.getF64FloatAttr(most));
  }
  Value sum(Value x, int64_t dim) { return ReduceOp::create(b, loc, ReduceKind::Sum, x, {dim}); }
  /// The sum of squares along the last dimension.
  Value squares(Value x) { return sum(mul(x, x), cast<RankedTensorType>(x.getType()).getRank() - 1); }
  Value along(Value x, Type type, int64_t dim) { return BroadcastOp::create(b, loc, type, x, {dim}); }

  OpBuilder &b;
  Location loc;
  bool stacked;
};
} // namespace

/// `x`, vectors in its last dimension, without its part in the span of `basis`, over its norm. Zeros stay zeros.
static Value withoutSpan(Value x, Value basis, MatrixBuilder b) {
  Value inside = b.contract("lr m, lr -> lm", basis, b.contract("lr m, lm -> lr", basis, x));
  Value rest = b.minus(x, inside);
  Value norm = b.clamp(b.squares(rest), leastSquare, INFINITY);
  Value inverse = InverseRootOp::create(b.b, b.loc, norm, b.b.getF64FloatAttr(0));
  return b.mul(rest, b.along(inverse, rest.getType(), cast<RankedTensorType>(rest.getType()).getRank() - 1));
}

/// An orthonormal basis [layers, rank, m] of the span of `columns`, [rank, layers, m], by Gram and Schmidt's method.
/// What depends on the columns before it is left with rounding errors, which a second pass makes orthogonal too. Columns that
/// are left with nothing are zeros.
static Value orthonormal(VariableOp parameter, Value columns, MatrixBuilder b) {
  auto module = parameter->getParentOfType<ModuleOp>();
  auto type = cast<RankedTensorType>(columns.getType());
  int64_t rank = type.getDimSize(0), stacked = parameter.getStacked();
  RankedTensorType column = type.clone(type.getShape().drop_front());
  SmallVector<int64_t> shape(column.getShape());
  shape.insert(shape.end() - 1, rank);
  RankedTensorType basis = type.clone(shape);
  OpBuilder inside(module.getContext());
  auto number = RankedTensorType::get({}, inside.getI32Type());
  func::FuncOp function = createFunction(module, inside, b.loc, (parameter.getSymName() + ".orthonormalize").str(),
                                         {number, basis, column}, {});
  function.setPrivate();
  setRole(function, Role::Update);
  MatrixBuilder in(inside, b.loc, b.stacked);
  Value before = function.getArgument(1), vector = function.getArgument(2);
  for (int pass = 0; pass < 2; ++pass)
    vector = withoutSpan(vector, before, in);
  // Its row of the basis, which is zero there.
  Value isRow = OneHotOp::create(inside, b.loc, RankedTensorType::get({rank}, inside.getF32Type()), function.getArgument(0));
  SmallVector<int64_t> others;
  for (int64_t d = 0; d <= stacked + 1; ++d)
    if (d != stacked)
      others.push_back(d);
  Value rows = BroadcastOp::create(inside, b.loc, basis, isRow, others);
  finishFunction(function, inside, in.add(before, in.mul(rows, in.along(vector, basis, stacked))));
  Value none = zeros(b.b, b.loc, basis);
  auto repeat = RepeatOp::create(b.b, b.loc, basis, function.getSymName(), uint64_t(rank), /*reverse=*/false,
                                 /*indexed=*/true, none, columns, ValueRange{});
  setRole(repeat, Role::Update);
  return repeat.getResult(0);
}

LowRank train::approximate(VariableOp parameter, Value blocks, Value residual, Value factor, OpBuilder &builder) {
  Location loc = nameLocation((parameter.getSymName() + ".approximation").str(), parameter.getLoc());
  MatrixBuilder b(builder, loc, parameter.getStacked());
  auto type = cast<RankedTensorType>(residual.getType());
  int64_t layers = parameter.getStacked(), count = type.getDimSize(layers);
  if (blocks.getType() != type)
    blocks = CastOp::create(builder, loc, type, blocks);
  Value wanted = b.add(blocks, residual);
  Value left = orthonormal(parameter, b.sum(b.contract("ld m n, ln r -> r ld m", wanted, factor), layers + 1), b);
  auto basis = cast<RankedTensorType>(left.getType());
  SmallVector<int64_t> ofBlocks(basis.getShape());
  ofBlocks.insert(ofBlocks.begin() + layers, count);
  Value right = b.contract("ld m n, ld r m -> ld n r", wanted, b.along(left, basis.clone(ofBlocks), layers));
  right = b.sum(right, layers);
  // A column that P has not keeps its factor, with which the next step tries again.
  Value isThere = b.clamp(b.scale(b.squares(left), 2), 0, 1);
  Value one = FillOp::create(builder, loc, isThere.getType(), builder.getF64FloatAttr(1));
  Value kept = b.mul(factor, b.along(b.minus(one, isThere), factor.getType(), layers));
  Value next = b.add(right, kept);
  Value gradient = b.contract("lr m, ln r -> lm n", left, next);
  Value share = b.along(b.scale(gradient, -1.0 / double(count)), type, layers);
  return {gradient, b.add(wanted, share), next};
}
