//===- ScheduleTest.cpp - orders of data, and what changes with the step ---===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "common/data/BatchRamp.h"
#include "common/data/DataOrder.h"
#include "common/data/LearningRate.h"
#include "common/data/LossScaler.h"
#include "common/data/RateWeights.h"
#include "common/monitor/Error.h"

#include <cmath>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <numeric>
#include <set>

using namespace meshwright;

TEST(LossScaler, HalvesAfterOverflowsAndDoublesAfterGoodSteps) {
  LossScale start;
  start.scale = 64;
  LossScaler scaler(start, /*window=*/3, /*hysteresis=*/2, /*least=*/16);
  auto after = [&](bool overflow) {
    scaler.update(overflow);
    return scaler.scale();
  };
  EXPECT_EQ(after(true), 64); // the first is tolerated
  EXPECT_EQ(after(true), 32);
  EXPECT_EQ(after(false), 32); // but not again before the scale has grown
  EXPECT_EQ(after(true), 16);
  EXPECT_EQ(scaler.updates(4), 1);
  EXPECT_TRUE(scaler.isLeast());
  EXPECT_EQ(after(true), 16);
  EXPECT_EQ(after(false), 16);
  EXPECT_EQ(after(false), 16);
  EXPECT_EQ(after(true), 16); // the window begins anew
  for (double scale : {16, 16, 32, 32, 32, 64})
    EXPECT_EQ(after(false), scale);
  EXPECT_EQ(after(true), 64);
  EXPECT_EQ(after(true), 32);
  EXPECT_EQ(scaler.saved().skipped, 7);

  // What was saved goes on in the middle of a window.
  LossScaler first({}, 4, 1, 1);
  first.update(false);
  first.update(false);
  first.update(false);
  LossScaler second(first.saved(), 4, 1, 1);
  second.update(false);
  EXPECT_EQ(second.scale(), 2 * 65536);
  // It does not grow beyond what the program can be given.
  LossScaler large({0x1p127}, 1, 1, 1);
  large.update(false);
  EXPECT_EQ(large.scale(), 0x1p127);
}

TEST(DataOrder, WithoutShuffleWraps) {
  DataOrder order(5, false, 1);
  for (int64_t i = 0; i < 20; ++i)
    EXPECT_EQ(order.at(i), i % 5);
}

TEST(DataOrder, EachEpochIsAnotherPermutation) {
  for (int64_t size : {1, 2, 3, 4, 5, 16, 17, 1000, 4097}) {
    DataOrder order(size, true, 9);
    std::set<std::vector<int64_t>> seen;
    for (int64_t epoch = 0; epoch < 3; ++epoch) {
      std::vector<int64_t> visited;
      for (int64_t i = 0; i < size; ++i)
        visited.push_back(order.at(epoch * size + i));
      seen.insert(visited);
      std::set<int64_t> distinct(visited.begin(), visited.end());
      EXPECT_EQ(int64_t(distinct.size()), size);
      EXPECT_GE(*distinct.begin(), 0);
      EXPECT_LT(*distinct.rbegin(), size);
    }
    if (size >= 16) {
      EXPECT_EQ(seen.size(), 3u);
    }
  }
  EXPECT_NE(DataOrder(1000, true, 1).at(0), DataOrder(1000, true, 2).at(0));
}

// Pairs are shuffled as wholes, in the order that as many sequences alone have.
TEST(DataOrder, KeepsPairsTogether) {
  DataOrder pairs({{0, 6, 3, 0}, {6, 20, 1, 4}}, 8, true, 9, 2), alone({{0, 3, 3, 0}, {3, 10, 1, 2}}, 4, true, 9);
  for (int64_t i = 4; i < 200; ++i) {
    EXPECT_EQ(pairs.at(2 * i), 2 * alone.at(i));
    EXPECT_EQ(pairs.at(2 * i + 1), 2 * alone.at(i) + 1);
    EXPECT_EQ(pairs.taken(2 * i)[1], 2 * alone.taken(i)[1]);
  }
}

