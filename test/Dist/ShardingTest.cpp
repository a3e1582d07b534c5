//===- ShardingTest.cpp - which device holds what ---------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Dist/FactorAxes.h"

#include <gtest/gtest.h>

using namespace meshwright;
using namespace meshwright::dist;
using llvm::SmallVector;

static Mesh cube() { return {{{"a", 2}, {"b", 3}, {"c", 4}}}; }

TEST(Mesh, NumbersRanksRowMajor) {
  Mesh mesh = cube();
  EXPECT_EQ(mesh.size(), 24);
  // Rank 17 = 1 * 12 + 1 * 4 + 1.
  EXPECT_EQ(mesh.coordinate(17, 0), 1);
  EXPECT_EQ(mesh.coordinate(17, 1), 1);
  EXPECT_EQ(mesh.coordinate(17, 2), 1);
  EXPECT_EQ(mesh.coordinate(23, 1), 2);
}

TEST(Mesh, GroupsFollowTheOrderOfAxes) {
  Mesh mesh = cube();
  EXPECT_EQ(mesh.group(5, {1}), (SmallVector<int64_t>{1, 5, 9}));
  EXPECT_EQ(mesh.position(5, {1}), 1);
  EXPECT_EQ(mesh.group(0, {1, 0}), (SmallVector<int64_t>{0, 12, 4, 16, 8, 20}));
  for (int64_t rank = 0; rank < mesh.size(); ++rank)
    for (Axes axes : {Axes{}, Axes{0}, Axes{2, 0}, Axes{0, 1, 2}, Axes{1, 2}})
      EXPECT_EQ(mesh.group(rank, axes)[mesh.position(rank, axes)], rank);
}

TEST(Sharding, LocalShapesTileTheTensor) {
  Mesh mesh = cube();
  Sharding s = Sharding::replicated(2);
  s.dims[0] = {2, 0};
  EXPECT_EQ(localShape({16, 5}, s, mesh), (SmallVector<int64_t>{2, 5}));
  // Rank 13: a = 1, b = 0, c = 1; part 1 * 2 + 1.
  EXPECT_EQ(localOffset({16, 5}, s, mesh, 13), (SmallVector<int64_t>{6, 0}));
  EXPECT_EQ(firstUneven({16, 5}, s, mesh), -1);
  s.dims[1] = {1};
  EXPECT_EQ(firstUneven({16, 5}, s, mesh), 1);
  EXPECT_EQ(s.str(mesh), "[{c, a}, {b}]");
}

static ShardingRule rule(llvm::StringRef text, llvm::ArrayRef<llvm::ArrayRef<int64_t>> shapes,
                         llvm::ArrayRef<std::pair<llvm::StringRef, int64_t>> known = {}) {
  std::string error;
  SmallVector<int64_t> ranks;
  for (auto shape : shapes)
    ranks.push_back(shape.size());
  ShardingRule r = *parseShardingRule(text, ranks, error);
  EXPECT_TRUE(succeeded(inferFactorSizes(r, shapes, known, error))) << error;
  return r;
}

TEST(FactorAxes, ComposedDimensionFillsTheMajorFactorFirst) {
  Mesh mesh = cube();
  ShardingRule r = rule("(h d) -> h d", {{8}}, {{"h", 2}});
  Sharding s = Sharding::replicated(1);
  s.dims[0] = {0, 2};
  bool complete = false;
  FactorAxes axes = factorAxesOf(r, r.operands[0], s, mesh, &complete);
  EXPECT_TRUE(complete);
  EXPECT_EQ(axes[r.find("h")], Axes{0});
  EXPECT_EQ(axes[r.find("d")], Axes{2});
  // Four devices do not divide the two heads: the axis would straddle.
  s.dims[0] = {2};
  factorAxesOf(r, r.operands[0], s, mesh, &complete);
  EXPECT_FALSE(complete);
}

TEST(FactorAxes, MinorFactorNeedsTheMajorOneUsedUp) {
  Mesh mesh = cube();
  ShardingRule r = rule("(h d) -> h d", {{8}}, {{"h", 2}});
  unsigned h = r.find("h"), d = r.find("d");
  FactorAxes axes(r.factors.size());
  EXPECT_FALSE(canExtend(r, axes, d, 2, mesh));
  EXPECT_TRUE(canExtend(r, axes, h, 0, mesh));
  axes[h] = {0};
  EXPECT_TRUE(canExtend(r, axes, d, 2, mesh));
  EXPECT_FALSE(canExtend(r, axes, d, 1, mesh)) << "3 does not divide 4";
}

TEST(FactorAxes, ReductionIsPerResult) {
  Mesh mesh = cube();
  // As cross_entropy: the loss sums what lse keeps.
  ShardingRule r = rule("t v! -> , t", {{8, 4}});
  FactorAxes axes(r.factors.size());
  axes[r.find("t")] = {0};
  EXPECT_EQ(partialFromReduction(r, 0, axes), AxisMask(1));
  EXPECT_EQ(partialFromReduction(r, 1, axes), AxisMask(0));
}

TEST(FactorAxes, ChoosesWhatMostBytesHave) {
  Mesh mesh = cube();
  ShardingRule r = rule("~b i, ~o i -> b o", {{8, 8}, {8, 8}});
  Sharding x{{Axes{0}, Axes{}}, {}, false}, w{{Axes{0}, Axes{}}, {}, false};
  Sharding y = Sharding::replicated(2);
  FactorAxes axes = chooseFactorAxes(r, {&x, &w, &y}, {100, 10, 100}, mesh);
  EXPECT_EQ(axes[r.find("b")], Axes{0});
  EXPECT_TRUE(axes[r.find("o")].empty()) << "an axis serves one factor";
  axes = chooseFactorAxes(r, {&x, &w, &y}, {10, 100, 100}, mesh);
  EXPECT_EQ(axes[r.find("o")], Axes{0});
}
