//===- ShardingTest.cpp - which device holds what ---------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Dist/Propagation/FactorAxes.h"

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

TEST(ShardingRule, IdsNameTheFactorTheyPointInto) {
  // As embedding.
  ShardingRule r = rule("~v d, @v ... -> ... d", {{9, 4}, {2, 3}});
  EXPECT_EQ(r.operands[0].indexes, -1);
  EXPECT_EQ(r.operands[1].indexes, r.find("v"));
  EXPECT_EQ(r.factors[r.find("v")].size, 9);
  EXPECT_TRUE(r.factors[r.find("v")].reduced);
  EXPECT_EQ(r.str(), "~v d, @v _0 _1 -> _0 _1 d");
  // Cut rows make the result a partial sum: ids of other devices' rows give zeros.
  Mesh mesh = cube();
  FactorAxes axes(r.factors.size());
  axes[r.find("v")] = {0};
  EXPECT_EQ(partialFromReduction(r, 0, axes), AxisMask(1));
}

TEST(FactorAxes, ChoosesWhatMovesLeastBytes) {
  Mesh mesh = cube();
  ShardingRule r = rule("~b i, ~o i -> b o", {{8, 8}, {8, 8}});
  Sharding x{{Axes{0}, Axes{}}, {}, false}, w{{Axes{0}, Axes{}}, {}, false};
  Sharding y = Sharding::replicated(2);
  auto choose = [&](int64_t ofX, int64_t ofW, int priorityOfW) {
    FactorClaims claims;
    claims.add(r, x, ofX, 0, mesh);
    claims.add(r, w, ofW, priorityOfW, mesh);
    claims.add(r, y, 100, 0, mesh);
    return chooseFactorAxes(r, std::move(claims), mesh);
  };
  FactorAxes axes = choose(100, 10, 0);
  EXPECT_EQ(axes[r.find("b")], Axes{0});
  EXPECT_TRUE(axes[r.find("o")].empty()) << "an axis serves one factor";
  EXPECT_EQ(choose(10, 100, 0)[r.find("o")], Axes{0});
  EXPECT_EQ(choose(100, 10, 1)[r.find("o")], Axes{0}) << "priority comes before bytes";
}

TEST(FactorAxes, ReportsConflictsWithTheirCosts) {
  Mesh mesh = cube();
  ShardingRule r = rule("~b i, ~o i -> b o", {{8, 8}, {8, 8}});
  FactorClaims claims;
  // Axis a on rows of x, on rows of w; the sum over i would be partial instead.
  claims.add(r, {{Axes{0}, Axes{}}, {}, false}, 64, 0, mesh);
  claims.add(r, {{Axes{0}, Axes{}}, {}, false}, 32, 0, mesh);
  claims.add(r, Sharding::replicated(2), 16, 0, mesh);
  SmallVector<AxisConflict> conflicts;
  auto report = [&](const AxisConflict &conflict) { conflicts.push_back(conflict); };
  FactorClaims undecided = claims;
  resolveConflicts(r, undecided, mesh, /*byCost=*/false, report);
  ASSERT_EQ(conflicts.size(), 1u);
  EXPECT_EQ(conflicts[0].winner, -1);
  EXPECT_TRUE(undecided.axes[0][r.find("b")].empty());
  EXPECT_TRUE(undecided.axes[1][r.find("o")].empty());
  conflicts.clear();
  resolveConflicts(r, claims, mesh, /*byCost=*/true, report);
  // To give b the axis, all of w (16 bytes here) has to come from the other device.
  EXPECT_EQ(conflicts[0].winner, r.find("b"));
  EXPECT_EQ(conflicts[0].factors, (SmallVector<std::pair<unsigned, int64_t>>{
                                      {unsigned(r.find("b")), 16}, {unsigned(r.find("o")), 32}}));
  EXPECT_EQ(claims.axes[0][r.find("b")], Axes{0});
  EXPECT_TRUE(claims.axes[1][r.find("o")].empty());
}

TEST(Mesh, NamesPartsOfAnAxisTogether) {
  Mesh mesh{{{"data", 2}, {"tensor.0", 2}, {"tensors", 3}, {"tensor.1", 4}}};
  EXPECT_EQ(mesh.named("tensor"), (Axes{1, 3}));
  EXPECT_EQ(mesh.named("tensor.1"), (Axes{3}));
  EXPECT_EQ(mesh.named("data"), (Axes{0}));
  EXPECT_TRUE(mesh.named("pipe").empty());
}