// A checkpoint's place in the data means the same sequence for ever: the order is test/Golden/order.py's.
TEST(DataOrder, IsTheSameInEveryVersion) {
  auto first = [](uint64_t seed, int64_t epoch) {
    std::vector<int64_t> visited;
    for (int64_t i = 0; i < 8; ++i)
      visited.push_back(DataOrder(1000, true, seed).at(epoch * 1000 + i));
    return visited;
  };
  using testing::ElementsAre;
  EXPECT_THAT(first(1, 0), ElementsAre(591, 37, 566, 267, 173, 281, 803, 149));
  EXPECT_THAT(first(1, 3), ElementsAre(224, 480, 58, 550, 690, 225, 874, 719));
  EXPECT_THAT(first((uint64_t(1) << 32) + 1, 0), ElementsAre(615, 853, 991, 342, 216, 531, 697, 787));
}

// A place in the file is as likely to come first as last.
TEST(DataOrder, ShufflesEvenly) {
  constexpr int64_t size = 10;
  int counts[size][size] = {};
  for (uint64_t seed = 0; seed < 4000; ++seed)
    for (int64_t i = 0; i < size; ++i)
      ++counts[i][DataOrder(size, true, seed).at(i)];
  for (auto &row : counts)
    for (int count : row)
      EXPECT_NEAR(count, 400, 100); // Five standard deviations.
}

TEST(RateWeights, AreTheLargestRateToAPower) {
  // At one rate the average is the mean.
  RateWeights same;
  for (int t = 1; t <= 5; ++t) {
    EXPECT_DOUBLE_EQ(same.share(0.3, 2), 1.0 / t);
    same.add(0.3, 2);
  }
  // Warm-up weighs less, and a rate that falls as much as the largest.
  RateWeights weights;
  const double rates[] = {0.25, 0.5, 1, 0.1}, shares[] = {1, 0.25 / 0.3125, 1 / 1.3125, 1 / 2.3125};
  for (int i = 0; i < 4; ++i) {
    EXPECT_DOUBLE_EQ(weights.share(rates[i], 2), shares[i]);
    weights.add(rates[i], 2);
  }
  // A first step at the rate 0 makes no average.
  RateWeights none;
  EXPECT_EQ(none.share(0, 2), 0);
  none.add(0, 2);
  EXPECT_EQ(none.share(0.5, 2), 1);
  // Without a power all weigh the same.
  RateWeights plain;
  plain.add(0.1, 0);
  EXPECT_EQ(plain.share(7, 0), 0.5);
}

