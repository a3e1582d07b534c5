//===- AttentionTiling.h - how attention is split into work items ---------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// Attention is computed tile by tile: 64 queries of one head against 64 keys.
// The query tiles of all heads that read one key head are its "units"; a work
// item is a fixed set of units and has one owner for everything it writes. Sums
// are split by the shape alone - not by threads, not by the instruction set - so
// that results do not depend on the former. How many units a forward item has
// changes no sum and follows the threads; the compiler plans the workspace for
// any number of them without knowing the machine the program will run on.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_RUNTIME_CPU_KERNELS_ATTENTIONTILING_H
#define MESHWRIGHT_RUNTIME_CPU_KERNELS_ATTENTIONTILING_H

#include "meshwright/runtime/ABI.h"

namespace meshwright::cpu {

/// Queries, and keys, of one tile.
constexpr int64_t kTile = 64;
/// Query rows handled together: masks are decided, and work is skipped, at this
/// granularity.
constexpr int64_t kGroup = 8;
/// Rows of scratch tiles are padded to a multiple of the widest vector.
constexpr int64_t kPad = 16;
/// Threads that can work on one call; each needs scratch.
constexpr int64_t kMaxThreads = 64;

struct AttentionTiling {
  /// `threads`: those that share out the forward items.
  explicit AttentionTiling(const MwAttention &shape, int64_t threads = kMaxThreads);

  int64_t depth;      ///< headDim rounded up to kPad
  int64_t valueDepth; ///< valueDim rounded up to kPad
  int64_t groupHeads; ///< query heads per key head
  int64_t queryTiles, keyTiles;
  int64_t units;    ///< queryTiles * groupHeads; unit u is tile u / groupHeads
  int64_t keyHeads; ///< batch * kvHeads

  /// Forward: each item takes `unitsPerItem` consecutive units of a key head.
  int64_t unitsPerItem, chunks;
  int64_t forwardItems() const { return keyHeads * chunks; }

  /// Backward: part p of a key head takes its units p, p + parts, ...; with more
  /// than one part, key and value gradients are summed afterwards, in order.
  int64_t parts;
  int64_t backwardItems() const { return keyHeads * parts; }

  /// In floats: one thread's scratch, row terms, and partial key gradients.
  int64_t forwardScratch, backwardScratch, deltaSize, partialSize;
  /// In floats: one item's partial gradients of keys, and of values.
  int64_t keyMatrix() const { return keyTiles * kTile * depth; }
  int64_t valueMatrix() const { return keyTiles * kTile * valueDepth; }
  /// dq in f32, where tensors are narrower.
  int64_t dqSize;
  /// Each item's gradients of distances, [item][groupHeads][distanceCount].
  int64_t distancesSize;
};

/// One thread's scratch in the forward pass.
struct ForwardScratch {
  ForwardScratch(const AttentionTiling &tiling, float *base);
  float *queries; ///< [units of item * kTile][depth], as words (Words.h)
  float *output;  ///< [units of item * kTile][valueDepth], not yet normalised
  float *rowMax;  ///< [units of item * kTile]
  float *rowSum;  ///< [units of item * kTile][kPad], a sum per vector lane
  float *keys;    ///< [depth][kTile], as words; times the scale where those are elements
  float *values;  ///< [kTile][valueDepth]
  float *scores;  ///< [kGroup][kTile]
  int64_t size;   ///< of all, in floats
};

/// One thread's scratch in the backward pass.
struct BackwardScratch {
  BackwardScratch(const AttentionTiling &tiling, float *base);
  /// [depth][kTile] and [valueDepth][kTile], as words; keys times the scale where those are elements.
  /// Pairs take half of it, and behind them are queries and gradients as pairs.
  float *keysT, *valuesT;
  float *keys, *queries;      ///< [kTile][depth]
  float *gradients;           ///< [kTile][valueDepth]
  float *weights, *slopes;    ///< [kTile][kTile]: P and dS
  float *dkeys;               ///< [kTile][depth]
  float *dvalues;             ///< [kTile][valueDepth]
  float *dqueries;            ///< [kGroup][depth]
  int64_t size;               ///< of all, in floats
};

struct ForwardCall {
  const MwAttention &shape;
  const AttentionTiling &tiling;
  const void *q, *k, *v; ///< of the shape's elementType
  /// Results for other keys, like out and lse, or null.
  const float *before, *beforeLse;
  void *out; ///< of the shape's elementType; in f32 if it is partial
  float *lse;
};

struct BackwardCall {
  const MwAttention &shape;
  const AttentionTiling &tiling;
  const void *dout, *q, *k, *v, *out; ///< of the shape's elementType
  const float *lse;
  void *dq, *dk, *dv; ///< of the shape's elementType; in f32 if it is partial
  float *dqSums;      ///< like dq in f32, which may be dq itself
  float *delta;       ///< [batch][heads][queries]: sum over valueDim of dout * out
  float *partials;    ///< [item][dk, dv][keyTiles * kTile][depth of it], if parts > 1
  float *ddistances;  ///< [item][groupHeads][distanceCount], or null
  float *met;         ///< [item][keyTiles]: 1 where the item has partials of the tile, else 0
};

/// The kernels of one instruction set.
struct AttentionKernels {
  const char *name;
  void (*forward)(const ForwardCall &call, int64_t item, float *scratch);
  void (*backward)(const BackwardCall &call, int64_t item, float *scratch);
};

/// Those this machine can run, best first.
const AttentionKernels *const *availableAttentionKernels(int *count);

/// The public entry points with the kernels chosen by the caller, for tests.
void attentionForward(const AttentionKernels &kernels, int threads, const MwAttention &shape,
                      const void *q, const void *k, const void *v, const float *before,
                      const float *beforeLse, void *out, float *lse, void *workspace);
void attentionBackward(const AttentionKernels &kernels, int threads, const MwAttention &shape,
                       const void *dout, const void *q, const void *k, const void *v,
                       const void *out, const float *lse, void *dq, void *dk, void *dv,
                       float *dsinks, float *ddistances, void *workspace);

} // namespace meshwright::cpu

#endif // MESHWRIGHT_RUNTIME_CPU_KERNELS_ATTENTIONTILING_H
