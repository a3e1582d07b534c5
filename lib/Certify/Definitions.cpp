//===- Definitions.cpp - ops as sums and maxima over rows --------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Certify/Definitions.h"

#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::certify;

using E = const Expression *;

namespace {
/// Makes expressions of ops on tensors of one shape, whose last dimension is a row, and on one
/// value for each row.
class Rows {
public:
  Rows(Operation *op, E like, Checker &checker)
      : op(op), checker(checker), b(op->getContext()), whole(like->shape), rows(like->shape) {
    rows.pop_back();
  }

  /// In f32 at least, as the op computes. A constant is the same with any extents.
  E operand(E x) {
    if (x->name == "of extents" && fillOf(x->operands[0]))
      x = x->operands[0];
    if (std::optional<double> constant = fillOf(x))
      return checker.fill(x->location, *constant, wider(x->element), x->shape.size());
    return cast(x, wider(x->element));
  }
  /// As the op's result, which may be narrower.
  E result(E x, Value result) { return cast(x, getElementTypeOrSelf(result.getType())); }

  E add(E x, E y) { return isZero(y) ? x : make("train.add", {}, {x, y}, x->element, x->shape); }
  E mul(E x, E y) { return make("train.mul", {}, {x, y}, x->element, x->shape); }
  E scale(E x, double by) {
    return make("train.scale", attributes({{"factor", b.getF64FloatAttr(by)}}), {x}, x->element,
                x->shape);
  }
  E sub(E x, E y) { return add(x, scale(y, -1)); }
  E exp(E x) { return make("train.exp", {}, {x}, x->element, x->shape); }
  E log(E x) { return make("train.log", {}, {x}, x->element, x->shape); }
  E inverseRoot(E x, Attribute eps) {
    return make("train.inverse_root", attributes({{"eps", eps}}), {x}, x->element, x->shape);
  }
  /// One value for each row.
  E reduce(train::ReduceKind kind, E x) { return reduce(kind, x, {int64_t(rows.size())}, rows); }
  E mean(E x) { return reduce(train::ReduceKind::Sum, scale(x, 1 / double(whole.back()))); }
  /// A row, of one value for each of its elements.
  E overRows(E x) {
    if (rows.empty())
      return x;
    // How many rows there are is part of the sum, also of what is equal in all of them.
    if (llvm::is_contained(x->shape, anyExtent) && !isZero(x))
      x = make("of extents", {}, {x}, x->element, whole);
    return reduce(train::ReduceKind::Sum, x, llvm::to_vector(llvm::seq<int64_t>(0, rows.size())),
                  {whole.back()});
  }
  /// A value for each row at each of the row's elements.
  E wide(E row) {
    Shape shape = row->shape;
    shape.push_back(anyExtent);
    return make("train.broadcast",
                attributes({{"dims", b.getDenseI64ArrayAttr({int64_t(rows.size())})}}), {row},
                row->element, shape);
  }
  E make(StringRef name, Attribute attributes, Operands operands, Type element,
         ArrayRef<int64_t> shape, unsigned result = 0) {
    return checker.proof.expressions.get(op->getLoc(), name, attributes, operands, result, element,
                                         shape);
  }
  Attribute attributes(ArrayRef<std::pair<StringRef, Attribute>> list) {
    return b.getDictionaryAttr(llvm::map_to_vector(
        list, [&](auto &named) { return b.getNamedAttr(named.first, named.second); }));
  }

  Operation *op;
  Checker &checker;
  Builder b;
  Shape whole, rows;

private:
  Type wider(Type element) {
    return element.getIntOrFloatBitWidth() < 32 ? b.getF32Type() : element;
  }
  E cast(E x, Type element) {
    return x->element == element ? x : make("train.cast", {}, {x}, element, x->shape);
  }
  E reduce(train::ReduceKind kind, E x, ArrayRef<int64_t> dims, ArrayRef<int64_t> shape) {
    return make("train.reduce",
                attributes({{"dims", b.getDenseI64ArrayAttr(dims)},
                            {"kind", train::ReduceKindAttr::get(op->getContext(), kind)}}),
                {x}, x->element, shape);
  }
};

/// A row, of LayerNorm minus its mean, times 1 / its deviation.
struct Normal {
  Normal(Rows &r, E x, Attribute eps, bool isCentered) : r(r), isCentered(isCentered) {
    center = r.operand(x);
    if (isCentered)
      center = r.sub(center, r.wide(r.mean(center)));
    inverseDeviation = r.wide(r.inverseRoot(r.mean(r.mul(center, center)), eps));
    value = r.mul(center, inverseDeviation);
    r.checker.use(isCentered ? "LayerNorm is its definition by means of rows"
                             : "RMSNorm is its definition by means of rows");
  }

