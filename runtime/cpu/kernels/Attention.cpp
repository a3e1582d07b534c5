//===- Attention.cpp - attention's entry points ---------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// Chooses the instruction set and hands work items to threads. The arithmetic is
// in AttentionForward.cpp and AttentionBackward.cpp.
//
//===----------------------------------------------------------------------===//
#include "AttentionTiling.h"
#include "InstructionSet.h"
#include "common/launch/Threads.h"
#include "common/plan/ElementType.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>
#include <omp.h>

namespace meshwright::cpu {

#define MW_DECLARE_VARIANT(ISA)                                                                    \
  namespace ISA {                                                                                  \
  void forwardItem(const ForwardCall &call, int64_t item, float *scratch);                         \
  void backwardItem(const BackwardCall &call, int64_t item, float *scratch);                       \
  static const AttentionKernels attentionKernels = {#ISA, forwardItem, backwardItem};              \
  }
MW_FOR_EACH_ISA(MW_DECLARE_VARIANT)

#define MW_LIST_VARIANT(ISA) &ISA::attentionKernels,
const AttentionKernels *const *availableAttentionKernels(int *count) {
  static const AttentionKernels *const all[] = {MW_FOR_EACH_ISA(MW_LIST_VARIANT)};
  int first = bestInstructionSet();
  *count = int(std::size(all)) - first;
  return all + first;
}

static const AttentionKernels &bestKernels() {
  static const AttentionKernels *const best = [] {
    int count;
    return availableAttentionKernels(&count)[0];
  }();
  return *best;
}

/// Calls body(item, scratch) for each item; each thread has its own scratch.
template <typename Body>
static void forEachItem(int threads, int64_t items, float *scratch, int64_t scratchSize,
                        Body body) {
  int team = int(std::min({int64_t(threads), items, kMaxThreads}));
  if (team <= 1) {
    for (int64_t item = 0; item < items; ++item)
      body(item, scratch);
    return;
  }
#pragma omp parallel num_threads(team)
  {
    float *own = scratch + omp_get_thread_num() * scratchSize;
#pragma omp for schedule(dynamic, 1)
    for (int64_t item = 0; item < items; ++item)
      body(item, own);
  }
}

void attentionForward(const AttentionKernels &kernels, int threads, const MwAttention &shape,
                      const void *q, const void *k, const void *v, const float *before,
                      const float *beforeLse, void *out, float *lse, void *workspace) {
  AttentionTiling tiling(shape, threads);
  ForwardCall call{shape, tiling, q, k, v, before, beforeLse, out, lse};
  forEachItem(threads, tiling.forwardItems(), static_cast<float *>(workspace),
              tiling.forwardScratch,
              [&](int64_t item, float *scratch) { kernels.forward(call, item, scratch); });
}

/// Writes a row of gradients in the tensors' type.
static void writeRow(int32_t type, const float *from, void *to, int64_t at, int64_t count) {
  if (type == MW_F32) {
    std::memcpy(static_cast<float *>(to) + at, from, count * sizeof(float));
    return;
  }
  uint16_t *bits = static_cast<uint16_t *>(to) + at;
  for (int64_t i = 0; i < count; ++i)
    bits[i] = type == MW_BF16 ? floatToBf16(from[i]) : floatToF16(from[i]);
}

/// Sums the parts' gradients of one row of keys and values, always in the same order. Parts whose
/// queries see none of the tile have none.
static void sumPartials(const BackwardCall &call, int64_t keyHead, int64_t key) {
  const MwAttention &shape = call.shape;
  const AttentionTiling &tiling = call.tiling;
  int64_t item = tiling.keyMatrix() + tiling.valueMatrix();
  int64_t batch = keyHead / shape.kvHeads, head = keyHead % shape.kvHeads;
  int64_t row = (batch * shape.keys + key) * shape.kvHeads + head;
  const float *met = call.met + keyHead * tiling.parts * tiling.keyTiles + key / kTile;
  auto add = [&](float *first, void *to, int64_t dim) {
    float *sum = nullptr;
    for (int64_t part = 0; part < tiling.parts; ++part) {
      float *from = first + part * item;
      if (met[part * tiling.keyTiles] == 0)
        continue;
      if (!sum)
        sum = from;
      else
        for (int64_t d = 0; d < dim; ++d)
          sum[d] += from[d];
    }
    if (!sum) {
      std::fill_n(first, dim, 0.0f);
      sum = first;
    }
    writeRow(shape.partial ? MW_F32 : shape.elementType, sum, to, row * dim, dim);
  };
  float *first = call.partials + keyHead * tiling.parts * item;
  add(first + key * tiling.depth, call.dk, shape.headDim);
  add(first + tiling.keyMatrix() + key * tiling.valueDepth, call.dv, shape.valueDim);
}

/// A sink's weight takes part in delta with the value 0.
static void writeSinkGradients(const BackwardCall &call, float *dsinks) {
  const MwAttention &shape = call.shape;
  for (int64_t head = 0; head < shape.heads; ++head) {
    double sum = 0;
    for (int64_t batch = 0; batch < shape.batch; ++batch)
      for (int64_t query = 0; query < shape.queries; ++query) {
        int64_t term = (batch * shape.heads + head) * shape.queries + query;
        sum += std::exp(double(shape.sinks[head]) - call.lse[term]) * call.delta[term];
      }
    dsinks[head] = float(-sum);
  }
}

/// Sums the items' gradients of distances, always in the same order.
static void sumDistances(const BackwardCall &call, float *ddistances) {
  const MwAttention &shape = call.shape;
  const AttentionTiling &tiling = call.tiling;
  for (int64_t head = 0; head < shape.heads; ++head) {
    int64_t kvHead = head / tiling.groupHeads, inGroup = head % tiling.groupHeads;
    for (int64_t row = 0; row < shape.distanceCount; ++row) {
      double sum = 0;
      for (int64_t batch = 0; batch < shape.batch; ++batch)
        for (int64_t part = 0; part < tiling.parts; ++part) {
          int64_t item = (batch * shape.kvHeads + kvHead) * tiling.parts + part;
          sum += call.ddistances[(item * tiling.groupHeads + inGroup) * shape.distanceCount + row];
        }
      ddistances[row * shape.heads + head] = float(sum);
    }
  }
}

void attentionBackward(const AttentionKernels &kernels, int threads, const MwAttention &shape,
                       const void *dout, const void *q, const void *k, const void *v,
                       const void *out, const float *lse, void *dq, void *dk, void *dv,
                       float *dsinks, float *ddistances, void *workspace) {
  AttentionTiling tiling(shape);
  float *delta = static_cast<float *>(workspace);
  float *partials = delta + tiling.deltaSize;
  float *sums = partials + tiling.partialSize;
  float *distanceSums = sums + tiling.dqSize;
  float *scratch = distanceSums + tiling.distancesSize;
  if (tiling.dqSize == 0)
    sums = static_cast<float *>(dq);
  float *met = partials + tiling.backwardItems() * (tiling.keyMatrix() + tiling.valueMatrix());
  BackwardCall call{shape, tiling, dout, q,     k,        v,
                    out,   lse,    dq,   dk,    dv,       sums,
                    delta, partials, shape.distances ? distanceSums : nullptr, met};
  forEachItem(threads, tiling.backwardItems(), scratch, tiling.backwardScratch,
              [&](int64_t item, float *own) { kernels.backward(call, item, own); });
  if (shape.sinks)
    writeSinkGradients(call, dsinks);
  if (shape.distances)
    sumDistances(call, ddistances);
  if (tiling.parts == 1)
    return;
  forEachItem(threads, tiling.keyHeads * tiling.keyTiles, nullptr, 0, [&](int64_t item, float *) {
    int64_t keyHead = item / tiling.keyTiles, begin = item % tiling.keyTiles * kTile;
    for (int64_t key = begin, end = std::min(begin + kTile, shape.keys); key < end; ++key)
      sumPartials(call, keyHead, key);
  });
}

} // namespace meshwright::cpu

void mw_attention_forward(MwContext *context, const MwAttention *shape, const void *q,
                          const void *k, const void *v, const float *before,
                          const float *beforeLse, void *out, float *lse, void *workspace) {
  using namespace meshwright::cpu;
  attentionForward(bestKernels(), mw_context_threads(context), *shape, q, k, v, before, beforeLse,
                   out, lse, workspace);
}

void mw_attention_backward(MwContext *context, const MwAttention *shape, const void *dout,
                           const void *q, const void *k, const void *v, const void *out,
                           const float *lse, void *dq, void *dk, void *dv, float *dsinks,
                           float *ddistances, void *workspace) {
  using namespace meshwright::cpu;
  attentionBackward(bestKernels(), mw_context_threads(context), *shape, dout, q, k, v, out, lse, dq,
                    dk, dv, dsinks, ddistances, workspace);
}