TEST(LearningRate, FollowsEachSchedule) {
  Options options;
  options.lr = 1;
  options.minLr = 0.2;
  options.warmup = 4;
  options.steps = 14;
  for (const char *schedule : {"constant", "cosine", "linear"}) {
    options.lrSchedule = schedule;
    for (int64_t step = 0; step < 4; ++step)
      EXPECT_DOUBLE_EQ(learningRate(options, step), double(step + 1) / 4);
    EXPECT_DOUBLE_EQ(learningRate(options, 4), 1);
  }
  options.lrSchedule = "constant";
  EXPECT_DOUBLE_EQ(learningRate(options, 13), 1);
  options.lrSchedule = "linear";
  EXPECT_DOUBLE_EQ(learningRate(options, 9), 0.6);
  EXPECT_DOUBLE_EQ(learningRate(options, 13), 0.2 + 0.8 * 0.1);
  EXPECT_DOUBLE_EQ(learningRate(options, 99), 0.2);
  options.lrSchedule = "cosine";
  EXPECT_DOUBLE_EQ(learningRate(options, 9), 0.6);
  EXPECT_NEAR(learningRate(options, 13), 0.2 + 0.8 * 0.5 * (1 + std::cos(M_PI * 0.9)), 1e-12);
  // Goyal et al.'s stairs, as torch's MultiStepLR: a milestone is the first step of the new rate.
  options.lrSchedule = "multi-step";
  options.lrMilestones = "6,10";
  options.lrGamma = 0.5;
  for (auto [step, rate] : {std::pair(4, 1.0), {5, 1.0}, {6, 0.5}, {9, 0.5}, {10, 0.25}, {99, 0.25}})
    EXPECT_DOUBLE_EQ(learningRate(options, step), rate) << step;
  // min(t^-0.5, t W^-1.5) of Vaswani et al. in steps from 1, relative to the largest.
  options.lrSchedule = "inverse-sqrt";
  for (int t : {1, 3, 4, 5, 9, 16, 99})
    EXPECT_DOUBLE_EQ(learningRate(options, t - 1),
                     std::min(std::pow(4, 1.5) * t / std::pow(4, 1.5) / 4,
                              std::max(0.2, 2 / std::sqrt(double(t)))))
        << t;
  options.warmup = 0;
  EXPECT_DOUBLE_EQ(learningRate(options, 0), 1);
  EXPECT_DOUBLE_EQ(learningRate(options, 3), 0.5);
  // Half of 14 steps decays, from 7 on.
  options.warmup = 4;
  options.lrSchedule = "wsd";
  options.decayFraction = 0.5;
  for (auto [shape, left] : {std::pair("linear", 1 - 3 / 7.0),
                             {"cosine", 0.5 * (1 + std::cos(M_PI * 3 / 7))},
                             {"1-sqrt", 1 - std::sqrt(3 / 7.0)},
                             {"exponential", 2 * std::pow(0.5, 3 / 7.0) - 1}}) {
    SCOPED_TRACE(shape);
    options.decayShape = shape;
    EXPECT_DOUBLE_EQ(learningRate(options, 1), 0.5);
    for (int64_t step : {4, 6, 7})
      EXPECT_DOUBLE_EQ(learningRate(options, step), 1);
    EXPECT_NEAR(learningRate(options, 10), 0.2 + 0.8 * left, 1e-15);
    EXPECT_DOUBLE_EQ(learningRate(options, 14), 0.2);
  }
  options.decayFraction = 0;
  EXPECT_DOUBLE_EQ(learningRate(options, 13), 1);
  options.lrSchedule = "cosine";
  options.warmup = 20; // Longer than the run.
  EXPECT_DOUBLE_EQ(learningRate(options, 13), 0.7);
}

// As Megatron-LM's RampupBatchsizeNumMicroBatchesCalculator: START + INC int(consumed / (SAMPLES / increments)).
TEST(BatchRamp, GrowsWithTheSequencesThatAreRead) {
  BatchRamp ramp("2+2:12", 8, 4);
  int64_t position = 0;
  std::vector<int64_t> batches;
  for (int step = 0; step < 6; ++step)
    position += batches.emplace_back(ramp.batchAt(position));
  EXPECT_THAT(batches, testing::ElementsAre(2, 2, 4, 6, 8, 8));
  // An increment of more than a microbatch, and intervals that are no whole number: of 3.5 sequences.
  BatchRamp uneven("1+3:7", 7, 7);
  for (auto [position, batch] : {std::pair(0, 1), {3, 1}, {4, 4}, {6, 4}, {7, 7}, {1000, 7}})
    EXPECT_EQ(uneven.batchAt(position), batch) << position;
  // The product of both is more than 2^63.
  BatchRamp large("1+1:9223372036854775807", 1 << 20, 1 << 20);
  EXPECT_EQ(large.batchAt(int64_t(1) << 62), 1 << 19);
  EXPECT_EQ(BatchRamp::samplesOf("2+2:12"), 12);
}

