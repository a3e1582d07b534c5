//===- RematEstimatesTest.cpp - what policies come to, and the bound ---------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "meshwright/Remat.h"

#include "Dist/Dist.h"
#include "meshwright/Cost/CostTable.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Parser/Parser.h"
#include <cmath>
#include <gtest/gtest.h>

using namespace mlir;
using namespace meshwright;
using schedule::HeldAtBackward;

/// Two chunks of layers: y = relu(relu(x V) W) with values of different size and price.
static constexpr const char *twoChunks = R"(
module {
  dist.mesh @mesh []
  func.func private @layer(%x: tensor<8x64xf32>, %v: tensor<16x64xf32>, %w: tensor<64x16xf32>)
      -> (tensor<8x64xf32>, tensor<8x64xf32>, tensor<8x16xf32>, tensor<8x16xf32>, tensor<8x64xf32>) attributes {train.role = #train.role<forward>} {
    %h = train.linear %x, %v : (tensor<8x64xf32>, tensor<16x64xf32>) -> tensor<8x16xf32>
    %r = train.relu %h : (tensor<8x16xf32>) -> tensor<8x16xf32>
    %o = train.linear %r, %w : (tensor<8x16xf32>, tensor<64x16xf32>) -> tensor<8x64xf32>
    %y = train.relu %o : (tensor<8x64xf32>) -> tensor<8x64xf32>
    return %y, %x, %h, %r, %o : tensor<8x64xf32>, tensor<8x64xf32>, tensor<8x16xf32>, tensor<8x16xf32>, tensor<8x64xf32>
  }
  func.func private @back(%dy: tensor<8x64xf32>, %v: tensor<16x64xf32>, %w: tensor<64x16xf32>, %x: tensor<8x64xf32>,
      %h: tensor<8x16xf32>, %r: tensor<8x16xf32>, %o: tensor<8x64xf32>) -> (tensor<8x64xf32>, tensor<16x64xf32>, tensor<64x16xf32>)
      attributes {train.role = #train.role<backward>} {
    %do = train.relu_grad %dy, %o : (tensor<8x64xf32>, tensor<8x64xf32>) -> tensor<8x64xf32>
    %dw = train.contract "b o, b i -> o i" %do, %r : (tensor<8x64xf32>, tensor<8x16xf32>) -> tensor<64x16xf32>
    %dr = train.contract "b o, o i -> b i" %do, %w : (tensor<8x64xf32>, tensor<64x16xf32>) -> tensor<8x16xf32>
    %dh = train.relu_grad %dr, %h : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
    %dv = train.contract "b o, b i -> o i" %dh, %x : (tensor<8x16xf32>, tensor<8x64xf32>) -> tensor<16x64xf32>
    %dx = train.contract "b o, o i -> b i" %dh, %v : (tensor<8x16xf32>, tensor<16x64xf32>) -> tensor<8x64xf32>
    return %dx, %dv, %dw : tensor<8x64xf32>, tensor<16x64xf32>, tensor<64x16xf32>
  }
  func.func @step(%x: tensor<8x64xf32>, %v: tensor<5x16x64xf32>, %w: tensor<5x64x16xf32>, %v2: tensor<6x16x64xf32>, %w2: tensor<6x64x16xf32>)
      -> tensor<8x64xf32> {
    %a:5 = train.repeat @layer x 5 carry(%x) each(%v, %w) shared() {train.chunk = 0 : i64, train.role = #train.role<forward>} : (tensor<8x64xf32>, tensor<5x16x64xf32>, tensor<5x64x16xf32>)
        -> (tensor<8x64xf32>, tensor<5x8x64xf32>, tensor<5x8x16xf32>, tensor<5x8x16xf32>, tensor<5x8x64xf32>)
    %b:5 = train.repeat @layer x 6 carry(%a#0) each(%v2, %w2) shared() {train.chunk = 1 : i64, train.role = #train.role<forward>} : (tensor<8x64xf32>, tensor<6x16x64xf32>, tensor<6x64x16xf32>)
        -> (tensor<8x64xf32>, tensor<6x8x64xf32>, tensor<6x8x16xf32>, tensor<6x8x16xf32>, tensor<6x8x64xf32>)
    %e:3 = train.repeat @back x 6 reverse carry(%b#0) each(%v2, %w2, %b#1, %b#2, %b#3, %b#4) shared() {train.chunk = 1 : i64, train.role = #train.role<backward>}
        : (tensor<8x64xf32>, tensor<6x16x64xf32>, tensor<6x64x16xf32>, tensor<6x8x64xf32>, tensor<6x8x16xf32>, tensor<6x8x16xf32>, tensor<6x8x64xf32>)
        -> (tensor<8x64xf32>, tensor<6x16x64xf32>, tensor<6x64x16xf32>)
    %d:3 = train.repeat @back x 5 reverse carry(%e#0) each(%v, %w, %a#1, %a#2, %a#3, %a#4) shared() {train.chunk = 0 : i64, train.role = #train.role<backward>}
        : (tensor<8x64xf32>, tensor<5x16x64xf32>, tensor<5x64x16xf32>, tensor<5x8x64xf32>, tensor<5x8x16xf32>, tensor<5x8x16xf32>, tensor<5x8x64xf32>)
        -> (tensor<8x64xf32>, tensor<5x16x64xf32>, tensor<5x64x16xf32>)
    return %d#0 : tensor<8x64xf32>
  }
})";

namespace {
class RematEstimatesTest : public testing::Test {
protected:
  RematEstimatesTest() {
    DialectRegistry registry;
    registry.insert<train::TrainDialect, dist::DistDialect, func::FuncDialect>();
    context.appendDialectRegistry(registry);
    module = parseSourceString<ModuleOp>(twoChunks, &context);
  }
  RematEstimates estimates(std::vector<HeldAtBackward> held, bool anyGroups = true) {
    return RematEstimates(*module, std::move(held), anyGroups, cost::getDevice("a100-sxm"));
  }
  static const RematCandidate *find(const std::vector<RematCandidate> &all, StringRef name) {
    const auto *found = llvm::find_if(
        llvm::ArrayRef(all), [&](const RematCandidate &c) { return c.policy.str() == name; });
    return found == all.data() + all.size() ? nullptr : found;
  }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
};
} // namespace

// Bytes of a layer: x 2048, h 512, r 512, o 2048. h and o are products of 64 and 16 terms.
TEST_F(RematEstimatesTest, CountsWhatIsHeld) {
  ASSERT_TRUE(module);
  auto all = estimates({{0, {3, 0}}}).candidates();
  ASSERT_TRUE(find(all, "none") && find(all, "full") && find(all, "every:2") && find(all, "sqrt"));
  EXPECT_EQ(find(all, "none")->bytes, 3 * 5 * 5120);
  EXPECT_EQ(find(all, "none")->cost, 0);
  EXPECT_EQ(find(all, "full")->bytes, 3 * 5 * 2048);
  // Two groups of two layers; the fifth is alone, and all of it runs again.
  EXPECT_EQ(find(all, "every:2")->bytes, 3 * 3 * 2048 + 2 * 5120);
  EXPECT_GT(find(all, "every:2")->cost, find(all, "full")->cost);
  // Groups of four are no fewer than groups of three, but leave one layer out, whose last product
  // need not run again.
  ASSERT_TRUE(find(all, "every:3") && find(all, "every:4"));
  EXPECT_EQ(find(all, "every:4")->bytes, 3 * 2 * 2048 + 4 * 5120);
  EXPECT_LT(find(all, "every:4")->cost, find(all, "every:3")->cost);
  // Groups that divide: of five layers only all five.
  auto dividing = estimates({{0, {3, 0}}}, false).candidates();
  EXPECT_FALSE(find(dividing, "every:2"));
  EXPECT_EQ(find(dividing, "every:5")->bytes, 3 * 2048 + 5 * 5120);
}

TEST_F(RematEstimatesTest, TheBoundHolds) {
  std::vector<std::vector<HeldAtBackward>> schedules = {{{0, {1, 0}}},
                                                        {{1, {0, 4}}},
                                                        {{0, {4, 0}}, {0, {2, 0}}},
                                                        {{1, {3, 2}}, {0, {3, 1}}},
                                                        {{0, {2, 2}}}};
  for (const auto &held : schedules) {
    RematEstimates some = estimates(held);
    double closest = 0, farthest = 1, least = HUGE_VAL;
    for (const RematCandidate &candidate : some.candidates()) {
      double bound = some.leastCost(candidate.bytes);
      EXPECT_LE(bound, candidate.cost * (1 + 1e-9)) << candidate.policy.str();
      if (candidate.cost > 0) {
        closest = std::max(closest, bound / candidate.cost);
        // Not of what keeps more than a cheaper one.
        if (candidate.bytes < least)
          farthest = std::min(farthest, bound / candidate.cost);
      }
      least = std::min(least, candidate.bytes);
      // Nor does more room cost more.
      EXPECT_LE(some.leastCost(1.5 * candidate.bytes), bound * (1 + 1e-9));
    }
    // Where `none` does not fit, something runs again.
    double all = find(some.candidates(), "none")->bytes;
    for (double part : {0.99, 0.7, 0.5})
      EXPECT_GT(some.leastCost(part * all), 0) << part;
    // A bound of nothing would hold too.
    EXPECT_GT(closest, 0.9);
    EXPECT_GT(farthest, 0.3);
  }
}

// Ascending in cost, and what has no name is better than everything before it.
TEST_F(RematEstimatesTest, CandidatesAreInOrder) {
  auto all = estimates({{1, {3, 2}}, {0, {3, 1}}}).candidates();
  double least = HUGE_VAL, cost = 0;
  for (const RematCandidate &candidate : all) {
    EXPECT_GE(candidate.cost, cost);
    cost = candidate.cost;
    if (StringRef(candidate.policy.str()).contains("price"))
      EXPECT_LT(candidate.bytes, least) << candidate.policy.str();
    least = std::min(least, candidate.bytes);
  }
}

TEST(RematPolicy, ListsAreRead) {
  RematChoice choice;
  llvm::cantFail(parseOption("full, every:3 ,none,sqrt+price:16", choice));
  EXPECT_EQ(optionText(choice), "full,every:3,none,sqrt+price:16");
  EXPECT_EQ(toString(parseOption("full,", choice)).substr(0, 15), "'' is no policy");
}

TEST(RematPolicy, GroupsLeaveATail) {
  EXPECT_EQ(groupsOf(3, 7).layers, 6);
  EXPECT_EQ(groupsOf(3, 7).size, 3);
  EXPECT_EQ(groupsOf(9, 7).size, 7);
  EXPECT_EQ(groupsOf(0, 64).size, 8);
  for (int64_t count = 1; count < 200; ++count) {
    LayerGroups groups = groupsOf(0, count);
    EXPECT_EQ(groups.layers % groups.size, 0) << count;
    // What is kept stays near twice the square root.
    double kept = double(groups.layers / groups.size + groups.size + groups.tail(count));
    EXPECT_LE(kept, 3.5 * std::sqrt(count) + 1) << count;
  }
}
