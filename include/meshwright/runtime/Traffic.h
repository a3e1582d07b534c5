//===- Traffic.h - the bytes that collectives send --------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// How communicators divide their work, as far as it decides how many bytes they send.
// Communicators, which count these bytes, and the compiler, which predicts them in the
// plan, share this file. Byte counts are sums over all members of a group. The memory
// that communicators allocate follows from the same division.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_RUNTIME_TRAFFIC_H
#define MESHWRIGHT_RUNTIME_TRAFFIC_H

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace meshwright {

/// Up to this many bytes over all members, latency matters more than bandwidth: each member
/// of an all_reduce sends its whole input to all others.
constexpr int64_t directBytes = 16 * 1024;
/// Tensors of one call that are smaller than this are sent together, as many as
/// have `packBytes` bytes.
constexpr int64_t smallBytes = 64 * 1024, packBytes = 1024 * 1024;

/// Tensors [begin, end) of a call, moved as one vector.
struct Pack {
  size_t begin, end;
  int64_t count;
};

/// The packs of a call whose tensors have `counts` elements of `width` bytes.
inline std::vector<Pack> packsOf(const std::vector<int64_t> &counts, int64_t width) {
  std::vector<Pack> packs;
  bool open = false; // whether the last pack takes more
  for (size_t i = 0; i < counts.size(); ++i) {
    bool small = counts[i] * width < smallBytes;
    if (open && small && (packs.back().count + counts[i]) * width <= packBytes) {
      packs.back().end = i + 1;
      packs.back().count += counts[i];
      continue;
    }
    packs.push_back({i, i + 1, counts[i]});
    open = small;
  }
  return packs;
}

/// The first of the `count` elements that member `rank` reduces: all members but the last
/// have equally many.
inline int64_t partOffset(int64_t count, int64_t members, int64_t rank) {
  return std::min(count, (count + members - 1) / members * rank);
}

inline bool isDirect(int64_t count, int64_t width, int64_t members) {
  return count * width * members <= directBytes;
}

/// The table of an exchange as `mw_exchange` gets it (ABI.h), for `ranks` members.
struct ExchangeTable {
  const int32_t *numbers;
  int64_t ranks;

  /// Elements [begin, end) of a tensor.
  struct Range {
    int64_t begin, end;
    int64_t length() const { return end - begin; }
    bool overlaps(Range other) const { return begin < other.end && other.begin < end; }
  };

  /// MwReduction, or -1 if received values replace.
  int32_t reduction() const { return numbers[0]; }
  int32_t to(int64_t rank) const { return numbers[3 + rank]; }
  int32_t send(int64_t rank) const { return numbers[3 + ranks + rank]; }
  int32_t from(int64_t rank) const { return numbers[3 + 2 * ranks + rank]; }
  int32_t receive(int64_t rank) const { return numbers[3 + 3 * ranks + rank]; }
  /// The elements of a tensor with `count` elements that are moved, from piece `first` on.
  Range pieces(int64_t count, int64_t first) const {
    return {partOffset(count, numbers[1], first),
            partOffset(count, numbers[1], first + numbers[2])};
  }
  /// Elements that all members send of tensors with `counts` elements.
  int64_t sentElements(const std::vector<int64_t> &counts) const {
    int64_t sum = 0;
    for (int64_t rank = 0; rank < ranks; ++rank)
      for (int64_t count : counts)
        sum += to(rank) < 0 ? 0 : pieces(count, send(rank)).length();
    return sum;
  }
  /// Bytes of small tensors that a member packs into one message: of the values it sends
  /// and, if received values replace, of those it receives.
  int64_t packedBytes(int64_t rank, const std::vector<int64_t> &counts, int64_t width) const {
    int64_t sum = 0;
    auto add = [&](int64_t first) {
      std::vector<int64_t> moved;
      for (int64_t count : counts)
        moved.push_back(pieces(count, first).length());
      for (const Pack &pack : packsOf(moved, width))
        sum += pack.end > pack.begin + 1 ? pack.count * width : 0;
    };
    if (to(rank) >= 0)
      add(send(rank));
    if (from(rank) >= 0 && reduction() < 0)
      add(receive(rank));
    return sum;
  }
};

/// `sent` of the table's row `op` (Collectives.def); the elements of a message.
inline int64_t sentElements(std::string_view op, int64_t c, int64_t n, bool direct, int64_t fixed,
                            int64_t rootPart) {
#define MW_COLLECTIVE(Op, method, name, growth, sent, ...)                                         \
  if (op == #name)                                                                                 \
    return sent;
#include "meshwright/runtime/Collectives.def"
  return op == "send" ? c : 0;
}

/// The bytes that the members of a group send each other in one call of `op`. `counts` are
/// those of the call, `root` is that of ops with a root, and `fixed` is the number of members
/// that keep their own value in a permutation.
inline int64_t trafficOf(std::string_view op, const std::vector<int64_t> &counts, int64_t width,
                         int64_t members, int64_t root = 0, int64_t fixed = 0) {
  int64_t sum = 0;
  for (const Pack &pack : packsOf(counts, width))
    sum +=
        width * sentElements(op, pack.count, members, isDirect(pack.count, width, members), fixed,
                             partOffset(pack.count, members, root + 1) -
                                 partOffset(pack.count, members, root));
  return sum;
}

/// The most bytes of a reduction that a rank receives at a time, if ranks send each other
/// messages: larger vectors are reduced in windows.
constexpr int64_t windowBytes = int64_t(8) << 20;

/// Elements each member reduces in one window.
inline int64_t windowElements(int64_t width, int64_t members) {
  return std::max<int64_t>(1024, windowBytes / width / members);
}

/// Bytes of memory beside the arena that one call needs if ranks send each other messages:
/// for received terms of a reduction, and for packs of small tensors. Ranks that share their
/// memory need none.
struct Scratch {
  int64_t received = 0, packed = 0;
};
inline Scratch scratchOf(std::string_view op, const std::vector<int64_t> &counts, int64_t width,
                         int64_t members) {
  Scratch scratch;
  bool reduces = op == "all_reduce", gathers = op == "all_gather",
       scatters = op == "reduce_scatter";
  int64_t window = windowElements(width, members);
  if (op == "reduce" && !counts.empty()) {
    // The members' parts, and their sum.
    int64_t part = std::min(window, partOffset(counts[0], members, 1));
    scratch.received = part * width * (members + 1);
  }
  if (!reduces && !gathers && !scatters)
    return scratch;
  int64_t inputs = scatters ? members : 1, outputs = gathers ? members : 1;
  for (const Pack &pack : packsOf(counts, width * std::max(inputs, outputs))) {
    if (pack.end > pack.begin + 1)
      scratch.packed = std::max(scratch.packed, pack.count * width * (inputs + outputs));
    int64_t part = gathers    ? 0
                   : scatters ? std::min(window, pack.count)
                   : isDirect(pack.count, width, members)
                       ? pack.count
                       : partOffset(std::min(window * members, pack.count), members, 1);
    scratch.received = std::max(scratch.received, part * width * members);
  }
  return scratch;
}

} // namespace meshwright

#endif // MESHWRIGHT_RUNTIME_TRAFFIC_H
