//===- OverlapsTest.cpp - overlaps against a look at every pair -------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Exec/Verify/Overlaps.h"

#include "gtest/gtest.h"

#include <random>

using namespace meshwright::exec;

static bool overlap(const PlacedBuffer &a, const PlacedBuffer &b) {
  return a.begin < b.end && b.begin < a.end && a.sharesBytes(b);
}

TEST(Overlaps, NeighboursInTimeAndSpaceDoNot) {
  EXPECT_FALSE(findOverlap({}));
  EXPECT_FALSE(findOverlap({{0, 64, 0, 2}, {0, 64, 2, 4}, {64, 64, 0, 4}}));
}

TEST(Overlaps, NamesTheTwoInTheirOrder) {
  auto found = findOverlap({{64, 64, 5, 9}, {256, 64, 0, 9}, {0, 96, 1, 6}});
  ASSERT_TRUE(found);
  EXPECT_EQ(*found, (std::pair<size_t, size_t>(0, 2)));
}

TEST(Overlaps, FindsOneWhenAndOnlyWhenThereIsOne) {
  std::mt19937 random(5);
  int with = 0, rounds = 4000;
  for (int round = 0; round < rounds; ++round) {
    std::vector<PlacedBuffer> buffers;
    for (int i = 0, n = random() % 9; i < n; ++i) {
      int64_t begin = random() % 30;
      buffers.push_back({int64_t(random() % 40), int64_t(1 + random() % 8), begin,
                         begin + 1 + int64_t(random() % 8)});
    }
    bool any = false;
    for (size_t i = 0; i < buffers.size(); ++i)
      for (size_t j = 0; j < i; ++j)
        any |= overlap(buffers[i], buffers[j]);
    auto found = findOverlap(buffers);
    ASSERT_EQ(any, found.has_value());
    with += any;
    if (found) {
      EXPECT_LT(found->first, found->second);
      EXPECT_TRUE(overlap(buffers[found->first], buffers[found->second]));
    }
  }
  EXPECT_TRUE(with > rounds / 10 && with < rounds * 9 / 10) << with;
}
