//===- LiveIntervalsTest.cpp - intervals near a time ------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Exec/Memory/LiveIntervals.h"

#include "gtest/gtest.h"

#include <deque>
#include <limits>
#include <random>
#include <set>

using namespace meshwright::exec;

/// Every set that was merged from others knows the same intervals near a time as a list of them.
TEST(LiveIntervals, NearAreThoseThatOverlapOrTouch) {
  constexpr int64_t never = -1, forever = std::numeric_limits<int64_t>::max();
  std::mt19937 random(9);
  for (int round = 0; round < 300; ++round) {
    std::deque<LiveInterval> list;
    LiveIntervals sets[3];
    for (int i = 0, n = 1 + random() % 40; i < n; ++i) {
      int64_t begin = random() % 8 ? int64_t(random() % 200) : never;
      int64_t end = random() % 8 ? begin + int64_t(random() % (random() % 3 ? 4 : 90)) : forever;
      list.push_back({LiveInterval::Contents, {}, {}, begin, end, 0});
      sets[random() % 3].insert(&list.back());
    }
    sets[0].merge(sets[1]);
    sets[0].merge(sets[2]);
    EXPECT_EQ(sets[0].size(), list.size());
    EXPECT_EQ(sets[1].size() + sets[2].size(), 0u);
    LiveInterval &changed = list[random() % list.size()];
    sets[0].setEnd(&changed, random() % 2 ? forever : changed.begin + 1);
    EXPECT_EQ(sets[0].all().size(), list.size());
    for (int i = 0; i < 20; ++i) {
      int64_t begin = int64_t(random() % 220) - 1;
      int64_t end = random() % 8 ? begin + int64_t(random() % 30) : forever;
      std::set<LiveInterval *> near, expected;
      EXPECT_FALSE(sets[0].anyNear(begin, end, [&](LiveInterval &interval) {
        EXPECT_TRUE(near.insert(&interval).second);
        return false;
      }));
      for (LiveInterval &interval : list)
        if (interval.begin - 1 <= end && begin - 1 <= interval.end)
          expected.insert(&interval);
      EXPECT_EQ(near, expected) << begin << " to " << end;
    }
  }
}
