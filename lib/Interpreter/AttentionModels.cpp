//===- AttentionModels.cpp - attention and its gradient ---------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// The textbook formula, one query at a time: here a whole row of weights may be
// stored.
//
//===----------------------------------------------------------------------===//
#include "Interpreter/Model.h"

#include "Train/Train.h"
#include "meshwright/runtime/Philox.h"

#include <cmath>
#include <optional>

using namespace mlir;
using namespace meshwright;
using namespace meshwright::interp;

namespace {
/// What both ops share: sizes, visibility and dropout.
struct Shape {
  int64_t batch, queries, heads, depth, keys, kvHeads, valueDepth;
  const train::AttentionSpec spec;
  int64_t globalHeads, globalQueries, globalKeys;
  int64_t headOffset = 0, queryOffset = 0, keyOffset = 0;
  double keep = 1;
  const int64_t *ids = nullptr, *positions = nullptr, *lengths = nullptr;
  const double *slopes = nullptr, *sinks = nullptr, *distances = nullptr;
  int64_t distanceCount = 0;
  const double *before = nullptr, *beforeLse = nullptr;
  std::array<uint32_t, 2> key = {};

  /// `tensors`: of the operands, of which q, k and v are from number `q` on, and the optional ones from
  /// number `optional` on.
  template <typename Op>
  Shape(Op op, ArrayRef<Tensor> tensors, unsigned first, unsigned optional)
      : batch(tensors[first].dim(0)), queries(tensors[first].dim(1)), heads(tensors[first].dim(2)),
        depth(tensors[first].dim(3)), keys(tensors[first + 1].dim(1)),
        kvHeads(tensors[first + 1].dim(2)), valueDepth(tensors[first + 2].dim(3)),
        spec(op.getSpec().getValue()), globalHeads(spec.heads ? spec.heads : heads),
        globalQueries(spec.queries ? spec.queries : queries), globalKeys(spec.keys ? spec.keys : keys) {
    auto next = [&](Value operand) { return operand ? &tensors[optional++] : nullptr; };
    auto integers = [&](Value operand) {
      const Tensor *tensor = next(operand);
      return tensor ? tensor->integers().data() : nullptr;
    };
    auto floats = [&](Value operand) {
      const Tensor *tensor = next(operand);
      return tensor ? tensor->floats().data() : nullptr;
    };
    auto number = [&](Value operand) {
      const int64_t *at = integers(operand);
      return at ? *at : 0;
    };
    ids = integers(op.getIds());
    if (const int64_t *words = integers(op.getKey()))
      key = {uint32_t(words[0]), uint32_t(words[1])};
    headOffset = number(op.getHeadOffset());
    queryOffset = number(op.getQueryOffset());
    keyOffset = number(op.getKeyOffset());
    positions = integers(op.getPositions());
    lengths = integers(op.getLengths());
    slopes = floats(op.getSlopes());
    sinks = floats(op.getSinks());
    distances = floats(op.getDistances());
    if (distances)
      distanceCount = tensors[optional - 1].dim(0);
    if (optional < tensors.size()) {
      before = tensors[optional].floats().data();
      beforeLse = tensors[optional + 1].floats().data();
    }
    keep = 1 / (1 - spec.dropout);
  }

