//===- OneBit.cpp - signs of gradients ----------------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// 1-bit Adam (Tang et al. 2021, algorithm 1), of which 1-bit SGD (Seide et al. 2014) is the case without an average. G[d] is block d's
// share of the gradient, m the optimizer's average of gradients with decay b, E[d] and S what earlier steps have left out:
//
//   M[d] = (1 - b) G[d] + b m / blocks + E[d]
//   E[d] = M[d] - signs(M[d])
//   T = sum over d of signs(M[d]) + S
//   S = T - signs(T)
//   m' = signs(T), gradient = (m' - b m) / (1 - b)
//
// signs() has the sign of each element, and as magnitude the mean of those of its group, which the residual that is left is smallest
// with. AdamW computes m' of that gradient. The paper calls E the worker's error and S the server's: each device adds a part of
// all blocks. It scales whole tensors; groups are parts of rows, so that a device with a part of a matrix computes what others would.
//
//===----------------------------------------------------------------------===//
#include "OneBit.h"
#include "FunctionUtils.h"
#include "MeanSquares.h"
#include "Train/TensorType.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::train;

/// The length of a group: the largest that divides a row, is at most 512 and has whole bytes of signs; 0 if there is none.
static int64_t bytesGroupOf(int64_t row) {
  for (int64_t length = std::min<int64_t>(row, 512) / 8 * 8; length > 0; length -= 8)
    if (row % length == 0)
      return length;
  return 0;
}

bool train::hasRowsOfSigns(VariableOp parameter) {
  return isOneMatrix(parameter) && bytesGroupOf(parameter.getTensorType().getShape().back()) > 0;
}

namespace {
/// Builds the signs of tensors whose last dimension is a row of the parameter.
class SignBuilder {
public:
  SignBuilder(OpBuilder &builder, Location loc, int64_t row) : b(builder), loc(loc), length(bytesGroupOf(row)) {}

  struct Signs {
    Value bits, scales;
  };

  Signs of(Value x) {
    RankedTensorType type = tensor(x);
    Value groups = reshape(x, inGroups(type, {length}));
    Value bytes = reshape(x, inGroups(type, {length / 8, 8}));
    auto bits = RankedTensorType::get(tensor(bytes).getShape().drop_back(), b.getI8Type());
    auto scales = type.clone(tensor(groups).getShape().drop_back());
    return {SignBitsOp::create(b, loc, bits, bytes), MagnitudeOp::create(b, loc, scales, groups)};
  }
  Value numbers(Signs signs, RankedTensorType type) {
    Value y = SignsOp::create(b, loc, type.clone(inGroups(type, {length / 8, 8})), signs.bits, signs.scales);
    return reshape(y, type.getShape());
  }
  /// The sum of all numbers over `dim`, which `type` does not have.
  Value sum(Signs signs, RankedTensorType type, int64_t dim) {
    Value y = SumSignsOp::create(b, loc, type.clone(inGroups(type, {length / 8, 8})), signs.bits, signs.scales, dim);
    return reshape(y, type.getShape());
  }
  Value minus(Value x, Value y) { return AddOp::create(b, loc, x, scale(y, -1)); }
  Value scale(Value x, double factor) { return ScaleOp::create(b, loc, x, b.getF64FloatAttr(factor)); }

private:
  SmallVector<int64_t> inGroups(RankedTensorType type, ArrayRef<int64_t> group) {
    SmallVector<int64_t> shape(type.getShape());
    shape.back() /= length;
    llvm::append_range(shape, group);
    return shape;
  }
  Value reshape(Value x, ArrayRef<int64_t> shape) { return ReshapeOp::create(b, loc, tensor(x).clone(shape), x); }

  OpBuilder &b;
  Location loc;
  int64_t length;
};
} // namespace

OneBit train::signsOf(VariableOp parameter, Value blocks, Value residual, Value serverResidual, AverageOfGradients average,
                      OpBuilder &b) {
  Location loc = nameLocation((parameter.getSymName() + ".signs").str(), parameter.getLoc());
  RankedTensorType type = tensor(residual), whole = tensor(serverResidual);
  int64_t dim = parameter.getStacked();
  SignBuilder signs(b, loc, whole.getShape().back());
  Value wanted = blocks;
  if (wanted.getType() != type)
    wanted = CastOp::create(b, loc, type, wanted);
  if (average.value) {
    Value share = signs.scale(average.value, 1.0 / double(type.getDimSize(dim)));
    wanted = LerpOp::create(b, loc, wanted, BroadcastOp::create(b, loc, type, share, {dim}), average.decay);
  }
  wanted = AddOp::create(b, loc, wanted, residual);
  SignBuilder::Signs sent = signs.of(wanted);
  Value total = AddOp::create(b, loc, signs.sum(sent, whole, dim), serverResidual);
  Value result = signs.numbers(signs.of(total), whole);
  OneBit made{result, signs.minus(wanted, signs.numbers(sent, type)), signs.minus(total, result)};
  if (average.value) {
    Value kept = MulOp::create(b, loc, average.value, average.decay);
    Value one = FillOp::create(b, loc, average.decay.getType(), b.getF64FloatAttr(1));
    made.gradient = UnscaleOp::create(b, loc, signs.minus(result, kept), signs.minus(one, average.decay));
  }
  return made;
}
