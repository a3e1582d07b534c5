//===- Lifetime.cpp - when the bytes of a buffer hold something -------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Lifetime.h"

#include "llvm/Support/MathExtras.h"

#include <algorithm>

using namespace meshwright::exec;

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

llvm::SmallVector<int64_t, 10> Lifetime::times() const {
  llvm::SmallVector<int64_t, 10> times{begin, end};
  for (const std::optional<SlotLife> &slots : {filled, emptied})
    if (slots)
      times.append({slots->begin, slots->when, slots->when + 1, slots->end});
  std::sort(times.begin(), times.end());
  return times;
}

int64_t Lifetime::loopAt(int64_t time) const {
  if (begin <= time && time < end)
    for (const std::optional<SlotLife> &slots : {filled, emptied})
      if (slots && slots->begin <= time && time < slots->end)
        return slots->begin;
  return -1;
}

int64_t Lifetime::bytesAt(int64_t time, Iteration iteration, int64_t alignment) const {
  if (time < begin || end <= time)
    return 0;
  int64_t loop = loopAt(time);
  if (loop < 0)
    return llvm::alignTo(size, alignment);
  bool first = iteration == Iteration::First, fills = filled && filled->begin == loop;
  const SlotLife &slots = fills ? *filled : *emptied;
  int64_t held = fills ? (first ? 0 : slots.count - 1) + (time >= slots.when)
                       : (first ? slots.count : 1) - (time > slots.when);
  // The beginning of slots may lie where another buffer is rounded up to.
  return llvm::alignDown(slots.bytes * held, alignment);
}

int64_t Lifetime::bytesAt(int64_t time, const Iterations &iterations, int64_t alignment) const {
  auto found = iterations.find(loopAt(time));
  return bytesAt(time, found == iterations.end() ? Iteration::First : found->second, alignment);
}

/// The slots without the one of the first or the last iteration.
static OffsetRange without(const SlotLife &slots, Iteration iteration) {
  OffsetRange all(slots.offset, slots.offset + slots.count * slots.bytes);
  bool highest = slots.reverse == (iteration == Iteration::First);
  (highest ? all.second : all.first) += highest ? -slots.bytes : slots.bytes;
  return all;
}

/// The bytes of `stack` that are live while `other` is.
static OffsetRange heldDuring(const Lifetime &stack, const Lifetime &other) {
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
static std::optional<OffsetRange> forbiddenTogether(const SlotLife &emptied,
                                                    const SlotLife &filled) {
  // An iteration may fill its slot of one where it has emptied its own of the other.
  int64_t apart = filled.when <= emptied.when ? 0 : 1, last = emptied.count - 1 - apart;
  if (last < 0)
    return std::nullopt;
  int64_t a = emptied.bytes, b = filled.bytes, from = emptied.offset - filled.offset;
  if (emptied.reverse) {
    // Slot v is read until slots from v + apart on are filled.
    return OffsetRange(from - emptied.count * b,
                       from + std::max(a - apart * b, (last + 1) * a - (last + apart) * b));
  }
  // Slot v is read until slots up to v - apart are filled.
  return OffsetRange(from + std::min(apart * a - b, (last + apart) * a - (last + 1) * b),
                     from + emptied.count * a);
}

std::optional<OffsetRange> Lifetime::forbids(const Lifetime &other) const {
  if (!overlaps(other))
    return std::nullopt;
  // A buffer that a loop fills is live after it, one that it empties before it.
  if (emptied && other.filled && emptied->isIn(*other.filled))
    return forbiddenTogether(*emptied, *other.filled);
  if (filled && other.emptied && filled->isIn(*other.emptied)) {
    auto range = forbiddenTogether(*other.emptied, *filled);
    return range ? std::optional(OffsetRange(-range->second, -range->first)) : std::nullopt;
  }
  OffsetRange mine = heldDuring(*this, other), others = heldDuring(other, *this);
  if (mine.first >= mine.second || others.first >= others.second)
    return std::nullopt;
  return OffsetRange(mine.first - others.second, mine.second - others.first);
}