TEST(BatchRamp, SaysWhatIsPossible) {
  for (auto [text, why] :
       {std::pair("", "must be START+INCREMENT:SAMPLES"), {"2", "must be START+"}, {"2+2", "must be START+"},
        {"2+2:", "must be START+"}, {"2+2:12x", "must be START+"}, {"2:2:12", "must be START+"}, {"0+2:12", "from 1 on"},
        {"2+0:12", "from 1 on"}, {"2+2:0", "from 1 on"}, {"2+2:-3", "from 1 on"}, {" 2+2:12", "must be START+"},
        {"2+2:9223372036854775808", "must be START+"},
        {"3+2:12", "batch of 8 sequences has 4 microbatches of 2, so START must be 2, 4 or 6, but is 3"},
        {"8+2:12", "START must be 2, 4 or 6, but is 8"},
        {"2+4:12", "INCREMENT must be 2 or 6 to come from 2 to 8, but is 4"},
        {"2+3:12", "INCREMENT must be 2 or 6 to come from 2 to 8, but is 3"},
        {"6+4:12", "INCREMENT must be 2 to come from 6 to 8, but is 4"}}) {
    SCOPED_TRACE(text);
    try {
      BatchRamp ramp(text, 8, 4);
      ADD_FAILURE();
    } catch (const Error &error) {
      EXPECT_THAT(error.what(), testing::HasSubstr(why));
    }
  }
  // No more numbers than can be read.
  try {
    BatchRamp ramp("5+5:12", 1000, 500);
    ADD_FAILURE();
  } catch (const Error &error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("START must be 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, .., but is 5"));
  }
}

// Each source gets its share of any beginning of the run, in an order and epochs of its own.
TEST(DataOrder, MixesSources) {
  std::vector<DataOrder::Source> sources = {{0, 7, 5, 0}, {7, 4, 2, 0}, {11, 100, 3, 0}};
  for (bool shuffle : {false, true}) {
    DataOrder order(sources, 0, shuffle, 3);
    std::vector<std::vector<int64_t>> seen(3);
    for (int64_t n = 0; n < 1000; ++n) {
      std::vector<int64_t> taken = order.taken(n);
      for (size_t i = 0; i < 3; ++i) {
        EXPECT_EQ(taken[i], int64_t(seen[i].size()));
        EXPECT_LE(std::abs(double(taken[i]) - double(n) * sources[i].weight / 10), 1.5);
      }
      int64_t index = order.at(n);
      size_t source = index < 7 ? 0 : index < 11 ? 1 : 2;
      seen[source].push_back(index - sources[source].first);
    }
    // Every epoch has every sequence, and each is another one where they are shuffled.
    for (size_t i = 0; i < 3; ++i) {
      std::vector<int64_t> inOrder(size_t(sources[i].sequences)), first;
      std::iota(inOrder.begin(), inOrder.end(), 0);
      std::set<std::vector<int64_t>> epochs;
      auto size = ptrdiff_t(inOrder.size());
      for (auto at = seen[i].begin(); seen[i].end() - at >= size; at += size) {
        std::vector<int64_t> epoch(at, at + size);
        epochs.insert(epoch);
        std::sort(epoch.begin(), epoch.end());
        EXPECT_EQ(epoch, inOrder);
      }
      EXPECT_EQ(epochs.size() > 1, shuffle);
    }
  }
  // A mixture that begins later goes on with what its sources have read; far away it is as fast.
  sources[1].taken = 6;
  DataOrder later(sources, 50, false, 0);
  EXPECT_THAT(later.taken(50), testing::ElementsAre(0, 6, 0));
  int64_t n = 50;
  while (later.at(n) < 7 || later.at(n) >= 11)
    ++n;
  EXPECT_EQ(later.at(n), 7 + 6 % 4);
  EXPECT_THAT(DataOrder(sources, 0, true, 0).taken(int64_t(1) << 50),
              testing::ElementsAre(int64_t(1) << 49, testing::Ge(int64_t(1) << 47), testing::Ge(int64_t(1) << 48)));
  // One source is what it was without mixtures, and of two sources as long each has an order of its own.
  DataOrder alone(100, true, 3), one({{0, 100}}, 0, true, 3), two({{0, 100}, {100, 100}}, 0, true, 3);
  std::vector<int64_t> ofFirst, ofSecond;
  for (int64_t i = 0; i < 200; ++i) {
    EXPECT_EQ(alone.at(i), one.at(i));
    int64_t index = two.at(i);
    (index < 100 ? ofFirst : ofSecond).push_back(index % 100);
  }
  EXPECT_NE(ofFirst, ofSecond);
}
