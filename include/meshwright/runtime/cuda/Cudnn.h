//===- Cudnn.h - what cuDNN's attention takes, known to both sides --------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// The compiler computes the scratch memory of cuDNN's attention without having cuDNN; the
// runtime gives cuDNN the same parts of a call and takes none of cuDNN's plans that needs more.
// A test compares both with cuDNN's own plans.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_RUNTIME_CUDA_CUDNN_H
#define MESHWRIGHT_RUNTIME_CUDA_CUDNN_H

#include "meshwright/runtime/ABI.h"
#include "meshwright/runtime/AttentionMask.h"

#include <string>

namespace meshwright::cudnn {

/// A call of attention as far as cuDNN's kernels depend on it.
struct Attention {
  MwAttention sizes = {}; ///< without addresses
  bool slopes = false, sinks = false, queryOffset = false, documents = false;
  bool lengths = false, distances = false;
  bool backward = false;
  bool deterministic = false; ///< the gradient has the same bits on every run
};

/// Why cuDNN cannot make the call on GPUs of architecture `arch` (90 of sm_90), and what
/// it could; empty if it can.
inline std::string whyNot(const Attention &call, int64_t arch) {
  const MwAttention &s = call.sizes;
  auto number = [](int64_t value) { return std::to_string(value); };
  // Only Hopper's gradients know larger ones, and one kind of kernel for both directions
  // is simpler to reason about.
  int64_t most = arch / 10 == 9 ? 256 : 128;
  if (s.elementType != MW_BF16 && s.elementType != MW_F16)
    return "elements are f32; cuDNN's are bf16 and f16";
  if (s.headDim % 8 != 0)
    return "heads have " + number(s.headDim) + " elements; cuDNN's have a multiple of 8";
  if (s.headDim > most)
    return "heads have " + number(s.headDim) + " elements; on sm_" + number(arch) +
           " cuDNN's have up to " + number(most);
  if (s.valueDim != s.headDim)
    return "heads have " + number(s.headDim) + " elements and their values " + number(s.valueDim) +
           "; cuDNN's kernels that are used here have as many of both";
  if (call.slopes || call.sinks)
    return std::string("heads have ") + (call.slopes ? "slopes" : "sinks") +
           "; cuDNN's kernels that are used here have none";
  if (call.documents)
    return "sequences hold several documents (--packed); cuDNN's kernels that are used here see all of "
           "a sequence";
  if (call.lengths)
    return "sequences of keys are padded, each from a length of its own on; cuDNN's kernels that are used "
           "here see all of a sequence";
  if (call.distances)
    return "distances have scores of their own; cuDNN's kernels that are used here have none";
  if (s.chunk)
    return "queries see chunks of " + number(s.chunk) + " keys; cuDNN's kernels that are used here have windows alone";
  if (s.partial)
    return "keys are a part of a sequence, whose results are added to others in f32; cuDNN's are rounded";
  if (call.queryOffset)
    return "queries are a part of a sequence, in which they begin anywhere; cuDNN's kernels that "
           "are used here begin at 0";
  if (s.dropout != 0)
    return "dropout is " + number(int64_t(s.dropout * 100 + 0.5f)) +
           "%; cuDNN draws numbers of its own, so only 0 works there";
  if (s.cap != 0)
    return "scores are capped; cuDNN's kernels that are used here have no cap";
  if (s.queries < 2 || s.keys < 2)
    return "sequences have a single element; cuDNN needs 2 or more";
  if (s.window && s.queries > s.keys)
    return "a window over " + number(s.queries) + " queries and " + number(s.keys) +
           " keys; cuDNN needs as many keys as queries or more";
  // cuDNN does not mask the tail of the last 128 keys there, so that rows whose scores are all
  // below -88 get gradients that are not numbers (PyTorch's issue 196678; causal calls do not).
  if (call.backward && arch / 10 == 9 && !s.causal && s.keys % 128 == 64)
    return number(s.keys) + " keys without a causal mask; on sm_" + number(arch) +
           " cuDNN's gradients are wrong for 64 keys more than a multiple of 128";
  return "";
}

/// How much of a call cuDNN is given at a time: so many sequences, and heads of each.
struct Part {
  int64_t batch, heads, kvHeads;
};

/// Up to this much is spent on the products of queries and keys, which the deterministic
/// gradient of all but Blackwell stores instead of adding to dq in any order. They grow with
/// the square of the sequence, so large calls go in parts, each of which fills a GPU still.
constexpr int64_t mostProductBytes = int64_t(1) << 30;

inline int64_t roundUp(int64_t size, int64_t unit) { return (size + unit - 1) / unit * unit; }

inline bool storesProducts(const Attention &call, int64_t arch) {
  return call.backward && call.deterministic && arch / 10 != 10;
}

/// Bytes of those products for one head of one sequence.
inline int64_t productBytes(const MwAttention &s, int64_t arch) {
  return roundUp(s.queries, 64) * roundUp(s.keys, arch / 10 == 9 ? 128 : 64) * 2;
}

/// Parts have the same size, whole groups of heads that share keys, and several sequences
/// only with all heads.
inline Part partOf(const Attention &call, int64_t arch) {
  const MwAttention &s = call.sizes;
  if (!storesProducts(call, arch))
    return {s.batch, s.heads, s.kvHeads};
  int64_t head = productBytes(s, arch), group = s.heads / s.kvHeads;
  for (int64_t parts = 1; parts <= s.batch; ++parts)
    if (s.batch % parts == 0 && s.batch / parts * s.heads * head <= mostProductBytes)
      return {s.batch / parts, s.heads, s.kvHeads};
  for (int64_t parts = 2; parts <= s.kvHeads; ++parts)
    if (s.kvHeads % parts == 0 && s.heads / parts * head <= mostProductBytes)
      return {1, s.heads / parts, s.kvHeads / parts};
  return {1, group, 1};
}

/// Bytes of what the kernels of a gradient leave for each other in scratch memory.
struct Intermediates {
  int64_t products; ///< of queries and keys
  int64_t sums;     ///< all else
};

/// Those of `heads` heads, counted over sequences.
inline Intermediates intermediatesOf(const Attention &call, int64_t heads, int64_t arch) {
  const MwAttention &s = call.sizes;
  int64_t keys = heads * s.keys * s.headDim;
  bool shared = s.heads != s.kvHeads;   // keys, by several heads
  int64_t sums = heads * s.queries * 4; // dout times out, summed over a head
  if (call.deterministic && arch / 10 == 10)
    return {0, sums + (shared ? 8 * keys : 0)}; // dk and dv of each head in f32
  sums += shared ? 4 * keys : 0;                // dk and dv of each head
  if (call.deterministic)
    return {heads * productBytes(s, arch), sums};
  return {0, sums + 4 * heads * s.queries * s.headDim}; // dq in f32
}

/// Bytes of scratch memory that cuDNN asks for at most on GPUs of `arch`, its own and its
/// frontend's: found from what its plans say (9.19), and held against them by a test.
inline int64_t workspaceBytes(const Attention &call, int64_t arch) {
  constexpr int64_t headers = 512;
  if (!call.backward)
    return headers;
  const MwAttention &s = call.sizes;
  Part part = partOf(call, arch);
  int64_t heads = part.batch * part.heads;
  Intermediates kept = intermediatesOf(call, heads, arch);
  int64_t bytes = headers + kept.products + kept.sums;
  if (call.deterministic || arch / 10 == 9)
    return bytes;
  // Ampere's kernels, which Blackwell has for small shapes too, keep another dq in f32.
  return bytes + 4 * heads * roundUp(s.queries, 8) * s.headDim;
}

/// Bytes that a call writes to scratch memory, and then reads there, at least: products of
/// queries and keys only where a query sees the key.
inline int64_t leastScratchTraffic(const Attention &call, int64_t arch) {
  if (!call.backward)
    return 0;
  const MwAttention &s = call.sizes;
  Intermediates all = intermediatesOf(call, s.batch * s.heads, arch);
  double seen =
      attentionMaskOf(s).visiblePairs(s.queries, s.keys) / double(s.queries) / double(s.keys);
  return all.sums + int64_t(double(all.products) * seen);
}

} // namespace meshwright::cudnn

#endif // MESHWRIGHT_RUNTIME_CUDA_CUDNN_H
