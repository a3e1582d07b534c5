//===- RecomputeGraphTest.cpp - the choice of what to keep is the best one ---===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Dist/Remat/RecomputeGraph.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

using namespace meshwright::dist;

namespace {
/// A random graph: every third operation cannot run again, some values are free.
RecomputeGraph randomGraph(std::mt19937 &random) {
  RecomputeGraph graph;
  for (int i = 0; i < 3; ++i)
    graph.values.push_back({1 + int64_t(random() % 20), -1, random() % 3 == 0, false});
  for (int i = 0; i < 8; ++i) {
    RecomputeGraph::Op op;
    op.cost = random() % 6 == 0 ? INFINITY : double(random() % 100);
    for (unsigned n = 1 + random() % 2; n--;)
      op.operands.push_back(random() % graph.values.size());
    for (unsigned n = 1 + random() % 2; n--;)
      graph.values.push_back({1 + int64_t(random() % 20), i, false, random() % 2 == 0});
    graph.ops.push_back(op);
  }
  return graph;
}

/// Bytes to keep when exactly the operations in `again` run; -1 if one cannot.
int64_t bytesWith(const RecomputeGraph &graph, unsigned again) {
  int64_t bytes = 0;
  for (auto [v, value] : llvm::enumerate(graph.values)) {
    bool read = value.needed;
    for (auto [i, op] : llvm::enumerate(graph.ops))
      if ((again >> i & 1) && llvm::is_contained(op.operands, v))
        read = true;
    if (read && !value.free && (value.op < 0 || !(again >> value.op & 1)))
      bytes += value.bytes;
  }
  for (auto [i, op] : llvm::enumerate(graph.ops))
    if ((again >> i & 1) && std::isinf(op.cost))
      return -1;
  return bytes;
}
} // namespace

TEST(RecomputeGraph, CutIsTheCheapestOfAllChoices) {
  std::mt19937 random(7);
  for (int round = 0; round < 300; ++round) {
    RecomputeGraph graph = randomGraph(random);
    for (double price : {0.1, 1.0, 7.0, 50.0, anyPrice}) {
      RecomputeChoice choice = cheapestChoice(graph, price);
      unsigned again = 0;
      for (unsigned i = 0; i < graph.ops.size(); ++i)
        again |= unsigned(choice.recomputed.test(i)) << i;
      EXPECT_EQ(choice.bytes, bytesWith(graph, again)) << "round " << round;
      auto value = [&](double cost, int64_t bytes) {
        return std::isinf(price) ? double(bytes) * 1e6 + cost : cost + price * double(bytes);
      };
      double best = INFINITY;
      for (unsigned set = 0; set < 1u << graph.ops.size(); ++set) {
        double cost = 0;
        for (unsigned i = 0; i < graph.ops.size(); ++i)
          cost += set >> i & 1 ? graph.ops[i].cost : 0;
        if (int64_t bytes = bytesWith(graph, set); bytes >= 0)
          best = std::min(best, value(cost, bytes));
      }
      EXPECT_NEAR(value(choice.cost, choice.bytes), best, 1e-6 * (1 + best))
          << "round " << round << " price " << price;
    }
  }
}

TEST(RecomputeGraph, EfficientChoicesAreTheHull) {
  std::mt19937 random(11);
  for (int round = 0; round < 300; ++round) {
    RecomputeGraph graph = randomGraph(random);
    std::vector<PricedChoice> choices = efficientChoices(graph);
    for (size_t i = 0; i < choices.size(); ++i) {
      // Each comes back at its price.
      RecomputeChoice again = cheapestChoice(graph, choices[i].price);
      EXPECT_EQ(again.bytes, choices[i].choice.bytes);
      EXPECT_NEAR(again.cost, choices[i].choice.cost, 1e-9);
      if (i) {
        EXPECT_LT(choices[i].choice.bytes, choices[i - 1].choice.bytes);
        EXPECT_GT(choices[i].choice.cost, choices[i - 1].choice.cost);
      }
    }
    // No choice is below a line between neighbours.
    for (unsigned set = 0; set < 1u << graph.ops.size(); ++set) {
      int64_t bytes = bytesWith(graph, set);
      double cost = 0;
      for (unsigned i = 0; i < graph.ops.size(); ++i)
        cost += set >> i & 1 ? graph.ops[i].cost : 0;
      if (bytes < 0)
        continue;
      for (size_t i = 1; i < choices.size(); ++i) {
        const RecomputeChoice &a = choices[i - 1].choice, &b = choices[i].choice;
        double price = (b.cost - a.cost) / double(a.bytes - b.bytes);
        EXPECT_GE(cost + price * double(bytes), (a.cost + price * double(a.bytes)) * (1 - 1e-9))
            << "round " << round;
      }
    }
  }
}
