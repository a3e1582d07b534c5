//===- MessagePairsTest.cpp - how many splits a rank takes part in -----------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "cuda/MessagePairs.h"

#include <algorithm>
#include <chrono>
#include <gtest/gtest.h>
#include <map>
#include <set>

using namespace meshwright;
using namespace meshwright::cuda;

namespace {
/// Stages that send forward to the next one and backward to the one before, each in a group of its
/// own, as plans have them; around from the last to the first where `interleaved`.
Plan planOf(int64_t data, int64_t pipe, int64_t tensor, bool interleaved) {
  Plan plan;
  plan.mesh = {{"data", data}, {"pipe", pipe}, {"tensor", tensor}};
  for (int64_t stage = 0; stage < pipe; ++stage) {
    plan.programs.emplace_back().name = "stage";
    plan.programs.back().at = {{1, {stage}}};
  }
  auto send = [&](int64_t from, int64_t to) {
    CollectiveEntry entry;
    entry.op = "send";
    entry.program = from;
    entry.group = int64_t(plan.groups.size());
    entry.peer = to;
    plan.groups.push_back({1});
    plan.collectives.push_back(entry);
    plan.collectives.push_back(entry); // Of each microbatch's messages one communicator is enough.
  };
  for (int64_t stage = 0; stage + 1 < pipe + interleaved; ++stage) {
    send(stage, (stage + 1) % pipe);
    send((stage + 1) % pipe, stage);
  }
  return plan;
}

/// Checks that all pairs have a round, in which each rank is once; their number.
size_t roundsOf(const Plan &plan, size_t expectedPairs) {
  std::vector<MessagePair> pairs = messagePairs(plan);
  EXPECT_EQ(pairs.size(), expectedPairs);
  std::vector<std::vector<MessagePair>> rounds = cuda::roundsOf(pairs);
  std::set<MessagePair> seen;
  for (const std::vector<MessagePair> &round : rounds) {
    std::set<int> ranks;
    for (const MessagePair &pair : round) {
      EXPECT_TRUE(ranks.insert(pair.from).second && ranks.insert(pair.to).second);
      EXPECT_TRUE(seen.insert(pair).second);
    }
  }
  EXPECT_EQ(seen.size(), pairs.size());
  return rounds.size();
}
} // namespace

// A rank in the middle of a pipeline has four pairs, and takes part in so many splits.
TEST(MessagePairs, SplitsOf4096Ranks) {
  auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(roundsOf(planOf(32, 16, 8, false), 256 * 30), 4u);
  EXPECT_EQ(roundsOf(planOf(8, 64, 8, false), 64 * 126), 4u);
  EXPECT_EQ(roundsOf(planOf(8, 64, 8, true), 64 * 128), 4u);
  // Each had taken hours when pairs were looked for among all ranks, and 126 splits.
  std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
  EXPECT_LT(taken.count(), 10);
}

TEST(MessagePairs, FewRanks) {
  EXPECT_EQ(roundsOf(planOf(1, 1, 4, false), 0), 0u);
  EXPECT_EQ(roundsOf(planOf(1, 2, 1, false), 2), 2u);
  // An odd circle needs one round more than a rank has pairs.
  EXPECT_LE(roundsOf(planOf(1, 5, 1, true), 10), 6u);
  Plan both = planOf(2, 2, 1, false);
  both.collectives[2].peer = 1; // To itself: nothing.
  both.collectives[3].peer = 1;
  EXPECT_EQ(roundsOf(both, 2), 1u);
}

// What pairs are found by.
TEST(MessagePairs, GroupMembers) {
  Plan plan = planOf(2, 3, 4, false);
  EXPECT_EQ(plan.groupMembers({1}, 13), std::vector<int>({13, 17, 21}));
  EXPECT_EQ(plan.groupMembers({2, 0}, 9), std::vector<int>({8, 20, 9, 21, 10, 22, 11, 23}));
  EXPECT_EQ(plan.groupMembers({}, 9), std::vector<int>({9}));
  for (int rank = 0; rank < 24; ++rank)
    EXPECT_EQ(plan.groupMembers({0, 1, 2}, rank)[size_t(rank)], rank);
}
