//===- AttentionBackward.cpp - one work item of attention, backward -------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// The backward pass of FlashAttention-2 (Dao, 2023). With the weights P
// recomputed from the row's lse, M the dropout mask (0 or 1 / (1 - dropout)) and
// delta = sum(dout * out) over valueDim:
//
//   dP = M * (dout v^T)    dS = P * (dP - delta)
//   dv = (M * P)^T dout    dk = scale * dS^T q    dq = scale * dS k
//
// An item holds the gradients of one tile of keys while it passes its queries,
// and adds to dq in memory, which no other item touches. Where tensors are narrower
// than f32 it adds to a copy in f32, and rounds that at the end.
// Compiled once for each instruction set; see Simd.h.
//
//===----------------------------------------------------------------------===//
#include "AttentionTile.h"
#include "MicroKernel.h"

namespace meshwright::cpu::MW_ISA {

namespace {
/// One tile of queries of one head.
struct Unit {
  int64_t head, query, rows;
  int64_t row;     ///< of the first query in q, out, dout and dq
  int64_t termRow; ///< of the first query in lse and delta
};
} // namespace

static inline Unit unitAt(const BackwardCall &call, int64_t batch, int64_t kvHead, int64_t index) {
  const MwAttention &shape = call.shape;
  Unit unit;
  unit.head = kvHead * call.tiling.groupHeads + index % call.tiling.groupHeads;
  unit.query = index / call.tiling.groupHeads * kTile;
  unit.rows = smaller(kTile, shape.queries - unit.query);
  unit.row = (batch * shape.queries + unit.query) * shape.heads + unit.head;
  unit.termRow = (batch * shape.heads + unit.head) * shape.queries + unit.query;
  return unit;
}

/// Clears the unit's dq and writes its delta.
template <typename T> static inline void startUnit(const BackwardCall &call, const Unit &unit) {
  const T *dout = static_cast<const T *>(call.dout), *out = static_cast<const T *>(call.out);
  int64_t dim = call.shape.valueDim, width = call.shape.headDim;
  for (int64_t i = 0; i < unit.rows; ++i) {
    int64_t row = unit.row + i * call.shape.heads, at = row * dim;
    __builtin_memset(call.dqSums + row * width, 0, width * sizeof(float));
    Floats sum{};
    for (int64_t d = 0; d < dim; d += kLanes)
      sum += loadPadded(dout + at + d, dim - d) * loadPadded(out + at + d, dim - d);
    call.delta[unit.termRow + i] = horizontalSum(sum);
  }
}

/// Turns a group's scores and dout v^T, in `weights` and `slopes`, into the
/// dropped weights and dS. Dropout's scale of dP is applied here, that of dv by
/// the caller.
static inline void differentiateGroup(const BackwardCall &call, const Mask &mask,
                                      const Dropout &dropout, const Unit &unit, int64_t batch,
                                      int64_t first, int64_t key, const Span &span,
                                      DistanceTile &distances, float *weights, float *slopes) {
  const float cap = call.shape.cap;
  for (int64_t row = 0; row < kGroup; ++row) {
    int64_t query = unit.query + first + row;
    // Rows past the last query hold zeros in q and dout, so they add nothing as
    // long as their terms are finite.
    bool exists = first + row < unit.rows;
    float lse = exists ? call.lse[unit.termRow + first + row] : 0.0f;
    float delta = exists ? call.delta[unit.termRow + first + row] : 0.0f;
    VisibleColumns visible(mask, query, key);
    Bias bias(call.shape, unit.head, query, key);
    uint64_t index =
        dropout.active ? Dropout::indexOf(call.shape, batch, unit.head, query, key) : 0;
    float *weightLine = weights + row * kTile, *slopeLine = slopes + row * kTile;
    for (int64_t column = span.begin; column < span.end; column += kLanes) {
      Floats score = load(weightLine + column), bend = splat(1.0f);
      if (cap > 0) {
        Floats tangent = hyperbolicTangent(score * (1.0f / cap));
        score = tangent * cap;
        bend = 1.0f - tangent * tangent;
      }
      if (call.shape.slopes)
        score += bias.at(column);
      if (call.shape.distances && exists)
        score += distances.at(first + row, column);
      Floats weight = exponential(score - lse);
      if (span.masked)
        weight = visible.at(column) ? weight : Floats{};
      Floats slope = load(slopeLine + column);
      if (dropout.active) {
        Ints keep = dropout.keep(index, column);
        slope = keep ? slope * dropout.scale : Floats{};
        store(weightLine + column, keep ? weight : Floats{});
      } else {
        store(weightLine + column, weight);
      }
      slope = weight * (slope - delta);
      if (call.ddistances)
        distances.add(first + row, column, slope);
      store(slopeLine + column, cap > 0 ? slope * bend : slope);
    }
  }
}

/// Zeros a group's columns outside the span.
static inline void clearOutside(const Span &span, float *lines) {
  for (int64_t row = 0; row < kGroup; ++row) {
    for (int64_t column = 0; column < span.begin; column += kLanes)
      store(lines + row * kTile + column, Floats{});
    for (int64_t column = span.end; column < kTile; column += kLanes)
      store(lines + row * kTile + column, Floats{});
  }
}

/// Rounds the unit's sums to dq.
template <typename T> static inline void finishUnit(const BackwardCall &call, const Unit &unit) {
  int64_t dim = call.shape.headDim;
  for (int64_t i = 0; i < unit.rows; ++i) {
    int64_t at = (unit.row + i * call.shape.heads) * dim;
    writeRow(call.dqSums + at, 1.0f, static_cast<T *>(call.dq) + at, dim);
  }
}

/// One tile of queries against the tile of keys in scratch.
template <typename T>
static inline void meetTiles(const BackwardCall &call, const Mask &mask, const Dropout &dropout,
                             const Unit &unit, int64_t batch, int64_t key, int64_t item,
                             const BackwardScratch &scratch) {
  const MwAttention &shape = call.shape;
  int64_t depth = call.tiling.depth, dim = shape.headDim, stride = shape.heads * dim;
  int64_t valueDepth = call.tiling.valueDepth, valueDim = shape.valueDim;
  int64_t groupedRows = (unit.rows + kGroup - 1) / kGroup * kGroup;
  copyRows(static_cast<const T *>(call.q) + unit.row * dim, stride, unit.rows, dim, scratch.queries,
           groupedRows, depth);
  copyRows(static_cast<const T *>(call.dout) + unit.row * valueDim, shape.heads * valueDim,
           unit.rows, valueDim, scratch.gradients, groupedRows, valueDepth);
  float *queryWords = scratch.queries, *gradientWords = scratch.gradients;
  if constexpr (WordsOf<T>::count > 1) {
    queryWords = scratch.keysT + depth / WordsOf<T>::count * kTile;
    gradientWords = scratch.valuesT + valueDepth / WordsOf<T>::count * kTile;
    copyWords(static_cast<const T *>(call.q) + unit.row * dim, stride, unit.rows, dim,
              queryWords, groupedRows, depth);
    copyWords(static_cast<const T *>(call.dout) + unit.row * valueDim, shape.heads * valueDim,
              unit.rows, valueDim, gradientWords, groupedRows, valueDepth);
  }
  int64_t words = depth / WordsOf<T>::count, valueWords = valueDepth / WordsOf<T>::count;
  DistanceTile distances;
  if (call.ddistances) {
    distances.gather(shape, unit.head, unit.query, key);
    __builtin_memset(distances.sums, 0, sizeof(distances.sums));
  }
  for (int64_t first = 0; first < groupedRows; first += kGroup) {
    float *weights = scratch.weights + first * kTile, *slopes = scratch.slopes + first * kTile;
    Span span = mask.span(unit.query + first, key);
    // Of a document that begins with a vector nothing in the span is hidden, but what is before it is;
    // so is padding that begins with one.
    if (span.masked || span.begin > 0 || key + span.end < shape.keys) {
      clearOutside(span, weights);
      clearOutside(span, slopes);
    }
    int64_t columns = span.end - span.begin;
    if (columns == 0)
      continue;
    multiplyScores<T>(queryWords + first * words, words, scratch.keysT + span.begin,
                      weights + span.begin, columns, dim, shape.scale);
    multiplyScores<T>(gradientWords + first * valueWords, valueWords, scratch.valuesT + span.begin,
                      slopes + span.begin, columns, valueDim, 1.0f);
    differentiateGroup(call, mask, dropout, unit, batch, first, key, span, distances, weights,
                       slopes);
    multiplyGroup<false, Start::Zero>(slopes + span.first, kTile, scratch.keys + span.first * depth,
                                      depth, scratch.dqueries, depth, depth,
                                      span.past - span.first);
    for (int64_t row = 0; row < smaller(kGroup, unit.rows - first); ++row)
      writeRow<true>(scratch.dqueries + row * depth, shape.scale,
                     call.dqSums + unit.row * dim + (first + row) * stride, dim);
  }
  if (call.ddistances) {
    int64_t head = item * call.tiling.groupHeads + unit.head % call.tiling.groupHeads;
    distances.addTo(call.ddistances + head * shape.distanceCount, shape.distanceCount);
  }
  for (int64_t column = 0; column < kTile; column += kGroup) {
    // Of these queries only those can see any of the group's keys.
    int64_t begin = 0, end = groupedRows;
    int64_t first = (key + column) * mask.keyStride, last = first + (kGroup - 1) * mask.keyStride;
    int64_t reach = mask.mask.reach();
    if (mask.mask.causal)
      begin = larger(0, mask.firstQuery(first) - unit.query);
    else if (reach)
      begin = larger(0, mask.firstQuery(first - reach + 1) - unit.query);
    if (reach)
      end = smaller(end, mask.firstQuery(last + reach) - unit.query);
    if (begin >= end || key + column >= shape.keys)
      continue;
    multiplyGroup<true, Start::C>(
        scratch.weights + begin * kTile + column, kTile, scratch.gradients + begin * valueDepth,
        valueDepth, scratch.dvalues + column * valueDepth, valueDepth, valueDepth, end - begin);
    multiplyGroup<true, Start::C>(scratch.slopes + begin * kTile + column, kTile,
                                  scratch.queries + begin * depth, depth,
                                  scratch.dkeys + column * depth, depth, depth, end - begin);
  }
}

/// Writes the gradients of a tile of keys to where they belong, or to the item's
/// partial sums.
template <typename T>
static inline void writeKeyGradients(const BackwardCall &call, const Dropout &dropout, int64_t item,
                                     int64_t row, int64_t key, const BackwardScratch &scratch) {
  const MwAttention &shape = call.shape;
  const AttentionTiling &tiling = call.tiling;
  int64_t dim = shape.headDim, valueDim = shape.valueDim;
  auto write = [&](auto *dk, auto *dv, int64_t stride, int64_t valueStride) {
    for (int64_t i = 0; i < smaller(kTile, shape.keys - key); ++i) {
      writeRow(scratch.dkeys + i * tiling.depth, shape.scale, dk + i * stride, dim);
      writeRow(scratch.dvalues + i * tiling.valueDepth, dropout.scale, dv + i * valueStride,
               valueDim);
    }
  };
  if (tiling.parts == 1 && shape.partial)
    return write(static_cast<float *>(call.dk) + row * dim,
                 static_cast<float *>(call.dv) + row * valueDim, shape.kvHeads * dim,
                 shape.kvHeads * valueDim);
  if (tiling.parts == 1)
    return write(static_cast<T *>(call.dk) + row * dim, static_cast<T *>(call.dv) + row * valueDim,
                 shape.kvHeads * dim, shape.kvHeads * valueDim);
  float *partials = call.partials + item * (tiling.keyMatrix() + tiling.valueMatrix());
  write(partials + key * tiling.depth, partials + tiling.keyMatrix() + key * tiling.valueDepth,
        tiling.depth, tiling.valueDepth);
}

template <typename T>
static void backwardItemIn(const BackwardCall &call, int64_t item, float *scratchBase) {
  const T *k = static_cast<const T *>(call.k), *v = static_cast<const T *>(call.v);
  const MwAttention &shape = call.shape;
  const AttentionTiling &tiling = call.tiling;
  const Dropout dropout(shape);
  BackwardScratch scratch(tiling, scratchBase);
  int64_t depth = tiling.depth, dim = shape.headDim;
  int64_t valueDepth = tiling.valueDepth, valueDim = shape.valueDim;
  int64_t keyHead = item / tiling.parts, part = item % tiling.parts;
  int64_t batch = keyHead / shape.kvHeads, kvHead = keyHead % shape.kvHeads;
  const Mask mask(shape, batch);
  if (call.ddistances)
    __builtin_memset(call.ddistances + item * tiling.groupHeads * shape.distanceCount, 0,
                     tiling.groupHeads * shape.distanceCount * sizeof(float));

  for (int64_t index = part; index < tiling.units; index += tiling.parts)
    startUnit<T>(call, unitAt(call, batch, kvHead, index));
  for (int64_t key = 0; key < shape.keys; key += kTile) {
    int64_t keys = smaller(kTile, shape.keys - key);
    int64_t row = (batch * shape.keys + key) * shape.kvHeads + kvHead;
    int64_t stride = shape.kvHeads * dim;
    __builtin_memset(scratch.dkeys, 0, kTile * depth * sizeof(float));
    __builtin_memset(scratch.dvalues, 0, kTile * valueDepth * sizeof(float));
    bool isPacked = false; // Many keys are seen by none of a part's queries.
    for (int64_t index = part; index < tiling.units; index += tiling.parts) {
      Unit unit = unitAt(call, batch, kvHead, index);
      if (mask.begin(unit.query) >= key + keys || mask.end(unit.query + unit.rows - 1) <= key)
        continue;
      if (!isPacked) {
        packWords(k + row * dim, stride, keys, dim, shape.scale, scratch.keysT, depth);
        packWords(v + row * valueDim, shape.kvHeads * valueDim, keys, valueDim, 1.0f,
                  scratch.valuesT, valueDepth);
        copyRows(k + row * dim, stride, keys, dim, scratch.keys, kTile, depth);
        isPacked = true;
      }
      meetTiles<T>(call, mask, dropout, unit, batch, key, item, scratch);
    }
    if (tiling.parts > 1)
      call.met[item * tiling.keyTiles + key / kTile] = isPacked ? 1.0f : 0.0f;
    if (tiling.parts == 1 || isPacked)
      writeKeyGradients<T>(call, dropout, item, row, key, scratch);
  }
  if (call.dq != call.dqSums)
    for (int64_t index = part; index < tiling.units; index += tiling.parts)
      finishUnit<T>(call, unitAt(call, batch, kvHead, index));
}

void backwardItem(const BackwardCall &call, int64_t item, float *scratch) {
  switch (call.shape.elementType) {
  case MW_BF16:
    return backwardItemIn<BFloat16>(call, item, scratch);
  case MW_F16:
    return backwardItemIn<Float16>(call, item, scratch);
  default:
    return backwardItemIn<float>(call, item, scratch);
  }
}

} // namespace meshwright::cpu::MW_ISA