  double capped(double score) const { return spec.cap > 0 ? spec.cap * std::tanh(score / spec.cap) : score; }
  int64_t placeOfQuery(int64_t s) const { return queryOffset + s * spec.queryStride; }
  int64_t placeOfKey(int64_t t) const { return keyOffset + t * spec.keyStride; }
  /// How far query s is beyond key t.
  int64_t distance(int64_t s, int64_t t) const { return placeOfQuery(s) - placeOfKey(t); }
  double bias(int64_t h, int64_t s, int64_t t) const {
    double sum = slopes ? slopes[h] * -double(distance(s, t)) : 0;
    if (int64_t row = distanceRow(s, t); row >= 0)
      sum += distances[row * heads + h];
    return sum;
  }
  /// The row of distances that a score reads; -1: none, as where a query is padding.
  int64_t distanceRow(int64_t s, int64_t t) const {
    int64_t row = globalQueries - 1 - distance(s, t);
    return distances && row >= 0 && row < distanceCount ? row : -1;
  }
  /// Where the document of query s begins, which may be padding behind all keys.
  int64_t documentOf(int64_t b, int64_t s) const {
    int64_t last = std::min(placeOfQuery(s), globalKeys - 1);
    return positions ? last - positions[b * globalKeys + last] : 0;
  }
  bool visible(int64_t b, int64_t s, int64_t t) const {
    int64_t query = placeOfQuery(s), key = placeOfKey(t), document = documentOf(b, s);
    bool isThere = key < (lengths ? std::min(lengths[b], globalKeys) : globalKeys) && key >= document;
    bool isNear = spec.window == 0 || std::abs(query - key) < spec.window;
    bool isInChunk =
        spec.chunk == 0 || (query - document) / spec.chunk == (key - document) / spec.chunk;
    return isThere && isNear && isInChunk && (!spec.causal || key <= query);
  }
  /// What dropout multiplies the weight of key t for query s by.
  double factor(int64_t b, int64_t h, int64_t s, int64_t t) const {
    if (!ids)
      return 1;
    uint64_t head = uint64_t(ids[b]) * globalHeads + headOffset + h;
    uint64_t index = (head * globalQueries + placeOfQuery(s)) * globalKeys + placeOfKey(t);
    return keeps(randomBits(key, uint32_t(spec.stream), index), float(spec.dropout)) ? keep : 0;
  }
  int64_t kvHead(int64_t h) const { return h / (heads / kvHeads); }
  int64_t query(int64_t b, int64_t s, int64_t h, int64_t d) const {
    return ((b * queries + s) * heads + h) * d;
  }
  int64_t keyAt(int64_t b, int64_t t, int64_t h, int64_t d) const {
    return ((b * keys + t) * kvHeads + kvHead(h)) * d;
  }
  template <typename Visit> void forEachQuery(Visit visit) const {
    for (int64_t b = 0; b < batch; ++b)
      for (int64_t h = 0; h < heads; ++h)
        for (int64_t s = 0; s < queries; ++s)
          visit(b, h, s);
  }
};
} // namespace

static double dot(const double *a, const double *b, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i)
    sum += a[i] * b[i];
  return sum;
}

static void addScaled(double *to, const double *from, double factor, int64_t n) {
  for (int64_t i = 0; i < n; ++i)
    to[i] += factor * from[i];
}

static LogicalResult attention(train::AttentionOp op, ArrayRef<Tensor> operands,
                               SmallVectorImpl<Tensor> &results, RankContext &) {
  Shape shape(op, operands, 0, 3);
  Tensor outTensor(op.getOut().getType()), lseTensor(op.getLse().getType());
  const double *q = operands[0].floats().data(), *k = operands[1].floats().data(),
               *v = operands[2].floats().data();
  double *out = outTensor.writeFloats(), *lse = lseTensor.writeFloats();
  std::vector<double> score(shape.keys);
  shape.forEachQuery([&](int64_t b, int64_t h, int64_t s) {
    const double *query = q + shape.query(b, s, h, shape.depth);
    int64_t term = (b * shape.heads + h) * shape.queries + s;
    double most = shape.sinks ? shape.sinks[h] : -INFINITY, sum = 0;
    if (shape.before)
      most = std::max(most, shape.beforeLse[term]);
    for (int64_t t = 0; t < shape.keys; ++t) {
      score[t] = -INFINITY;
      if (shape.visible(b, s, t)) {
        const double *key = k + shape.keyAt(b, t, h, shape.depth);
        score[t] = shape.capped(shape.spec.scale * dot(query, key, shape.depth)) + shape.bias(h, s, t);
      }
      most = std::max(most, score[t]);
    }
    double *output = out + shape.query(b, s, h, shape.valueDepth);
    // A query that sees no key has output 0 and the logarithm of 0.
    lse[term] = most;
    if (most == -INFINITY)
      return;
    if (shape.sinks)
      sum = std::exp(shape.sinks[h] - most);
    if (shape.before)
      sum += std::exp(shape.beforeLse[term] - most);
    for (int64_t t = 0; t < shape.keys; ++t)
      if (shape.visible(b, s, t))
        sum += std::exp(score[t] - most);
    lse[term] = most + std::log(sum);
    if (shape.before)
      addScaled(output, shape.before + shape.query(b, s, h, shape.valueDepth),
                std::exp(shape.beforeLse[term] - lse[term]), shape.valueDepth);
    for (int64_t t = 0; t < shape.keys; ++t)
      if (shape.visible(b, s, t))
        addScaled(output, v + shape.keyAt(b, t, h, shape.valueDepth),
                  std::exp(score[t] - lse[term]) * shape.factor(b, h, s, t), shape.valueDepth);
  });
  results.append({outTensor, lseTensor});
  return success();
}

