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

/// Rounds of improvement; each assigns all offsets once. Of very many buffers there are fewer.
constexpr size_t mostRounds = 400, mostPlacements = 400000;

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
/// Disjoint ranges of addresses, ascending.
class Addresses {
public:
  void add(int64_t begin, int64_t end) {
    auto first = llvm::partition_point(ranges, [&](auto &range) { return range.second < begin; });
    auto last = std::find_if(first, ranges.end(), [&](auto &range) { return range.first > end; });
    if (first == last) {
      ranges.insert(first, {begin, end});
      return;
    }
    *first = {std::min(begin, first->first), std::max(end, std::prev(last)->second)};
    ranges.erase(std::next(first), last);
  }

  SmallVector<OffsetRange, 1> ranges;
};

/// The addresses that buffers take over time: a tree whose leaves are the times between which
/// nothing begins or ends. A node knows what is taken all of its time, and what at any. So a
/// schedule with thousands of activations is no pairs of them.
class TakenAddresses {
public:
  explicit TakenAddresses(ArrayRef<Lifetime> buffers) {
    for (const Lifetime &buffer : buffers)
      times.append({buffer.begin, buffer.end});
    llvm::sort(times);
    times.erase(llvm::unique(times), times.end());
    while (leaves + 1 < times.size())
      leaves *= 2;
    clear();
  }

  void clear() { nodes.assign(2 * leaves, Node()); }
  void add(const Lifetime &buffer, int64_t offset, int64_t size) {
    add(indices(buffer), offset, offset + size, 1, 0, leaves);
  }
  /// Calls `visit` with ranges that together are all addresses taken while `buffer` is live.
  template <typename Visit> void forEach(const Lifetime &buffer, Visit visit) const {
    forEach(indices(buffer), visit, 1, 0, leaves);
  }

private:
  struct Node {
    Addresses always, ever;
  };
  using TimeRange = std::pair<size_t, size_t>;

  TimeRange indices(const Lifetime &buffer) const {
    return {llvm::lower_bound(times, buffer.begin) - times.begin(),
            llvm::lower_bound(times, buffer.end) - times.begin()};
  }
  void add(TimeRange time, int64_t begin, int64_t end, size_t node, size_t low, size_t high) {
    if (time.second <= low || high <= time.first)
      return;
    nodes[node].ever.add(begin, end);
    if (time.first <= low && high <= time.second)
      return nodes[node].always.add(begin, end);
    size_t middle = (low + high) / 2;
    add(time, begin, end, 2 * node, low, middle);
    add(time, begin, end, 2 * node + 1, middle, high);
  }
  template <typename Visit>
  void forEach(TimeRange time, Visit visit, size_t node, size_t low, size_t high) const {
    if (time.second <= low || high <= time.first)
      return;
    bool whole = time.first <= low && high <= time.second;
    for (auto [begin, end] : (whole ? nodes[node].ever : nodes[node].always).ranges)
      visit(begin, end);
    if (whole)
      return;
    size_t middle = (low + high) / 2;
    forEach(time, visit, 2 * node, low, middle);
    forEach(time, visit, 2 * node + 1, middle, high);
  }

  SmallVector<int64_t> times;
  size_t leaves = 1;
  std::vector<Node> nodes; ///< the root is node 1, node n has the children 2n and 2n + 1
};

/// Sorts what is some ascending runs one after the other.
static void mergeRuns(SmallVectorImpl<OffsetRange> &ranges) {
  SmallVector<size_t> bounds{0};
  for (size_t i = 1; i < ranges.size(); ++i)
    if (ranges[i] < ranges[i - 1])
      bounds.push_back(i);
  bounds.push_back(ranges.size());
  while (bounds.size() > 2) {
    SmallVector<size_t> merged{0};
    for (size_t i = 0; i + 2 < bounds.size(); i += 2) {
      std::inplace_merge(ranges.begin() + bounds[i], ranges.begin() + bounds[i + 1], ranges.begin() + bounds[i + 2]);
      merged.push_back(bounds[i + 2]);
    }
    if (bounds.size() % 2 == 0) // The last run had none to merge with.
      merged.push_back(bounds.back());
    bounds = std::move(merged);
  }
}

