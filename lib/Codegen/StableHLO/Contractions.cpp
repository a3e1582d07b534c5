//===- Contractions.cpp - sums of products and attention as StableHLO -------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Codegen/StableHLO/Export.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::codegen;
using stablehlo::HLOBuilder;
using stablehlo::plain;
using stablehlo::Results;

//===----------------------------------------------------------------------===//
// Sums of products
//===----------------------------------------------------------------------===//

/// The factor of each dimension; nothing where one is made of several.
static std::optional<SmallVector<int64_t>> factorsOf(const TensorFactors &tensor) {
  SmallVector<int64_t> factors;
  for (const auto &dim : tensor.dims) {
    if (dim.size() != 1)
      return std::nullopt;
    factors.push_back(dim[0]);
  }
  return factors;
}

FailureOr<Results> stablehlo::exportContraction(Operation *op, ValueRange x, HLOBuilder &b) {
  ShardingRule rule = cast<train::ShardingRuleOpInterface>(op).getShardingRule();
  auto left = factorsOf(rule.operands[0]), right = factorsOf(rule.operands[1]),
       made = factorsOf(rule.results[0]);
  if (!left || !right || !made)
    return failure();
  SmallVector<int64_t> batchX, batchY, contractX, contractY, order;
  for (auto [d, factor] : llvm::enumerate(*left))
    if (auto *found = llvm::find(*right, factor); found != right->end()) {
      bool batch = llvm::is_contained(*made, factor);
      (batch ? batchX : contractX).push_back(d);
      (batch ? batchY : contractY).push_back(found - right->begin());
      if (batch)
        order.push_back(factor);
    }
  for (int64_t factor : *left)
    if (!llvm::is_contained(*right, factor))
      order.push_back(factor);
  for (int64_t factor : *right)
    if (!llvm::is_contained(*left, factor))
      order.push_back(factor);
  // A factor of one operand alone that the result has not would be summed there.
  if (order.size() != made->size())
    return failure();
  RankedTensorType type = plain(op->getResult(0).getType());
  Type sums = train::atLeastF32(type.getElementType());
  Value product = b.dot(x[0], x[1], batchX, batchY, contractX, contractY, sums);
  SmallVector<int64_t> permutation;
  for (int64_t factor : *made)
    permutation.push_back(llvm::find(order, factor) - order.begin());
  product = b.transpose(product, permutation);
  if (x.size() > 2)
    product = b.add(product, b.convert(x[2], sums));
  return Results{b.convert(product, type.getElementType())};
}

//===----------------------------------------------------------------------===//
// Attention
//===----------------------------------------------------------------------===//

namespace {
/// Scores of all queries and keys: [batch, key heads, queries of a key head, queries, keys]
/// in f32.
class Scores {
public:
  /// `optional`: those of positions of queries and documents, in order.
  template <typename Op>
  Scores(Op op, Value q, Value k, ValueRange optional, HLOBuilder &b)
      : b(b), spec(op.getSpec().getValue()), batch(b.typeOf(q).getDimSize(0)),
        queries(b.typeOf(q).getDimSize(1)), groups(b.typeOf(k).getDimSize(2)),
        share(b.typeOf(q).getDimSize(2) / groups), keys(b.typeOf(k).getDimSize(1)),
        f32(b.builder().getF32Type()), last(op.getSizes().queries - 1) {
    if (op.getQueryOffset())
      offset = optional[0];
    if (op.getPositions())
      documents = optional[bool(offset)];
  }

  /// [b, s, heads, d] as [b, g, r, s, d] in f32.
  Value byGroup(Value x) {
    int64_t depth = b.typeOf(x).getDimSize(3);
    Value wide = b.convert(b.reshape(x, {batch, queries, groups, share, depth}), f32);
    return b.transpose(wide, {0, 2, 3, 1, 4});
  }
  /// ... and back, in `element`.
  Value ungroup(Value x, Type element) {
    int64_t depth = b.typeOf(x).getDimSize(4);
    Value rows = b.transpose(x, {0, 3, 1, 2, 4});
    return b.convert(b.reshape(rows, {batch, queries, groups * share, depth}), element);
  }
  /// [b, t, g, d] as [b, g, t, d] in f32.
  Value keyed(Value x) { return b.transpose(b.convert(x, f32), {0, 2, 1, 3}); }
  /// [heads] as [b, g, r, s, t].
  Value byHead(Value x) {
    return b.broadcast(b.reshape(b.convert(x, f32), {groups, share}), shape(), {1, 2});
  }
  /// ... as [b, g, r, s].
  Value byHeadOfRows(Value x) {
    return b.broadcast(b.reshape(b.convert(x, f32), {groups, share}),
                       {batch, groups, share, queries}, {1, 2});
  }
  Value unkeyed(Value x, Type element) {
    return b.convert(b.transpose(x, {0, 2, 1, 3}), element);
  }
  /// [b, heads, s] as [b, g, r, s], along all keys.
  Value alongKeys(Value x) {
    return b.broadcast(b.reshape(x, {batch, groups, share, queries}), shape(), {0, 1, 2, 3});
  }
  SmallVector<int64_t> shape() const { return {batch, groups, share, queries, keys}; }

