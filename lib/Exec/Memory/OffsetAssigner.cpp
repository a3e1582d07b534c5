//===- OffsetAssigner.cpp - offsets for buffers with lifetimes --------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "OffsetAssigner.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"
#include "llvm/Support/MathExtras.h"

#include <map>
#include <random>

using namespace llvm;
using namespace meshwright::exec;

/// Rounds of improvement; each assigns all offsets once.
constexpr unsigned rounds = 400;
/// How many neighbours these may look at in all. Where layers differ, each has buffers of its own,
/// and a round costs the square of their number.
constexpr int64_t mostWork = 1 << 27;

LiveSum meshwright::exec::largestLiveSum(ArrayRef<Lifetime> buffers, int64_t alignment) {
  // What a loop fills and empties, in its first iteration and in its last; under -1 all other.
  struct Sums {
    int64_t first = 0, last = 0;
  };
  struct Change {
    int64_t loop, first, last;
  };
  std::map<int64_t, SmallVector<Change>> changes;
  for (const Lifetime &buffer : buffers) {
    Change before{-1, 0, 0};
    for (int64_t time : buffer.times()) {
      changes[time].push_back({before.loop, -before.first, -before.last});
      before = {buffer.loopAt(time), buffer.bytesAt(time, Iteration::First, alignment),
                buffer.bytesAt(time, Iteration::Last, alignment)};
      changes[time].push_back(before);
    }
  }
  LiveSum most;
  std::map<int64_t, Sums> live;
  for (auto &[time, all] : changes) {
    for (const Change &change : all) {
      live[change.loop].first += change.first;
      live[change.loop].last += change.last;
    }
    int64_t bytes = 0;
    for (auto &[loop, sums] : live)
      bytes += std::max(sums.first, sums.last);
    if (bytes <= most.bytes)
      continue;
    most = {bytes, time, {}};
    for (auto &[loop, sums] : live)
      most.iterations[loop] = sums.last > sums.first ? Iteration::Last : Iteration::First;
  }
  return most;
}

namespace {
class Assigner {
public:
  Assigner(ArrayRef<Lifetime> buffers, int64_t alignment)
      : buffers(buffers), alignment(alignment), neighbours(buffers.size()) {
    for (const Lifetime &buffer : buffers)
      sizes.push_back(alignTo(buffer.size, alignment));
    SmallVector<unsigned> byBegin = llvm::to_vector(llvm::seq<unsigned>(0, buffers.size())), live;
    llvm::stable_sort(byBegin,
                      [&](unsigned a, unsigned b) { return buffers[a].begin < buffers[b].begin; });
    for (unsigned i : byBegin) {
      llvm::erase_if(live, [&](unsigned j) { return buffers[j].end <= buffers[i].begin; });
      for (unsigned j : live)
        if (auto range = buffers[j].forbids(buffers[i])) {
          neighbours[i].push_back({j, range->first, range->second});
          neighbours[j].push_back({i, -range->second, -range->first});
          pairs += 2;
        }
      live.push_back(i);
    }
  }

  /// How many neighbours one assignment looks at.
  int64_t work() const { return pairs; }

  /// Each buffer in turn begins in the smallest gap between places where those assigned before do
  /// not let it, or else at the lowest place above all of them.
  OffsetAssignment assign(ArrayRef<unsigned> order) const {
    OffsetAssignment assignment;
    assignment.offsets.assign(buffers.size(), -1);
    SmallVector<std::pair<int64_t, int64_t>> forbidden;
    for (unsigned i : order) {
      forbidden.clear();
      for (const Neighbour &other : neighbours[i])
        if (int64_t from = assignment.offsets[other.buffer]; from >= 0)
          forbidden.push_back({from + other.begin, from + other.end});
      llvm::sort(forbidden);
      int64_t best = -1, gap = std::numeric_limits<int64_t>::max(), top = 0;
      for (auto [begin, end] : forbidden) {
        if (begin >= top && begin - top < gap) {
          best = top;
          gap = begin - top;
        }
        if (end > top)
          top = alignTo(end, alignment);
      }
      assignment.offsets[i] = best >= 0 ? best : top;
      assignment.size = std::max(assignment.size, assignment.offsets[i] + sizes[i]);
    }
    return assignment;
  }

  SmallVector<SmallVector<unsigned>> orders() const {
    auto sorted = [&](auto key) {
      SmallVector<unsigned> order = llvm::to_vector(llvm::seq<unsigned>(0, buffers.size()));
      llvm::stable_sort(order, [&](unsigned a, unsigned b) { return key(a) > key(b); });
      return order;
    };
    auto duration = [&](unsigned i) { return buffers[i].end - buffers[i].begin; };
    return {sorted([&](unsigned i) { return std::pair(sizes[i], duration(i)); }),
            sorted([&](unsigned i) { return std::pair(duration(i), sizes[i]); }),
            sorted([&](unsigned i) { return std::pair(double(sizes[i]) * duration(i), 0.0); }),
            sorted([&](unsigned i) { return std::pair(-buffers[i].begin, sizes[i]); }),
            sorted([&](unsigned i) { return std::pair(buffers[i].end, sizes[i]); })};
  }

  int64_t top(const OffsetAssignment &assignment, unsigned i) const {
    return assignment.offsets[i] + sizes[i];
  }

private:
  /// Between these two, counted from its own beginning, another buffer does not let one begin.
  struct Neighbour {
    unsigned buffer;
    int64_t begin, end;
  };

  ArrayRef<Lifetime> buffers;
  int64_t alignment;
  SmallVector<int64_t> sizes;
  std::vector<SmallVector<Neighbour>> neighbours;
  int64_t pairs = 0;
};
} // namespace

OffsetAssignment meshwright::exec::computeOffsets(ArrayRef<Lifetime> buffers, int64_t alignment) {
  Assigner assigner(buffers, alignment);
  int64_t goal = largestLiveSum(buffers, alignment).bytes;
  OffsetAssignment best;
  SmallVector<unsigned> order;
  for (SmallVector<unsigned> &candidate : assigner.orders()) {
    OffsetAssignment assignment = assigner.assign(candidate);
    if (best.offsets.empty() || assignment.size < best.size) {
      best = assignment;
      order = candidate;
    }
  }
  // Those on top had the worst luck: let them choose earlier, the more so the
  // longer nothing else helps.
  std::mt19937 random(1);
  OffsetAssignment current = best;
  unsigned most = std::min<int64_t>(rounds, mostWork / std::max<int64_t>(1, assigner.work()));
  for (unsigned round = 0; round < most && best.size > goal; ++round) {
    SmallVector<unsigned> next(order);
    for (unsigned position = 0; position < order.size(); ++position) {
      unsigned i = order[position];
      if (assigner.top(current, i) != current.size)
        continue;
      unsigned to = round % 4 == 3 ? 0 : random() % (position + 1);
      next.erase(llvm::find(next, i));
      next.insert(next.begin() + to, i);
    }
    if (round % 2 && next.size() > 1)
      std::swap(next[random() % next.size()], next[random() % next.size()]);
    OffsetAssignment assignment = assigner.assign(next);
    // Equal is progress too: another buffer may be on top now.
    if (assignment.size <= current.size || random() % 16 == 0) {
      current = assignment;
      order = next;
    }
    if (assignment.size < best.size)
      best = assignment;
  }
  return best;
}
