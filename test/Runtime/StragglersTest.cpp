//===- StragglersTest.cpp - which ranks are told to be slow ---------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "common/monitor/Stragglers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace meshwright;
using testing::ElementsAre;
using testing::IsEmpty;

TEST(RankTimes, TellsOnceAndAgainAfterRecovery) {
  RankTimes times({0, 0, 0, 0});
  for (int step = 0; step < 4; ++step) // Too few to judge.
    EXPECT_THAT(times.add({1, 1, 1.5f, 1}), IsEmpty());
  EXPECT_THAT(times.add({1, 1, 1.5f, 1}), ElementsAre(2));
  EXPECT_EQ(times.slowest(), (std::pair<size_t, double>(2, 1.5)));
  for (int step = 0; step < 20; ++step)
    EXPECT_THAT(times.add({1, 1, 1.5f, 1}), IsEmpty());
  for (int step = 0; step < 5; ++step)
    EXPECT_THAT(times.add({1, 1, 1, 1}), IsEmpty());
  EXPECT_EQ(times.slowest().second, 1);
  for (int step = 0; step < 2; ++step)
    EXPECT_THAT(times.add({1, 1, 1.5f, 1}), IsEmpty());
  EXPECT_THAT(times.add({1, 1, 1.5f, 1}), ElementsAre(2));
}

// Of a rank that is about as slow as what is worth a word nothing is said at each crossing.
TEST(RankTimes, DoesNotFlicker) {
  RankTimes times({0, 0, 0});
  size_t said = 0;
  for (int step = 0; step < 100; ++step)
    said += times.add({1, step / 10 % 2 ? 1.15f : 1.25f, 1}).size();
  EXPECT_EQ(said, 1u);
}

// Two steps of five that something disturbed are not the rank's own time.
TEST(RankTimes, ForgivesOutliers) {
  RankTimes times({0, 0, 0});
  for (int step = 0; step < 50; ++step)
    EXPECT_THAT(times.add({step % 5 < 2 ? 9.0f : 1.0f, 1, step % 5 > 2 ? 7.0f : 1.0f}), IsEmpty()) << step;
}

// Stages of a pipeline have work of their own. Of two ranks each is judged by the other.
TEST(RankTimes, ComparesRanksWithTheSameWork) {
  RankTimes times({0, 1, 0, 1, 2});
  for (int step = 0; step < 4; ++step)
    EXPECT_THAT(times.add({1, 10, 1, 13, 100}), IsEmpty());
  EXPECT_THAT(times.add({1, 10, 1, 13, 100}), ElementsAre(3));
  EXPECT_EQ(times.slowest(), (std::pair<size_t, double>(3, 1.3)));
  EXPECT_EQ(times.fellows(4), 0);
  RankTimes alone({0, 1});
  for (int step = 0; step < 5; ++step)
    EXPECT_THAT(alone.add({1, 9}), IsEmpty());
  EXPECT_EQ(alone.slowest().second, 1);
}