/// dout (mask v - out): by how much the gradient of one weight is above the mean over all.
static double aboveMean(const double *dout, double mask, const double *v, const double *out,
                        int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i)
    sum += dout[i] * (mask * v[i] - out[i]);
  return sum;
}

/// With weights p = softmax(scores), w = p * mask, out = w v:
///   dv += w dout, dw = dout v, dp = dw * mask,
///   dscores = p (dp - dout out), times 1 - (score / cap)^2 if there is a cap, dq += scale dscores
///   k, dk += scale dscores q; before that factor they add to the gradient of their distance. A sink's weight has the value 0: dsink -= p (dout out).
/// dout out is sum(p dp), but taken from `out`, as kernels do: what rounding of `out` does to the
/// gradient can be seen by moving it. Where one weight is 1, `out` is its value, and dp - dout out
/// must be 0: so it is dout (mask v - out), which cancels before it rounds.
static LogicalResult attentionGrad(train::AttentionGradOp op, ArrayRef<Tensor> operands,
                                   SmallVectorImpl<Tensor> &results, RankContext &) {
  Shape shape(op, operands, 1, 6);
  Tensor dqTensor(op.getDq().getType()), dkTensor(op.getDk().getType()),
      dvTensor(op.getDv().getType());
  const double *dout = operands[0].floats().data(), *q = operands[1].floats().data(),
               *k = operands[2].floats().data(), *v = operands[3].floats().data(),
               *out = operands[4].floats().data(), *lse = operands[5].floats().data();
  double *dq = dqTensor.writeFloats(), *dk = dkTensor.writeFloats(), *dv = dvTensor.writeFloats();
  double *dsinks = nullptr;
  std::optional<Tensor> dsinksTensor;
  if (op.getDsinks())
    dsinks = dsinksTensor.emplace(op.getDsinks().getType()).writeFloats();
  double *ddistances = nullptr;
  std::optional<Tensor> ddistancesTensor;
  if (op.getDdistances())
    ddistances = ddistancesTensor.emplace(op.getDdistances().getType()).writeFloats();
  int64_t d = shape.depth, e = shape.valueDepth;
  shape.forEachQuery([&](int64_t b, int64_t h, int64_t s) {
    const double *query = q + shape.query(b, s, h, d), *grad = dout + shape.query(b, s, h, e);
    const double *output = out + shape.query(b, s, h, e);
    for (int64_t t = 0; t < shape.keys; ++t) {
      if (!shape.visible(b, s, t))
        continue;
      double score = shape.capped(shape.spec.scale * dot(query, k + shape.keyAt(b, t, h, d), d));
      double p = std::exp(score + shape.bias(h, s, t) -
                          lse[(b * shape.heads + h) * shape.queries + s]);
      double slope = shape.spec.cap > 0 ? 1 - score * score / (shape.spec.cap * shape.spec.cap) : 1;
      double mask = shape.factor(b, h, s, t);
      addScaled(dv + shape.keyAt(b, t, h, e), grad, p * mask, e);
      double above = aboveMean(grad, mask, v + shape.keyAt(b, t, h, e), output, e);
      if (int64_t row = shape.distanceRow(s, t); ddistances && row >= 0)
        ddistances[row * shape.heads + h] += p * above;
      double dscore = shape.spec.scale * slope * p * above;
      addScaled(dq + shape.query(b, s, h, d), k + shape.keyAt(b, t, h, d), dscore, d);
      addScaled(dk + shape.keyAt(b, t, h, d), query, dscore, d);
    }
    if (dsinks)
      dsinks[h] -= dot(grad, output, e) *
                   std::exp(shape.sinks[h] - lse[(b * shape.heads + h) * shape.queries + s]);
  });
  results.append({dqTensor, dkTensor, dvTensor});
  if (dsinksTensor)
    results.push_back(*dsinksTensor);
  if (ddistancesTensor)
    results.push_back(*ddistancesTensor);
  return success();
}

void interp::attachAttentionModels(MLIRContext *context) {
  attach<train::AttentionOp, attention>(context);
  attach<train::AttentionGradOp, attentionGrad>(context);
}
