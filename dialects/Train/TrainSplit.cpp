//===- TrainSplit.cpp - ops that need an index whole, as sums over it -------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// What runs where the last dimension is sharded over devices: each reduction below
// becomes a partial value that is completed before its use. Means are sums of
// scaled elements, so that no work is left between a reduction and the next pass
// over the rows. Narrow operands are computed with in f32 as the ops themselves
// do, and results rounded once.
//
//===----------------------------------------------------------------------===//
#include "Train/Train.h"
#include "Train/TensorType.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::train;

namespace {
/// Builds ops on tensors of one shape and on one value a row of it.
class Rows {
public:
  Rows(OpBuilder &b, Location loc, Value like) : b(b), loc(loc), type(wideType(like)) {}

  /// An operand in f32 at least.
  Value operand(Value x) { return cast(x, wideType(x)); }
  /// A value as the op's result, which may be narrower.
  Value result(Value x, Value result) { return cast(x, tensor(result)); }

  Value add(Value x, Value y) { return AddOp::create(b, loc, x, y); }
  Value mul(Value x, Value y) { return MulOp::create(b, loc, x, y); }
  Value scale(Value x, double by) { return ScaleOp::create(b, loc, x, b.getF64FloatAttr(by)); }
  Value sub(Value x, Value y) { return add(x, scale(y, -1)); }
  Value exp(Value x) { return ExpOp::create(b, loc, x); }
  /// Over the last dimension.
  Value reduce(ReduceKind kind, Value x) {
    return ReduceOp::create(b, loc, kind, x, {type.getRank() - 1});
  }
  Value mean(Value x) {
    return reduce(ReduceKind::Sum, scale(x, 1 / double(type.getShape().back())));
  }
  /// A value a row, at each of the row's elements.
  Value wide(Value row) { return BroadcastOp::create(b, loc, type, row, {type.getRank() - 1}); }
  /// Over all dimensions but the last.
  Value overRows(Value x) {
    if (type.getRank() == 1)
      return x;
    return ReduceOp::create(b, loc, ReduceKind::Sum, x,
                            llvm::to_vector(llvm::seq<int64_t>(0, type.getRank() - 1)));
  }

  OpBuilder &b;
  Location loc;
  RankedTensorType type;

private:
  static RankedTensorType wideType(Value x) {
    return withElementType(x.getType(), atLeastF32(tensor(x).getElementType()));
  }
  Value cast(Value x, RankedTensorType to) {
    Type type = withElementType(x.getType(), to.getElementType());
    return type == x.getType() ? x : Value(CastOp::create(b, loc, type, x));
  }
};

/// A row minus its mean (of LayerNorm) times 1 / its deviation. Values of x's shape
/// are made anew wherever they are used: only one per row passes from one kernel,
/// which a reduction ends, to the next.
class Normal {
public:
  Normal(Rows &r, Value x, const APFloat &eps, bool centered) : r(r), x(x) {
    if (centered)
      mean = r.mean(r.operand(x));
    deviation = InverseRootOp::create(r.b, r.loc, r.mean(r.mul(center(), center())),
                                      r.b.getF64FloatAttr(eps.convertToDouble()));
  }

  Value center() { return mean ? r.sub(r.operand(x), r.wide(mean)) : r.operand(x); }
  Value inverseDeviation() { return r.wide(deviation); }
  Value value() { return r.mul(center(), inverseDeviation()); }

private:
  Rows &r;
  Value x, mean, deviation;
};
} // namespace

SmallVector<Value> LayerNormOp::split(OpBuilder &b) {
  Rows r(b, getLoc(), getX());
  Normal z(r, getX(), getEps(), true);
  Value scaled = r.mul(z.value(), r.operand(getWeight()));
  return {r.result(r.add(scaled, r.operand(getBias())), getY())};
}

SmallVector<Value> RmsNormOp::split(OpBuilder &b) {
  Rows r(b, getLoc(), getX());
  Normal z(r, getX(), getEps(), false);
  return {r.result(r.mul(z.value(), r.operand(getWeight())), getY())};
}

/// With z the normal and g = dy weight: dx = (g - mean(g) - z mean(g z)) / deviation.
static Value inputGradient(Rows &r, Normal &z, Value dy, Value weight, bool centered) {
  auto g = [&] { return r.mul(r.operand(dy), r.operand(weight)); };
  Value along = r.mul(z.value(), r.wide(r.mean(r.mul(g(), z.value()))));
  Value rest = r.sub(g(), centered ? r.add(along, r.wide(r.mean(g()))) : along);
  return r.mul(rest, z.inverseDeviation());
}

SmallVector<Value> LayerNormGradOp::split(OpBuilder &b) {
  Rows r(b, getLoc(), getX());
  Normal z(r, getX(), getEps(), true);
  return {r.result(inputGradient(r, z, getDy(), getWeight(), true), getDx()),
          r.result(r.overRows(r.mul(r.operand(getDy()), z.value())), getDweight()),
          r.result(r.overRows(r.operand(getDy())), getDbias())};
}

SmallVector<Value> RmsNormGradOp::split(OpBuilder &b) {
  Rows r(b, getLoc(), getX());
  Normal z(r, getX(), getEps(), false);
  return {r.result(inputGradient(r, z, getDy(), getWeight(), false), getDx()),
          r.result(r.overRows(r.mul(r.operand(getDy()), z.value())), getDweight())};
}

SmallVector<Value> CrossEntropyOp::split(OpBuilder &b) {
  Rows r(b, getLoc(), getLogits());
  auto logits = [&] { return r.operand(getLogits()); };
  Value most = r.reduce(ReduceKind::Max, logits());
  Value sum = r.reduce(ReduceKind::Sum, r.exp(r.sub(logits(), r.wide(most))));
  Value picked = PickOp::create(b, getLoc(), logits(), getTargets());
  Value lse = r.add(most, LogOp::create(b, getLoc(), sum));
  auto loss = TokenLossOp::create(b, getLoc(), lse, picked, getTargets(),
                                  b.getI64IntegerAttr(r.type.getShape().back()), getScaleAttr(),
                                  getPerTokenAttr());
  return {loss.getLoss(), loss.getLse()};
}