class Assigner {
public:
  Assigner(ArrayRef<Lifetime> buffers, int64_t alignment)
      : buffers(buffers), alignment(alignment), neighbours(buffers.size()), taken(buffers) {
    for (const Lifetime &buffer : buffers)
      sizes.push_back(alignTo(buffer.size, alignment));
    for (unsigned i = 0; i < buffers.size(); ++i) {
      if (isWhole(i))
        continue;
      for (unsigned j = 0; j < buffers.size(); ++j)
        if (j < i || isWhole(j))
          if (auto range = buffers[j].forbids(buffers[i])) {
            neighbours[i].push_back({j, range->first, range->second});
            neighbours[j].push_back({i, -range->second, -range->first});
          }
    }
  }

  /// Each buffer in turn begins in the smallest gap between places where those assigned before do
  /// not let it, or else at the lowest place above all of them. The first `known` of them begin where
  /// `before` says, which is where an order that begins with the same has placed them. An assignment
  /// larger than `limit` is finished only where `goesOn` says so, which it is asked once.
  std::optional<OffsetAssignment> assign(ArrayRef<unsigned> order, ArrayRef<int64_t> before, size_t known, int64_t limit,
                                         function_ref<bool()> goesOn) {
    OffsetAssignment assignment;
    assignment.offsets.assign(buffers.size(), -1);
    taken.clear();
    for (unsigned i : order.take_front(known))
      place(i, before[i], assignment);
    bool asked = false;
    for (unsigned i : order.drop_front(known)) {
      place(i, lowest(i, assignment.offsets), assignment);
      if (assignment.size > limit && !std::exchange(asked, true) && !goesOn())
        return std::nullopt;
    }
    return assignment;
  }
  OffsetAssignment assign(ArrayRef<unsigned> order) {
    return *assign(order, {}, 0, std::numeric_limits<int64_t>::max(), [] { return true; });
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
  /// Whether it is live as a whole, so that no other buffer may have any of its bytes meanwhile.
  bool isWhole(unsigned i) const { return !buffers[i].filled && !buffers[i].emptied; }

  /// Where buffer i begins when those with an offset have theirs.
  int64_t lowest(unsigned i, ArrayRef<int64_t> offsets) {
    forbidden.clear();
    for (const Neighbour &other : neighbours[i])
      if (int64_t from = offsets[other.buffer]; from >= 0)
        forbidden.push_back({from + other.begin, from + other.end});
    llvm::sort(forbidden);
    if (isWhole(i))
      taken.forEach(buffers[i], [&](int64_t begin, int64_t end) {
        forbidden.push_back({begin - buffers[i].size, end});
      });
    mergeRuns(forbidden);
    int64_t best = -1, gap = std::numeric_limits<int64_t>::max(), top = 0;
    for (auto [begin, end] : forbidden) {
      if (begin >= top && begin - top < gap) {
        best = top;
        gap = begin - top;
      }
      if (end > top)
        top = alignTo(end, alignment);
    }
    return best >= 0 ? best : top;
  }
  void place(unsigned i, int64_t offset, OffsetAssignment &assignment) {
    assignment.offsets[i] = offset;
    assignment.size = std::max(assignment.size, offset + sizes[i]);
    if (isWhole(i))
      taken.add(buffers[i], offset, sizes[i]);
  }

  /// Between these two, counted from its own beginning, another buffer does not let one begin.
  struct Neighbour {
    unsigned buffer;
    int64_t begin, end;
  };

  ArrayRef<Lifetime> buffers;
  int64_t alignment;
  SmallVector<int64_t> sizes;
  std::vector<SmallVector<Neighbour>> neighbours; ///< of pairs that are not both whole
  TakenAddresses taken;                           ///< by those that are whole
  SmallVector<OffsetRange> forbidden;             ///< lowest's
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
    if (best.size == goal)
      return best;
  }
  // Those on top had the worst luck: let them choose earlier, the more so the
  // longer nothing else helps.
  std::mt19937 random(1);
  OffsetAssignment current = best;
  size_t rounds = std::min(mostRounds, mostPlacements / std::max<size_t>(1, buffers.size()));
  for (unsigned round = 0; round < rounds && best.size > goal; ++round) {
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
    size_t known = std::mismatch(order.begin(), order.end(), next.begin()).first - order.begin();
    // Equal is progress too: another buffer may be on top now.
    auto assignment = assigner.assign(next, current.offsets, known, current.size, [&] { return random() % 16 == 0; });
    if (!assignment)
      continue;
    current = std::move(*assignment);
    order = next;
    if (current.size < best.size)
      best = current;
  }
  return best;
}
