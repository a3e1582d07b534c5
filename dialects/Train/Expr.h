//===- Expr.h - formulas of kernels that read like the mathematics ----------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_DIALECTS_TRAIN_EXPR_H
#define MESHWRIGHT_DIALECTS_TRAIN_EXPR_H

#include "Train/TensorType.h"
#include "Train/Train.h"

namespace meshwright::train::formula {
using mlir::ArrayRef, mlir::Attribute, mlir::DenseElementsAttr, mlir::FloatType, mlir::Location, mlir::OpBuilder,
    mlir::RankedTensorType, mlir::Value;
namespace arith = mlir::arith;
namespace math = mlir::math;

/// Builds expressions over tensors of one shape.
struct Expr {
  OpBuilder *b;
  Location loc;
  Value v;

  Expr with(Value value) const { return {b, loc, value}; }
  /// A constant of this expression's type.
  Expr constant(double value) const {
    auto type = tensor(v);
    Attribute element = mlir::isa<FloatType>(type.getElementType())
                            ? Attribute(b->getFloatAttr(type.getElementType(), value))
                            : Attribute(b->getIntegerAttr(type.getElementType(), int64_t(value)));
    return with(arith::ConstantOp::create(*b, loc, DenseElementsAttr::get(type, element)));
  }
  /// This value repeated along all dimensions of `like` that it has not; its
  /// own are matched from the last, or from the first with `rows`.
  Expr to(Value like, bool rows = false) const {
    auto wide = tensor(like), narrow = tensor(v);
    if (wide.getRank() == narrow.getRank())
      return *this;
    int64_t missing = wide.getRank() - narrow.getRank();
    int64_t first = rows ? narrow.getRank() : 0;
    auto type = RankedTensorType::get(wide.getShape(), narrow.getElementType());
    return with(BroadcastOp::create(*b, loc, type, v,
                                    llvm::to_vector(llvm::seq<int64_t>(first, first + missing))));
  }
  /// Reduced over `dims`. Kernels reduce rows, or over rows, or everything: along rows and over some of them at once is
  /// two reductions.
  Expr over(ArrayRef<int64_t> dims, ReduceKind kind) const {
    Value x = v;
    for (; dims.size() > 1 && dims.back() == tensor(x).getRank() - 1 && int64_t(dims.size()) < tensor(x).getRank();
         dims = dims.drop_back())
      x = ReduceOp::create(*b, loc, kind, x, {dims.back()});
    return with(ReduceOp::create(*b, loc, kind, x, dims));
  }
  /// Reduced over the last dimension, or over all but it.
  Expr overLast(ReduceKind kind = ReduceKind::Sum) const {
    return with(ReduceOp::create(*b, loc, kind, v, {tensor(v).getRank() - 1}));
  }
  Expr overRows() const {
    if (tensor(v).getRank() == 1)
      return *this;
    return with(ReduceOp::create(*b, loc, ReduceKind::Sum, v,
                                 llvm::to_vector(llvm::seq<int64_t>(0, tensor(v).getRank() - 1))));
  }
  Expr overAll() const {
    if (tensor(v).getRank() == 0)
      return *this;
    return with(ReduceOp::create(*b, loc, ReduceKind::Sum, v,
                                 llvm::to_vector(llvm::seq<int64_t>(0, tensor(v).getRank()))));
  }
};

/// `Op` of both; a scalar is repeated for each element of the other.
template <typename Op> Expr combine(Expr x, Expr y) {
  if (tensor(x.v).getRank() == 0)
    x = x.to(y.v);
  if (tensor(y.v).getRank() == 0)
    y = y.to(x.v);
  return x.with(Op::create(*x.b, x.loc, x.v, y.v));
}
inline Expr operator+(Expr x, Expr y) { return combine<arith::AddFOp>(x, y); }
inline Expr operator-(Expr x, Expr y) { return combine<arith::SubFOp>(x, y); }
inline Expr operator*(Expr x, Expr y) { return combine<arith::MulFOp>(x, y); }
inline Expr operator/(Expr x, Expr y) { return combine<arith::DivFOp>(x, y); }
inline Expr operator+(Expr x, double y) { return x + x.constant(y); }
inline Expr operator*(Expr x, double y) { return x * x.constant(y); }
inline Expr operator*(double x, Expr y) { return y.constant(x) * y; }
inline Expr operator-(double x, Expr y) { return y.constant(x) - y; }
inline Expr operator/(double x, Expr y) { return y.constant(x) / y; }

template <typename Op> Expr apply(Expr x) { return x.with(Op::create(*x.b, x.loc, x.v)); }
inline Expr exp(Expr x) { return apply<math::ExpOp>(x); }
inline Expr sqrt(Expr x) { return apply<math::SqrtOp>(x); }
inline Expr sigmoid(Expr x) { return 1.0 / (1.0 - -1.0 * exp(-1.0 * x)); }
inline Expr maximum(Expr x, Expr y) { return x.with(arith::MaximumFOp::create(*x.b, x.loc, x.v, y.v)); }
inline Expr minimum(Expr x, Expr y) { return x.with(arith::MinimumFOp::create(*x.b, x.loc, x.v, y.v)); }
inline Expr greater(Expr x, double y) {
  return x.with(
      arith::CmpFOp::create(*x.b, x.loc, arith::CmpFPredicate::OGT, x.v, x.constant(y).v));
}
inline Expr greater(Expr x, Expr y) {
  return x.with(arith::CmpFOp::create(*x.b, x.loc, arith::CmpFPredicate::OGT, x.v, y.v));
}
inline Expr atLeast(Expr x, double y) {
  return x.with(
      arith::CmpFOp::create(*x.b, x.loc, arith::CmpFPredicate::OGE, x.v, x.constant(y).v));
}
inline Expr select(Expr condition, Expr x, Expr y) {
  return x.with(arith::SelectOp::create(*x.b, x.loc, condition.v, x.v, y.v));
}
inline Expr equal(Expr x, Expr y) {
  return x.with(arith::CmpFOp::create(*x.b, x.loc, arith::CmpFPredicate::OEQ, x.v, y.v));
}

/// 1, -1, or x itself where that is 0 or no number.
inline Expr sign(Expr x) {
  return select(greater(x, 0), x.constant(1), select(greater(x.constant(0), x), x.constant(-1), x));
}

inline Expr expr(OpBuilder &b, Location loc, Value v) { return {&b, loc, v}; }

} // namespace meshwright::train::formula

#endif // MESHWRIGHT_DIALECTS_TRAIN_EXPR_H
