//===- Lifetime.cpp - when the bytes of a buffer hold something -------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Lifetime.h"

#include "llvm/Support/MathExtras.h"

#include <algorithm>

using namespace meshwright::exec;

using Range = std::pair<int64_t, int64_t>;

Lifetime Lifetime::after(int64_t time) const {
  Lifetime later = *this;
  for (int64_t *moment : {&later.begin, &later.end})
    *moment += time;
  for (std::optional<SlotLife> *slots : {&later.filled, &later.emptied})
    if (*slots)
      for (int64_t *moment : {&(*slots)->begin, &(*slots)->end, &(*slots)->when})
        *moment += time;
  return later;
}

int64_t Lifetime::bytesAt(int64_t time, Iteration iteration, int64_t alignment) const {
  if (time < begin || end <= time)
    return 0;
  auto runs = [&](const std::optional<SlotLife> &slots) {
    return slots && slots->begin <= time && time < slots->end;
  };
  int64_t first = iteration == Iteration::First;
  // The beginning of slots may lie where another buffer is rounded up to.
  if (runs(filled))
    return llvm::alignDown(
        filled->bytes * ((first ? 0 : filled->count - 1) + (time >= filled->when)), alignment);
  if (runs(emptied))
    return llvm::alignDown(emptied->bytes * ((first ? emptied->count : 1) - (time > emptied->when)),
                           alignment);
  return llvm::alignTo(size, alignment);
}

/// The slots without the one of the first or the last iteration.
static Range without(const SlotLife &slots, Iteration iteration) {
  Range all(slots.offset, slots.offset + slots.count * slots.bytes);
  bool highest = slots.reverse == (iteration == Iteration::First);
  (highest ? all.second : all.first) += highest ? -slots.bytes : slots.bytes;
  return all;
}

/// The bytes of `stack` that are live while `other` is.
static Range heldDuring(const Lifetime &stack, const Lifetime &other) {
  // Whether `other` belongs to one iteration of the loop at a time.
  auto isInside = [&](const std::optional<SlotLife> &slots) {
    return slots && slots->begin < other.begin && other.end <= slots->end;
  };
  if (isInside(stack.filled) && other.end <= stack.filled->when)
    return without(*stack.filled, Iteration::Last);
  if (isInside(stack.emptied) && stack.emptied->when < other.begin)
    return without(*stack.emptied, Iteration::First);
  return {0, stack.size};
}

/// Where `filled` may not begin, in bytes from where `emptied` begins, if one loop does both.
static std::optional<Range> forbiddenTogether(const SlotLife &emptied, const SlotLife &filled) {
  // An iteration may fill its slot of one where it has emptied its own of the other.
  int64_t apart = filled.when <= emptied.when ? 0 : 1, last = emptied.count - 1 - apart;
  if (last < 0)
    return std::nullopt;
  int64_t a = emptied.bytes, b = filled.bytes, from = emptied.offset - filled.offset;
  if (emptied.reverse) {
    // Slot v is read until slots from v + apart on are filled.
    return Range(from - emptied.count * b,
                 from + std::max(a - apart * b, (last + 1) * a - (last + apart) * b));
  }
  // Slot v is read until slots up to v - apart are filled.
  return Range(from + std::min(apart * a - b, (last + apart) * a - (last + 1) * b),
               from + emptied.count * a);
}

std::optional<Range> Lifetime::forbids(const Lifetime &other) const {
  if (!overlaps(other))
    return std::nullopt;
  // A buffer that a loop fills is live after it, one that it empties before it.
  if (emptied && other.filled && emptied->isIn(*other.filled))
    return forbiddenTogether(*emptied, *other.filled);
  if (filled && other.emptied && filled->isIn(*other.emptied)) {
    auto range = forbiddenTogether(*other.emptied, *filled);
    return range ? std::optional(Range(-range->second, -range->first)) : std::nullopt;
  }
  Range mine = heldDuring(*this, other), others = heldDuring(other, *this);
  if (mine.first >= mine.second || others.first >= others.second)
    return std::nullopt;
  return Range(mine.first - others.second, mine.second - others.first);
}