  /// With z the normal and g = dy weight: (g - mean(g) - z mean(g z)) / deviation, of RMSNorm
  /// without mean(g).
  E gradient(E dy, E weight) {
    E g = r.mul(r.operand(dy), r.operand(weight));
    E along = r.mul(value, r.wide(r.mean(r.mul(g, value))));
    E rest = r.sub(g, isCentered ? r.add(along, r.wide(r.mean(g))) : along);
    return r.mul(rest, inverseDeviation);
  }

  Rows &r;
  bool isCentered;
  E center, inverseDeviation, value;
};
} // namespace

Expressed certify::define(train::LayerNormOp op, Operands operands, Checker &checker) {
  Rows r(op, operands[0], checker);
  Normal z(r, operands[0], op.getEpsAttr(), true);
  return {
      r.result(r.add(r.mul(z.value, r.operand(operands[1])), r.operand(operands[2])), op.getY())};
}

Expressed certify::define(train::RmsNormOp op, Operands operands, Checker &checker) {
  Rows r(op, operands[0], checker);
  Normal z(r, operands[0], op.getEpsAttr(), false);
  return {r.result(r.mul(z.value, r.operand(operands[1])), op.getY())};
}

Expressed certify::define(train::LayerNormGradOp op, Operands operands, Checker &checker) {
  Rows r(op, operands[1], checker);
  Normal z(r, operands[1], op.getEpsAttr(), true);
  return {r.result(z.gradient(operands[0], operands[2]), op.getDx()),
          r.result(r.overRows(r.mul(r.operand(operands[0]), z.value)), op.getDweight()),
          r.result(r.overRows(r.operand(operands[0])), op.getDbias())};
}

Expressed certify::define(train::RmsNormGradOp op, Operands operands, Checker &checker) {
  Rows r(op, operands[1], checker);
  Normal z(r, operands[1], op.getEpsAttr(), false);
  return {r.result(z.gradient(operands[0], operands[2]), op.getDx()),
          r.result(r.overRows(r.mul(r.operand(operands[0]), z.value)), op.getDweight())};
}

E certify::logitOfTarget(Location location, E logits, E targets, Checker &checker) {
  return checker.make(location, "logit of target", {}, {logits, targets}, logits->element,
                      ArrayRef(logits->shape).drop_back());
}

/// lse = max + log(sum(exp(logits - max))).
Expressed certify::define(train::CrossEntropyOp op, Operands operands, Checker &checker) {
  Rows r(op, operands[0], checker);
  checker.use("cross-entropy is the log of the sum of exponentials, minus the target's logit");
  E logits = r.operand(operands[0]), targets = operands[1];
  E max = r.reduce(train::ReduceKind::Max, logits);
  E sum = r.reduce(train::ReduceKind::Sum, r.exp(r.sub(logits, r.wide(max))));
  E picked = logitOfTarget(op.getLoc(), logits, targets, checker);
  E lse = r.add(max, r.log(sum));
  SmallVector<std::pair<StringRef, Attribute>> named{
      {"below", r.b.getI64IntegerAttr(r.whole.back())}, {"scale", op.getScaleAttr()}};
  if (op.getPerToken())
    named.push_back({"per_token", op.getPerTokenAttr()});
  Attribute attributes = r.attributes(named);
  Shape losses = op.getPerToken() ? r.rows : Shape();
  return {
      r.make("train.token_loss", attributes, {lse, picked, targets}, logits->element, losses, 0),
      r.make("train.token_loss", attributes, {lse, picked, targets}, logits->element, r.rows, 1)};
}
