//===- LaunchTest.cpp - tests of mw_launch --------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Reference.h"

#include <gtest/gtest.h>

#include <atomic>
#include <mutex>
#include <set>
#include <thread>

namespace {
struct Record {
  std::mutex mutex;
  std::set<std::pair<int64_t, int64_t>> ranges;
};
} // namespace

static void record(void *const *buffers, int64_t begin, int64_t end) {
  auto *record = static_cast<Record *>(buffers[0]);
  std::lock_guard<std::mutex> lock(record->mutex);
  EXPECT_TRUE(record->ranges.insert({begin, end}).second);
}

static std::set<std::pair<int64_t, int64_t>> rangesOf(int threads, int64_t iterations,
                                                      int64_t chunks) {
  MwContext context{threads};
  Record ranges;
  void *buffers[] = {&ranges};
  mw_launch(&context, record, buffers, iterations, chunks);
  return ranges.ranges;
}

TEST(Launch, CoversTheIterationsOnce) {
  for (int64_t iterations : {0, 1, 2, 7, 64, 1000, 1001})
    for (int64_t chunks : {1, 2, 3, 8, 63, 2000}) {
      int64_t next = 0;
      for (auto [begin, end] : rangesOf(3, iterations, chunks)) {
        EXPECT_EQ(begin, next);
        EXPECT_GT(end, begin);
        EXPECT_LE(end - begin, (iterations + chunks - 1) / chunks);
        next = end;
      }
      EXPECT_EQ(next, iterations);
    }
}

TEST(Launch, RangesDoNotDependOnThreads) {
  for (int threads : {2, 3, 16})
    EXPECT_EQ(rangesOf(1, 1001, 24), rangesOf(threads, 1001, 24));
}

TEST(Launch, RanksLaunchAtOnce) {
  std::atomic<int64_t> sum{0};
  auto add = [](void *const *buffers, int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      *static_cast<std::atomic<int64_t> *>(buffers[0]) += i;
  };
  std::vector<std::thread> ranks;
  for (int rank = 0; rank < 4; ++rank)
    ranks.emplace_back([&] {
      MwContext context{2};
      void *buffers[] = {&sum};
      for (int i = 0; i < 20; ++i)
        mw_launch(&context, add, buffers, 100, 7);
    });
  for (std::thread &rank : ranks)
    rank.join();
  EXPECT_EQ(sum, 4 * 20 * 4950);
}
