//===- AttentionTiling.cpp - how attention is split into work items -------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// Depends on nothing but the shape and the number of threads, so that the compiler can link it too.
//
//===----------------------------------------------------------------------===//
#include "AttentionTiling.h"

#include <algorithm>

using namespace meshwright::cpu;

/// Enough forward items for each thread that the uneven ones of a causal mask even out.
constexpr int64_t kForwardItems = 16;
/// Units that share one packing of the keys.
constexpr int64_t kMaxUnitsPerItem = 4;
/// Backward items wanted where the batch and heads alone give fewer. Each more
/// costs a copy of the key and value gradients, so it has work enough for that.
constexpr int64_t kBackwardItems = 16, kUnitsPerPart = 16;

static int64_t ceilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

AttentionTiling::AttentionTiling(const MwAttention &shape, int64_t threads)
    : depth(ceilDiv(shape.headDim, kPad) * kPad), valueDepth(ceilDiv(shape.valueDim, kPad) * kPad),
      groupHeads(shape.heads / shape.kvHeads), queryTiles(ceilDiv(shape.queries, kTile)),
      keyTiles(ceilDiv(shape.keys, kTile)), units(queryTiles * groupHeads),
      keyHeads(shape.batch * shape.kvHeads) {
  int64_t total = keyHeads * units;
  unitsPerItem = std::clamp<int64_t>(total / (kForwardItems * std::min(threads, kMaxThreads)), 1,
                                     kMaxUnitsPerItem);
  chunks = ceilDiv(units, unitsPerItem);
  parts = std::clamp<int64_t>(ceilDiv(kBackwardItems, std::max<int64_t>(keyHeads, 1)), 1,
                              std::max<int64_t>(units / kUnitsPerPart, 1));
  forwardScratch = ForwardScratch(*this, nullptr).size;
  backwardScratch = BackwardScratch(*this, nullptr).size;
  deltaSize = ceilDiv(shape.batch * shape.heads * shape.queries, kPad) * kPad;
  partialSize = parts > 1 ? backwardItems() * (keyMatrix() + valueMatrix()) +
                                ceilDiv(backwardItems() * keyTiles, kPad) * kPad
                          : 0;
  int64_t queryElements = shape.batch * shape.queries * shape.heads * shape.headDim;
  distancesSize = ceilDiv(backwardItems() * groupHeads * shape.distanceCount, kPad) * kPad;
  dqSize = shape.elementType == MW_F32 || shape.partial ? 0 : ceilDiv(queryElements, kPad) * kPad;
}

namespace {
/// Hands out consecutive pieces of a buffer, or only counts if there is none.
struct Carver {
  float *base;
  int64_t used = 0;

  float *take(int64_t floats) {
    float *piece = base ? base + used : nullptr;
    // The extra line keeps equal rows of neighbours in different cache sets.
    used += ceilDiv(floats, kPad) * kPad + kPad;
    return piece;
  }
};
} // namespace

ForwardScratch::ForwardScratch(const AttentionTiling &tiling, float *base) {
  Carver carver{base};
  int64_t rows = tiling.unitsPerItem * kTile;
  queries = carver.take(rows * tiling.depth);
  output = carver.take(rows * tiling.valueDepth);
  rowMax = carver.take(rows);
  rowSum = carver.take(rows * kPad);
  keys = carver.take(kTile * tiling.depth);
  values = carver.take(kTile * tiling.valueDepth);
  scores = carver.take(kGroup * kTile);
  size = carver.used;
}

BackwardScratch::BackwardScratch(const AttentionTiling &tiling, float *base) {
  Carver carver{base};
  int64_t tile = kTile * tiling.depth, valueTile = kTile * tiling.valueDepth;
  keysT = carver.take(tile);
  valuesT = carver.take(valueTile);
  keys = carver.take(tile);
  queries = carver.take(tile);
  gradients = carver.take(valueTile);
  weights = carver.take(kTile * kTile);
  slopes = carver.take(kTile * kTile);
  dkeys = carver.take(tile);
  dvalues = carver.take(valueTile);
  dqueries = carver.take(kGroup * tiling.depth);
  size = carver.used;
}

int64_t mw_attention_forward_workspace(const MwAttention *shape) {
  int64_t most = 0;
  for (int64_t threads = 1; threads <= kMaxThreads; ++threads) {
    AttentionTiling tiling(*shape, threads);
    most = std::max(most, std::min(tiling.forwardItems(), threads) * tiling.forwardScratch);
  }
  return most * int64_t(sizeof(float));
}

int64_t mw_attention_backward_workspace(const MwAttention *shape) {
  AttentionTiling tiling(*shape);
  int64_t slots = std::min(tiling.backwardItems(), kMaxThreads);
  return (slots * tiling.backwardScratch + tiling.deltaSize + tiling.partialSize + tiling.dqSize +
          tiling.distancesSize) *
         int64_t(sizeof(float));
}
