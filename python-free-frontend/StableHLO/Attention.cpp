//===- Attention.cpp - attention among products ------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// A softmax of scaled products of queries and keys, with a causal mask or none, times values is one
// op of floor 1, which stores no scores. Any other attention stays products, a softmax and masks.
//
//===----------------------------------------------------------------------===//
#include "Importer.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::hlo;
using namespace meshwright::train;

namespace {
/// The dimensions of one operand of a product: those of both operands and the result, that which is
/// added up, and its own.
struct Side {
  Side(const Lazy &value, DictionaryAttr numbers, StringRef side) {
    auto list = [&](StringRef name) { return dimsOf(numbers.get((side + name).str())); };
    batch = list("_batching_dimensions");
    sums = list("_contracting_dimensions");
    for (int64_t dim = 0, e = value.shape.size(); dim < e; ++dim)
      if (!llvm::is_contained(batch, dim) && !llvm::is_contained(sums, dim))
        own.push_back(dim);
  }
  Dims batch, sums, own;
};
} // namespace

/// Whether each row sees the columns up to its own.
static bool isCausal(const Lazy &mask, int64_t row, int64_t column) {
  int64_t n = mask.shape[row];
  if (mask.shape[column] != n)
    return false;
  std::vector<double> visible = Graph::numbers(mask, {row, column});
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = 0; j < n; ++j)
      if ((visible[i * n + j] != 0) != (j <= i))
        return false;
  return true;
}

FailureOr<Ref> Importer::attention(Operation *op, const Ref &a, const Ref &b,
                                   DictionaryAttr numbers) {
  bool isLhs = a->form == Form::softmax;
  const Ref &weights = isLhs ? a : b, &values = isLhs ? b : a;
  if (weights->form != Form::softmax)
    return Ref();
  Ref scores = weights->of, mask;
  if (scores->form == Form::masked) {
    mask = scores->mask;
    scores = scores->of;
  }
  if (scores->form != Form::product || weights->shape != scores->shape)
    return Ref();

  // Whose own dimension the softmax is along has the keys.
  Side lhs(*scores->of, scores->product, "lhs"), rhs(*scores->other, scores->product, "rhs");
  if (lhs.batch.size() != 2 || lhs.sums.size() != 1 || weights->along.size() != 1)
    return Ref();
  int64_t keyDim = weights->along.front(), ownOfLhs = lhs.own.size();
  int64_t key = indexOf(scores->axes, keyDim) - 2;
  bool isRhsKeys = key >= ownOfLhs;
  const Side &ofQueries = isRhsKeys ? lhs : rhs, &ofKeys = isRhsKeys ? rhs : lhs;
  const Ref &queries = isRhsKeys ? scores->of : scores->other,
            &keys = isRhsKeys ? scores->other : scores->of;
  if (key < 0 || ofKeys.own.size() != 1 || ofQueries.own.empty() || ofQueries.own.size() > 2)
    return Ref();
  // Where the queries' own dimensions are in the scores: positions, and heads of one key head.
  Dims own;
  for (size_t i = 0; i < ofQueries.own.size(); ++i)
    own.push_back(scores->axes[2 + (isRhsKeys ? 0 : ownOfLhs) + i]);
  size_t position = 0;
  if (mask && own.size() == 2 && llvm::is_contained(mask->dims, own[1]))
    position = 1;
  if (!mask && own.size() == 2)
    return Ref();
  bool isMasked = mask && mask->splat() != 1.0;
  if (isMasked &&
      (llvm::any_of(mask->dims, [&](int64_t d) { return d != own[position] && d != keyDim; }) ||
       !isCausal(*mask, own[position], keyDim)))
    return Ref();

  StringRef side = isLhs ? "lhs" : "rhs", otherSide = isLhs ? "rhs" : "lhs";
  Side ofWeights(*weights, numbers, side), ofValues(*values, numbers, otherSide);
  if (ofWeights.sums != ArrayRef<int64_t>{keyDim} || ofWeights.batch.size() != 2 ||
      ofValues.own.size() != 1 || queries->element != values->element ||
      keys->element != values->element ||
      getElementTypeOrSelf(op->getResult(0).getType()) != values->element)
    return Ref();
  // Of the two dimensions that all have, what is before the positions of queries counts sequences.
  unsigned batch =
      indexOf(queries->dims, ofQueries.batch[1]) < indexOf(queries->dims, ofQueries.batch[0]) ? 1
                                                                                              : 0;
  int64_t inWeights[2], inValues[2];
  for (unsigned i : {0u, 1u}) {
    inWeights[i] = scores->axes[i];
    int64_t at = indexOf(ofWeights.batch, inWeights[i]);
    if (at < 0)
      return Ref();
    inValues[i] = ofValues.batch[at];
  }
  unsigned head = 1 - batch;

  Dims order{ofQueries.batch[batch], ofQueries.own[position], ofQueries.batch[head]};
  if (own.size() == 2)
    order.push_back(ofQueries.own[1 - position]);
  order.push_back(ofQueries.sums[0]);
  FailureOr<Value> q = graph.fit(queries, order);
  FailureOr<Value> k =
      graph.fit(keys, {ofKeys.batch[batch], ofKeys.own[0], ofKeys.batch[head], ofKeys.sums[0]});
  FailureOr<Value> v =
      graph.fit(values, {inValues[batch], ofValues.sums[0], inValues[head], ofValues.own[0]});
  if (failed(q) || failed(k) || failed(v))
    return failure();
  auto reshaped = [&](Value x, ArrayRef<int64_t> shape) -> Value {
    return ReshapeOp::create(graph.builder, graph.location,
                             RankedTensorType::get(shape, values->element), x);
  };
  Dims shape =
      llvm::to_vector<6>(llvm::map_range(order, [&](int64_t d) { return queries->shape[d]; }));
  if (own.size() == 2)
    q = reshaped(*q, {shape[0], shape[1], shape[2] * shape[3], shape[4]});
  AttentionSpec spec;
  spec.scale = scores->number;
  spec.causal = isMasked;
  Value out = AttentionOp::create(graph.builder, graph.location, *q, *k, *v, AttentionOptions(),
                                  Value(), Value(), spec)
                  .getOut();
  shape.back() = values->shape[ofValues.own[0]];
  if (own.size() == 2)
    out = reshaped(out, shape);

  // The result has what both have, then the own dimensions of its left operand and those of its
  // right one.
  auto inResult = [&](int64_t dim) {
    if (int64_t at = indexOf(ofWeights.batch, dim); at >= 0)
      return at;
    return int64_t(2 + (isLhs ? 0 : 1) + indexOf(ofWeights.own, dim));
  };
  Dims dims{inResult(inWeights[batch]), inResult(own[position]), inResult(inWeights[head])};
  if (own.size() == 2)
    dims.push_back(inResult(own[1 - position]));
  dims.push_back(2 + (isLhs ? int64_t(ofWeights.own.size()) : 0));
  return graph.wrap(cast<RankedTensorType>(op->getResult(0).getType()).getShape(), dims, out);
}
