//===- AttentionForward.cpp - one work item of attention, forward ---------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// The online softmax of FlashAttention-2 (Dao, 2023): for each tile of keys, 8
// query rows at a time, S = q (scale k)^T, then P = exp(S - rowMax), and
// O = O * correction + P v; O is divided by the row sums at the end.
// Compiled once for each instruction set; see Simd.h.
//
//===----------------------------------------------------------------------===//
#include "AttentionTile.h"
#include "MicroKernel.h"

namespace meshwright::cpu::MW_ISA {

static constexpr float kInfinity = __builtin_inff();

namespace {
/// One group of rows as it meets a tile of keys.
struct Group {
  int64_t query, key; ///< numbers of the first row and the first column
  Span span;
  float *rowMax, *rowSum, *output;
};
} // namespace

/// Replaces the group's scores by cap * tanh(scores / cap).
static inline void capGroup(const Span &span, float cap, float *scores) {
  for (int64_t row = 0; row < kGroup; ++row)
    for (int64_t column = span.begin; column < span.end; column += kLanes) {
      float *at = scores + row * kTile + column;
      store(at, cap * hyperbolicTangent(load(at) * (1.0f / cap)));
    }
}

/// Adds to the group's scores what the head's slope makes of distances.
static inline void biasGroup(const Group &group, const MwAttention &shape, int64_t head,
                             float *scores) {
  for (int64_t row = 0; row < kGroup; ++row) {
    Bias bias(shape, head, group.query + row, group.key);
    for (int64_t column = group.span.begin; column < group.span.end; column += kLanes) {
      float *at = scores + row * kTile + column;
      store(at, load(at) + bias.at(column));
    }
  }
}

/// ... and what the head's distances add, of a group that begins with row `first` of its tile.
static inline void addDistances(const Group &group, const DistanceTile &distances, int64_t first,
                                float *scores) {
  for (int64_t row = 0; row < kGroup; ++row)
    for (int64_t column = group.span.begin; column < group.span.end; column += kLanes) {
      float *at = scores + row * kTile + column;
      store(at, load(at) + distances.at(first + row, column));
    }
}

/// Sets the group's new row maxima and writes, for each row, what its earlier
/// sums must be multiplied by.
static inline void updateMaxima(const Group &group, const Mask &mask, float *scores,
                                float *corrections) {
  alignas(64) float change[kPad];
  for (int64_t row = 0; row < kGroup; ++row) {
    float *line = scores + row * kTile;
    VisibleColumns visible(mask, group.query + row, group.key);
    Floats maxima = splat(-kInfinity);
    for (int64_t column = group.span.begin; column < group.span.end; column += kLanes) {
      Floats score = load(line + column);
      if (group.span.masked) {
        score = visible.at(column) ? score : splat(-kInfinity);
        store(line + column, score);
      }
      maxima = maximum(maxima, score);
    }
    float before = group.rowMax[row];
    float now = horizontalMaximum(maxima);
    now = before > now ? before : now;
    group.rowMax[row] = now;
    // Rows that have seen no key yet: nothing to correct, and no inf - inf.
    change[row] = now == before ? 0.0f : before - now;
  }
  for (int64_t row = 0; row < kGroup; row += kLanes)
    store(corrections + row, exponential(load(change + row)));
}

static inline void weighGroup(const Group &group, const Dropout &dropout, uint64_t index,
                              uint64_t rowIndices, float *scores, const float *corrections) {
  for (int64_t row = 0; row < kGroup; ++row) {
    float *line = scores + row * kTile;
    float rowMax = group.rowMax[row];
    if (rowMax == -kInfinity)
      rowMax = 0.0f;
    Floats sum = load(group.rowSum + row * kPad) * corrections[row];
    for (int64_t column = group.span.begin; column < group.span.end; column += kLanes) {
      Floats weight = exponential(load(line + column) - rowMax);
      sum += weight;
      if (dropout.active)
        weight = dropout.keep(index + row * rowIndices, column) ? weight : Floats{};
      store(line + column, weight);
    }
    store(group.rowSum + row * kPad, sum);
  }
}

template <typename T>
static void forwardItemIn(const ForwardCall &call, int64_t item, float *scratchBase) {
  const T *q = static_cast<const T *>(call.q), *k = static_cast<const T *>(call.k),
          *v = static_cast<const T *>(call.v);
  const MwAttention &shape = call.shape;
  const AttentionTiling &tiling = call.tiling;
  const Dropout dropout(shape);
  ForwardScratch scratch(tiling, scratchBase);
  int64_t depth = tiling.depth, dim = shape.headDim, words = depth / WordsOf<T>::count;
  int64_t valueDepth = tiling.valueDepth, valueDim = shape.valueDim;
  int64_t keyHead = item % tiling.keyHeads;
  int64_t batch = keyHead / shape.kvHeads, kvHead = keyHead % shape.kvHeads;
  const Mask mask(shape, batch);
  // Long items of a causal mask first.
  int64_t firstUnit = (tiling.chunks - 1 - item / tiling.keyHeads) * tiling.unitsPerItem;
  int64_t units = smaller(tiling.unitsPerItem, tiling.units - firstUnit);
  auto firstQuery = [&](int64_t unit) { return (firstUnit + unit) / tiling.groupHeads * kTile; };
  auto headOf = [&](int64_t unit) {
    return kvHead * tiling.groupHeads + (firstUnit + unit) % tiling.groupHeads;
  };
  auto rowsOf = [&](int64_t unit) { return smaller(kTile, shape.queries - firstQuery(unit)); };

  for (int64_t unit = 0; unit < units; ++unit) {
    int64_t row = (batch * shape.queries + firstQuery(unit)) * shape.heads + headOf(unit);
    copyWords(q + row * dim, shape.heads * dim, rowsOf(unit), dim,
              scratch.queries + unit * kTile * words, kTile, depth);
  }
  int64_t rows = units * kTile;
  __builtin_memset(scratch.output, 0, rows * valueDepth * sizeof(float));
  __builtin_memset(scratch.rowSum, 0, rows * kPad * sizeof(float));
  for (int64_t row = 0; row < rows; ++row) {
    // A sink is as a first key whose value is 0.
    scratch.rowMax[row] = shape.sinks ? shape.sinks[headOf(row / kTile)] : -kInfinity;
    scratch.rowSum[row * kPad] = shape.sinks ? 1.0f : 0.0f;
  }
  // And what other keys gave as one with their result as its value.
  if (call.before)
    for (int64_t unit = 0; unit < units; ++unit)
      for (int64_t row = 0; row < rowsOf(unit); ++row) {
        int64_t query = firstQuery(unit) + row, head = headOf(unit), line = unit * kTile + row;
        float lse = call.beforeLse[(batch * shape.heads + head) * shape.queries + query];
        if (lse == -kInfinity)
          continue;
        scratch.rowMax[line] = lse;
        scratch.rowSum[line * kPad] = 1.0f;
        writeRow(call.before +
                     ((batch * shape.queries + query) * shape.heads + head) * valueDim,
                 1.0f / dropout.scale, scratch.output + line * valueDepth, valueDim);
      }

  // Units are ordered by position, so the first sees the first key of all.
  int64_t begin = mask.begin(firstQuery(0)) / kTile * kTile;
  int64_t end = mask.end(firstQuery(units - 1) + rowsOf(units - 1) - 1);
  for (int64_t key = begin; key < end; key += kTile) {
    int64_t keys = smaller(kTile, shape.keys - key);
    int64_t row = (batch * shape.keys + key) * shape.kvHeads + kvHead;
    packWords(k + row * dim, shape.kvHeads * dim, keys, dim, shape.scale, scratch.keys, depth);
    copyRows(v + row * valueDim, shape.kvHeads * valueDim, keys, valueDim, scratch.values, kTile,
             valueDepth);
    for (int64_t unit = 0; unit < units; ++unit) {
      DistanceTile distances;
      if (shape.distances)
        distances.gather(shape, headOf(unit), firstQuery(unit), key);
      for (int64_t first = 0; first < rowsOf(unit); first += kGroup) {
        int64_t query = firstQuery(unit) + first, line = unit * kTile + first;
        Group group{query,
                    key,
                    mask.span(query, key),
                    scratch.rowMax + line,
                    scratch.rowSum + line * kPad,
                    scratch.output + line * valueDepth};
        int64_t columns = group.span.end - group.span.begin;
        if (columns == 0)
          continue;
        multiplyScores<T>(scratch.queries + line * words, words, scratch.keys + group.span.begin,
                          scratch.scores + group.span.begin, columns, dim, shape.scale);
        if (shape.cap > 0)
          capGroup(group.span, shape.cap, scratch.scores);
        if (shape.slopes)
          biasGroup(group, shape, headOf(unit), scratch.scores);
        if (shape.distances)
          addDistances(group, distances, first, scratch.scores);
        alignas(64) float corrections[kPad];
        updateMaxima(group, mask, scratch.scores, corrections);
        uint64_t index =
            dropout.active ? Dropout::indexOf(shape, batch, headOf(unit), query, key) : 0;
        weighGroup(group, dropout, index, uint64_t(allKeysOf(shape) * queryStrideOf(shape)),
                   scratch.scores, corrections);
        multiplyGroup<false, Start::ScaledC>(scratch.scores + group.span.first, kTile,
                                             scratch.values + group.span.first * valueDepth,
                                             valueDepth, group.output, valueDepth, valueDepth,
                                             group.span.past - group.span.first, corrections);
      }
    }
  }

  for (int64_t unit = 0; unit < units; ++unit)
    for (int64_t row = 0; row < rowsOf(unit); ++row) {
      int64_t query = firstQuery(unit) + row, head = headOf(unit), line = unit * kTile + row;
      float sum = horizontalSum(load(scratch.rowSum + line * kPad));
      // A query that sees no key has output 0 and the logarithm of 0.
      float scale = sum == 0.0f ? 0.0f : dropout.scale / sum;
      int64_t at = ((batch * shape.queries + query) * shape.heads + head) * valueDim;
      const float *from = scratch.output + line * valueDepth;
      if (shape.partial)
        writeRow(from, scale, static_cast<float *>(call.out) + at, valueDim);
      else
        writeRow(from, scale, static_cast<T *>(call.out) + at, valueDim);
      call.lse[(batch * shape.heads + head) * shape.queries + query] =
          sum == 0.0f ? -kInfinity : scratch.rowMax[line] + __builtin_logf(sum);
    }
}

void forwardItem(const ForwardCall &call, int64_t item, float *scratch) {
  switch (call.shape.elementType) {
  case MW_BF16:
    return forwardItemIn<BFloat16>(call, item, scratch);
  case MW_F16:
    return forwardItemIn<Float16>(call, item, scratch);
  default:
    return forwardItemIn<float>(call, item, scratch);
  }
}

} // namespace meshwright::cpu::MW_ISA