  /// x [b, g, r, s, d] y [b, g, t, d] -> [b, g, r, s, t].
  Value products(Value x, Value y) { return b.dot(x, y, {0, 1}, {0, 1}, {4}, {3}, f32); }
  /// w [b, g, r, s, t] y [b, g, t, d] -> [b, g, r, s, d].
  Value overKeys(Value w, Value y) { return b.dot(w, y, {0, 1}, {0, 1}, {4}, {2}, f32); }
  /// w [b, g, r, s, t] x [b, g, r, s, d] -> [b, g, t, d].
  Value overQueries(Value w, Value x) { return b.dot(w, x, {0, 1}, {0, 1}, {2, 3}, {2, 3}, f32); }

  /// Of each score its query's position. Queries in the padding see what the last one does: a
  /// softmax of nothing would be no number.
  Value positions() {
    Value query = b.iota(shape(), 3);
    if (!offset)
      return query;
    Value position = b.add(query, b.broadcast(offset, shape(), {}));
    return b.op("minimum", position.getType(), {position, b.splat(b.typeOf(query), double(last))});
  }
  /// Of each score the first key of its query's document, or chunk of it. Queries in the padding see the last
  /// key alone.
  Value begins() {
    Value query = b.iota({batch, queries}, 1), places;
    RankedTensorType type = b.typeOf(query);
    if (documents) {
      places = b.concatenate({documents, b.splat(type, 0)}, 1);
      Value first = b.splat(RankedTensorType::get({}, type.getElementType()), 0);
      places = offset ? b.dynamicSlice(places, {first, offset}, {batch, queries})
                      : b.slice(places, {0, 0}, {batch, queries});
    }
    if (offset)
      query = b.add(query, b.broadcast(offset, {batch, queries}, {}));
    if (!documents)
      places = query;
    if (spec.chunk)
      places = b.op("remainder", type, {places, b.splat(type, double(spec.chunk))});
    Value begin = b.op("minimum", type, {b.sub(query, places), b.splat(type, double(last))});
    return b.broadcast(begin, shape(), {0, 3});
  }
  /// Adds to capped scores what slopes make of distances.
  Value biased(Value scores, Value slopes) {
    Value distance = b.sub(b.iota(shape(), 4), positions());
    return b.add(scores, b.mul(byHead(slopes), b.convert(distance, f32)));
  }
  /// Scaled products, capped if there is a cap.
  Value scores(Value q, Value k) {
    Value product = products(q, k);
    product = b.mul(product, b.splat(b.typeOf(product), spec.cap ? spec.scale / spec.cap : spec.scale));
    if (spec.cap)
      product = b.mul(b.op("tanh", product.getType(), product), b.splat(b.typeOf(product), spec.cap));
    return product;
  }
  Value visible(Value x, double otherwise) {
    Value query = positions(), key = b.iota(shape(), 4);
    Value hidden = b.splat(b.typeOf(x), otherwise);
    if (spec.causal)
      x = b.select(b.compare(key, query, "LE", "SIGNED"), x, hidden);
    if (documents || spec.chunk)
      x = b.select(b.compare(key, begins(), "GE", "SIGNED"), x, hidden);
    if (spec.window) {
      Value far = b.splat(b.typeOf(query), double(spec.window));
      x = b.select(b.compare(b.sub(query, key), far, "LT", "SIGNED"), x, hidden);
      if (!spec.causal)
        x = b.select(b.compare(b.sub(key, query), far, "LT", "SIGNED"), x, hidden);
    }
    return x;
  }

  HLOBuilder &b;
  const train::AttentionSpec spec;
  int64_t batch, queries, groups, share, keys;
  Type f32;
  Value offset;    ///< position of the first query; null for 0
  Value documents; ///< positions of keys in their documents; null where sequences are one
  int64_t last;
};
} // namespace

