//===- AttentionMask.h - which keys queries see -----------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_RUNTIME_ATTENTIONMASK_H
#define MESHWRIGHT_RUNTIME_ATTENTIONMASK_H

#include <algorithm>
#include <cstdint>

namespace meshwright {

/// Which keys a query of a sequence sees, by their positions. Every mask is an interval of keys whose ends do
/// not fall from one query to the next: kernels, FLOPs, and the division of work among devices rely on that.
struct AttentionMask {
  bool causal = false; ///< key <= query
  int64_t window = 0;  ///< |query - key| < window (Mistral); 0: no window
  /// Query and key are in the same chunk of so many positions, counted from the first of their document
  /// (Llama 4); 0: no chunks. Masks with chunks are causal.
  int64_t chunk = 0;

  bool operator==(const AttentionMask &other) const {
    return causal == other.causal && window == other.window && chunk == other.chunk;
  }

  /// The first key that the query at `query` sees; its document begins at `document`.
  int64_t begin(int64_t query, int64_t document = 0) const {
    int64_t first = document;
    if (window)
      first = std::max(first, query - window + 1);
    if (chunk)
      first = std::max(first, query - (query - document) % chunk);
    return first;
  }
  /// One after the last of `keys` keys that it sees.
  int64_t end(int64_t query, int64_t keys) const {
    // Without `causal` the window is on both sides.
    int64_t past = causal ? query + 1 : window ? query + window : keys;
    return std::min(past, keys);
  }

  /// No query sees a key at this distance or further on; 0: it may.
  int64_t reach() const { return window && chunk ? std::min(window, chunk) : window + chunk; }

  /// How many keys the query sees of those from `firstKey` on, of which each `stride`-th is there.
  int64_t visibleKeys(int64_t query, int64_t keys, int64_t firstKey = 0, int64_t stride = 1,
                      int64_t document = 0) const {
    auto before = [&](int64_t position) {
      return position <= firstKey ? 0 : (position - firstKey + stride - 1) / stride;
    };
    return std::max<int64_t>(0, before(end(query, keys)) - before(begin(query, document)));
  }

  /// Pairs of a query and a key that it sees, of one head of one sequence.
  double visiblePairs(int64_t queries, int64_t keys) const {
    double pairs = 0;
    for (int64_t query = 0; query < queries; ++query)
      pairs += double(visibleKeys(query, keys));
    return pairs;
  }
  /// ... of `part` of the queries, on average over all such parts.
  double visiblePairs(int64_t part, int64_t queries, int64_t keys) const {
    return visiblePairs(queries, keys) * (double(part) / double(queries));
  }
};

/// The mask of a call, an MwAttention.
template <typename Call> AttentionMask attentionMaskOf(const Call &call) {
  return {call.causal != 0, call.window, call.chunk};
}

} // namespace meshwright

#endif // MESHWRIGHT_RUNTIME_ATTENTIONMASK_H
