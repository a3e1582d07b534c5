//===- OffsetAssignerTest.cpp - offsets never overlap and waste little -------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Exec/Memory/OffsetAssigner.h"

#include "gtest/gtest.h"

#include <random>

using namespace meshwright::exec;

static constexpr int64_t alignment = 64;

static void expectValid(llvm::ArrayRef<Lifetime> buffers, const OffsetAssignment &assignment) {
  ASSERT_EQ(assignment.offsets.size(), buffers.size());
  for (unsigned i = 0; i < buffers.size(); ++i) {
    EXPECT_GE(assignment.offsets[i], 0);
    EXPECT_EQ(assignment.offsets[i] % alignment, 0);
    EXPECT_LE(assignment.offsets[i] + buffers[i].size, assignment.size);
    for (unsigned j = 0; j < i; ++j)
      EXPECT_TRUE(!buffers[i].overlaps(buffers[j]) ||
                  assignment.offsets[i] + buffers[i].size <= assignment.offsets[j] ||
                  assignment.offsets[j] + buffers[j].size <= assignment.offsets[i])
          << i << " and " << j;
  }
}

static double waste(llvm::ArrayRef<Lifetime> buffers) {
  OffsetAssignment assignment = computeOffsets(buffers, alignment);
  expectValid(buffers, assignment);
  int64_t live = largestLiveSum(buffers, alignment).bytes;
  EXPECT_GE(assignment.size, live);
  return double(assignment.size) / live;
}

TEST(OffsetAssigner, Nothing) { EXPECT_EQ(computeOffsets({}, alignment).size, 0); }

TEST(OffsetAssigner, SharesWhatIsNotLiveTogether) {
  Lifetime buffers[] = {{100, 0, 2}, {100, 2, 4}, {64, 1, 3}};
  OffsetAssignment assignment = computeOffsets(buffers, alignment);
  expectValid(buffers, assignment);
  EXPECT_EQ(assignment.size, 192);
  EXPECT_EQ(assignment.offsets[0], assignment.offsets[1]);
}

TEST(OffsetAssigner, LargestLiveSumNamesTheMoment) {
  Lifetime buffers[] = {{10, 0, 5}, {100, 3, 6}, {70, 5, 9}};
  auto [bytes, when, iteration] = largestLiveSum(buffers, alignment);
  EXPECT_EQ(bytes, 256);
  EXPECT_EQ(when, 5);
}

/// Any intervals and sizes: no bound is proven, but no overlap ever.
TEST(OffsetAssigner, RandomIntervalsDoNotOverlap) {
  std::mt19937 random(7);
  for (int round = 0; round < 60; ++round) {
    std::vector<Lifetime> buffers;
    for (int i = 0, n = 1 + random() % 120; i < n; ++i) {
      int64_t begin = random() % 200;
      buffers.push_back({int64_t(1 + random() % 5000), begin, begin + 1 + int64_t(random() % 60)});
    }
    EXPECT_LE(waste(buffers), 1.25);
  }
}

TEST(OffsetAssigner, IsDeterministic) {
  std::mt19937 random(3);
  std::vector<Lifetime> buffers;
  for (int i = 0; i < 80; ++i) {
    int64_t begin = random() % 100;
    buffers.push_back({int64_t(1 + random() % 5000), begin, begin + 1 + int64_t(random() % 30)});
  }
  OffsetAssignment first = computeOffsets(buffers, alignment),
                   second = computeOffsets(buffers, alignment);
  EXPECT_EQ(first.offsets, second.offsets);
}

/// A training step: stacks that live from the forward to the backward, gradients
/// that live to the end, temporaries of a few ops, an evaluation after it.
static std::vector<Lifetime> trainingStep(std::mt19937 &random, int64_t width, int64_t layers,
                                          bool gradientsFirst) {
  std::vector<Lifetime> buffers;
  auto add = [&](int64_t elements, int64_t begin, int64_t end) {
    buffers.push_back({elements * 4, begin, end});
  };
  const int64_t rows = 2048;
  for (int64_t i : {1, 1, 1, 1, 1, 1, 4})
    add(layers * rows * width * i, 10, 70);
  add(rows * 50257, 35, 40);
  for (int64_t i : {1, 1, 1, 1, 4, 4})
    add(layers * width * width * i, gradientsFirst ? 0 : 45, 200);
  add(50257 * width, 39, 200);
  for (int i = 0; i < 60; ++i) {
    int64_t begin = 11 + random() % 180;
    add((1 + random() % 4) * rows * width, begin, begin + 1 + random() % 5);
    add(random() % 3000, begin, begin + 1 + random() % 12);
  }
  add(rows * 50257, 220, 222);
  for (int i = 0; i < 10; ++i)
    add((1 + random() % 4) * rows * width, 205 + i, 207 + i);
  return buffers;
}

TEST(OffsetAssigner, TrainingStepsWasteLessThanThreePercent) {
  std::mt19937 random(11);
  for (int64_t width : {768, 1024, 4096})
    for (int64_t layers : {1, 12, 96})
      for (bool gradientsFirst : {false, true})
        EXPECT_LE(waste(trainingStep(random, width, layers, gradientsFirst)), 1.03)
            << width << " " << layers << " " << gradientsFirst;
}