static FailureOr<Results> forward(train::AttentionOp op, ValueRange x, HLOBuilder &b) {
  unsigned places = bool(op.getQueryOffset()) + bool(op.getPositions());
  Scores s(op, x[0], x[1], x.slice(3, places), b);
  Value scores = s.scores(s.byGroup(x[0]), s.keyed(x[1]));
  if (op.getSlopes())
    scores = s.biased(scores, x[3 + places]);
  scores = s.visible(scores, -INFINITY);
  Value most = b.reduce(scores, {4}, /*max=*/true), sink;
  if (op.getSinks()) {
    sink = s.byHeadOfRows(x.back());
    most = b.op("maximum", most.getType(), {most, sink});
  }
  Value shifted = b.exp(b.sub(scores, b.broadcast(most, s.shape(), {0, 1, 2, 3})));
  Value sum = b.reduce(shifted, {4}, /*max=*/false);
  if (sink)
    sum = b.add(sum, b.exp(b.sub(sink, most)));
  Value weights = b.op("divide", shifted.getType(),
                       {shifted, b.broadcast(sum, s.shape(), {0, 1, 2, 3})});
  Value out = s.ungroup(s.overKeys(weights, s.keyed(x[2])), b.typeOf(x[0]).getElementType());
  Value lse = b.add(most, b.op("log", sum.getType(), sum));
  return Results{out, b.reshape(lse, plain(op.getLse().getType()).getShape())};
}

/// With weights p: dv = p dout, dp = dout v, dscores = scale p (dp - sum(p dp)), of capped
/// scores times 1 - tanh^2,
/// dq = dscores k, dk = dscores q.
static FailureOr<Results> backward(train::AttentionGradOp op, ValueRange x, HLOBuilder &b) {
  unsigned places = bool(op.getQueryOffset()) + bool(op.getPositions());
  Scores s(op, x[1], x[2], x.slice(6, places), b);
  Value dout = s.byGroup(x[0]), q = s.byGroup(x[1]), k = s.keyed(x[2]), v = s.keyed(x[3]);
  Value scores = s.scores(q, k);
  Value all = op.getSlopes() ? s.biased(scores, x[6 + places]) : scores;
  Value weights = b.exp(b.sub(s.visible(all, -INFINITY), s.alongKeys(x[5])));
  Value dweights = s.products(dout, v);
  Value mean = b.reduce(b.mul(weights, dweights), {4}, /*max=*/false);
  Value dscores =
      b.mul(weights, b.sub(dweights, b.broadcast(mean, s.shape(), {0, 1, 2, 3})));
  dscores = b.mul(dscores, b.splat(b.typeOf(dscores), s.spec.scale));
  if (s.spec.cap) {
    Value tangent = b.mul(scores, b.splat(b.typeOf(scores), 1 / s.spec.cap));
    Value lost = b.mul(tangent, tangent);
    dscores = b.sub(dscores, b.mul(dscores, lost));
  }
  Type element = b.typeOf(x[1]).getElementType();
  Results results{s.ungroup(s.overKeys(dscores, k), element),
                  s.unkeyed(s.overQueries(dscores, q), element),
                  s.unkeyed(s.overQueries(weights, dout), element)};
  if (op.getSinks()) {
    // Its weight has the value 0.
    Value lse = b.reshape(x[5], {s.batch, s.groups, s.share, s.queries});
    Value weight = b.exp(b.sub(s.byHeadOfRows(x.back()), lse));
    Value lost = b.reduce(b.mul(weight, mean), {0, 3}, /*max=*/false);
    lost = b.mul(lost, b.splat(b.typeOf(lost), -1));
    results.push_back(b.reshape(lost, plain(op.getDsinks().getType()).getShape()));
  }
  return results;
}

FailureOr<Results> stablehlo::exportAttention(Operation *op, ValueRange x, HLOBuilder &b) {
  return llvm::TypeSwitch<Operation *, FailureOr<Results>>(op)
      .Case([&](train::AttentionOp op) -> FailureOr<Results> {
        if (op.getIds() || op.getKeyOffset() || op.getSpec()->queryStride != 1 || op.getLengths() ||
            op.getDistances())
          return failure();
        return forward(op, x, b);
      })
      .Case([&](train::AttentionGradOp op) -> FailureOr<Results> {
        if (op.getIds() || op.getKeyOffset() || op.getSpec()->queryStride != 1 || op.getLengths() ||
            op.getDistances())
          return failure();
        return backward(op, x, b);
      })
      .Default([](Operation *) -> FailureOr<Results> { return failure(); });
}
