//===- TrainTest.cpp - training BPE --------------------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Tokenizer/TrainBpe.h"

#include <gmock/gmock.h>

using namespace meshwright::tokenizer;
using testing::ElementsAre;

/// The texts of what is merged.
static std::vector<std::string> merges(const TrainedBpe &trained) {
  std::vector<std::string> result;
  for (auto [left, right] : trained.merges)
    result.push_back(trained.tokens[size_t(left)] + " " + trained.tokens[size_t(right)]);
  return result;
}

TEST(TrainBpe, MergesTheMostFrequentPairFirst) {
  TrainedBpe trained =
      trainBpe({{"low", 5}, {"lower", 2}, {"newest", 6}, {"widest", 3}}, 262, 1, {"<end>"});
  EXPECT_EQ(trained.tokens.size(), 262u);
  EXPECT_EQ(trained.tokens[0], "<end>");
  EXPECT_EQ(trained.tokens[1], "!"); // the first of the characters that stand for bytes
  // "es" and "st" are equally frequent: "e" comes before "s".
  EXPECT_THAT(merges(trained), ElementsAre("e s", "es t", "l o", "lo w", "e w"));
}

TEST(TrainBpe, MergesOverlapsFromTheLeft) {
  TrainedBpe trained = trainBpe({{"aaaaa", 4}}, 258, 1, {});
  EXPECT_THAT(merges(trained), ElementsAre("a a", "aa a")); // "aa aa" is as frequent.
}

TEST(TrainBpe, StopsAtTheLeastFrequency) {
  EXPECT_THAT(merges(trainBpe({{"ab", 3}, {"cd", 2}}, 300, 3, {})), ElementsAre("a b"));
  EXPECT_THAT(merges(trainBpe({{"ab", 3}, {"cd", 2}}, 300, 2, {})), ElementsAre("a b", "c d"));
  EXPECT_TRUE(trainBpe({}, 300, 1, {}).merges.empty());
}
