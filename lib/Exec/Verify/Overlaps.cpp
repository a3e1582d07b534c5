//===- Overlaps.cpp - buffers that are live in the same bytes ---------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Overlaps.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"
#include "llvm/ADT/SmallVector.h"

#include <algorithm>
#include <map>
#include <queue>

using namespace meshwright::exec;

std::optional<std::pair<size_t, size_t>>
meshwright::exec::findOverlap(llvm::ArrayRef<PlacedBuffer> buffers) {
  auto order = llvm::to_vector(llvm::seq<size_t>(0, buffers.size()));
  llvm::stable_sort(order,
                    [&](size_t a, size_t b) { return buffers[a].begin < buffers[b].begin; });
  // As long as no two overlap, what is live is one buffer after the other by offset, and a new one
  // can only overlap its neighbours there.
  std::map<int64_t, size_t> live;
  using End = std::pair<int64_t, size_t>;
  std::priority_queue<End, std::vector<End>, std::greater<End>> ends;
  for (size_t i : order) {
    const PlacedBuffer &buffer = buffers[i];
    if (buffer.size <= 0 || buffer.begin >= buffer.end)
      continue;
    for (; !ends.empty() && ends.top().first <= buffer.begin; ends.pop())
      live.erase(buffers[ends.top().second].offset);
    auto next = live.lower_bound(buffer.offset);
    for (auto neighbour : {next, next == live.begin() ? live.end() : std::prev(next)})
      if (neighbour != live.end() && buffers[neighbour->second].sharesBytes(buffer))
        return std::minmax(i, neighbour->second);
    live[buffer.offset] = i;
    ends.push({buffer.end, i});
  }
  return std::nullopt;
}
