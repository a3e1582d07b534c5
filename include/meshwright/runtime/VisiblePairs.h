//===- VisiblePairs.h - how many keys queries see ----------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_RUNTIME_VISIBLEPAIRS_H
#define MESHWRIGHT_RUNTIME_VISIBLEPAIRS_H

#include <algorithm>
#include <cstdint>

namespace meshwright {

/// How many of `keys` keys, without those before `firstKey`, the query at position `query` sees; of
/// each `stride` keys the first one is there.
inline int64_t visibleKeys(int64_t query, int64_t keys, bool causal, int64_t window,
                           int64_t firstKey = 0, int64_t stride = 1) {
  // Without `causal` the window is on both sides.
  int64_t end = causal ? query + 1 : window ? query + window : keys;
  int64_t begin = window ? std::max(firstKey, query - window + 1) : firstKey;
  auto before = [&](int64_t position) {
    return position <= firstKey ? 0 : (position - firstKey + stride - 1) / stride;
  };
  return std::max<int64_t>(0, before(std::min(end, keys)) - before(begin));
}

/// Pairs of a query and a key that it sees, of one head of one sequence.
inline double visiblePairs(int64_t queries, int64_t keys, bool causal, int64_t window) {
  double pairs = 0;
  for (int64_t query = 0; query < queries; ++query)
    pairs += double(visibleKeys(query, keys, causal, window));
  return pairs;
}

/// ... of `part` of the queries, on average over all such parts.
inline double visiblePairs(int64_t part, int64_t queries, int64_t keys, bool causal,
                           int64_t window) {
  return visiblePairs(queries, keys, causal, window) * (double(part) / double(queries));
}

} // namespace meshwright

#endif // MESHWRIGHT_RUNTIME_VISIBLEPAIRS_H
