//===- LiveIntervals.cpp - when a memory holds which contents ---------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "LiveIntervals.h"

#include "llvm/ADT/bit.h"

using namespace meshwright::exec;

static unsigned lengthClass(const LiveInterval &interval) {
  return llvm::bit_width(uint64_t(interval.end) - uint64_t(interval.begin));
}

void LiveIntervals::insert(LiveInterval *interval) {
  byLength[lengthClass(*interval)].insert({interval->begin, interval});
  ++count;
}

void LiveIntervals::setEnd(LiveInterval *interval, int64_t end) {
  auto &alike = byLength[lengthClass(*interval)];
  auto [at, last] = alike.equal_range(interval->begin);
  while (at != last && at->second != interval)
    ++at;
  assert(at != last && "the interval is not of this memory");
  alike.erase(at);
  --count;
  interval->end = end;
  insert(interval);
}

void LiveIntervals::merge(LiveIntervals &other) {
  if (other.count > count)
    std::swap(*this, other);
  for (auto &[bits, alike] : other.byLength)
    byLength[bits].insert(alike.begin(), alike.end());
  count += other.count;
  other = {};
}

llvm::SmallVector<LiveInterval *> LiveIntervals::all() const {
  llvm::SmallVector<LiveInterval *> list;
  for (auto &[bits, alike] : byLength)
    llvm::append_range(list, llvm::make_second_range(alike));
  return list;
}

bool LiveIntervals::anyNear(int64_t begin, int64_t end,
                            llvm::function_ref<bool(LiveInterval &)> which) const {
  for (auto &[bits, alike] : byLength) {
    // Those of this class that begin earlier end before `begin`.
    constexpr unsigned unbounded = 62;
    auto at = bits < unbounded ? alike.lower_bound(begin - (int64_t(1) << bits)) : alike.begin();
    for (; at != alike.end() && at->first - 1 <= end; ++at)
      if (at->second->end >= begin - 1 && which(*at->second))
        return true;
  }
  return false;
}
