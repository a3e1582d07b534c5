//===- TorusTest.cpp - collectives and messages on a torus ------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "meshwright/Cost/Cluster.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

using namespace meshwright::cost;
using testing::HasSubstr;

namespace {
std::string torusFile(std::string keys, std::string more = "") {
  return "name = \"test\"\ntarget = \"cuda\"\n[[devices]]\nlike = \"h100-sxm\"\n[[levels]]\nname = \"links\"\n" + keys +
         "\nlatency = 1e-6\nbandwidth = 1e9\nsource = \"a test\"\n" + more;
}
Cluster torus(std::string sizes) {
  return llvm::cantFail(readCluster(torusFile("torus = " + sizes), "c.toml"));
}
std::string refusalOfTorus(const std::string &text) {
  llvm::Expected<Cluster> cluster = readCluster(text, "c.toml");
  return cluster ? "accepted" : toString(cluster.takeError());
}
llvm::SmallVector<int64_t> ranks(int64_t count, int64_t stride = 1, int64_t first = 0) {
  llvm::SmallVector<int64_t> ranks;
  for (int64_t i = 0; i < count; ++i)
    ranks.push_back(first + i * stride);
  return ranks;
}
double gather(const Cluster &cluster, llvm::ArrayRef<int64_t> ranks, double bytes) {
  return cluster.collectiveSeconds("all_gather", bytes, cluster.layoutOf(ranks));
}
} // namespace

TEST(Torus, GathersAlongARingInBothDirections) {
  Cluster cluster = torus("[4, 8]");
  EXPECT_EQ(cluster.size(), 32);
  EXPECT_DOUBLE_EQ(gather(cluster, ranks(8), 1e9), 7e-6 + 0.5);
  EXPECT_DOUBLE_EQ(gather(cluster, ranks(4, 8), 1e9), 3e-6 + 0.5);
  EXPECT_DOUBLE_EQ(cluster.collectiveSeconds("all_reduce", 1e9, cluster.layoutOf(ranks(8))), 14e-6 + 0.5);
}

TEST(Torus, GathersAlongLinesOnce) {
  Cluster cluster = torus("[4, 8]");
  // Half of a ring, and every other device of one, whose links carry two groups.
  EXPECT_DOUBLE_EQ(gather(cluster, ranks(4), 1e9), 3e-6 + 1);
  EXPECT_DOUBLE_EQ(gather(cluster, ranks(4, 2), 1e9), 6e-6 + 1);
  EXPECT_DOUBLE_EQ(gather(cluster, ranks(2, 4), 1e9), 4e-6 + 4);
}

TEST(Torus, UsesAllDimensionsOfABoxAtOnce) {
  // Both halves of 15 parts of 1e8 / 15 bytes each, in two directions: 3 parts, then 12.
  EXPECT_DOUBLE_EQ(gather(torus("[4, 4]"), ranks(16), 1.5e9), 6e-6 + 1.5 / 4);
  EXPECT_DOUBLE_EQ(gather(torus("[4, 4, 4]"), ranks(64), 6.3e9), 9e-6 + 6.3 / 6);
}

TEST(Torus, CountsMessagesThatShareLinks) {
  Cluster cluster = torus("[4, 4]");
  // To the next: each has a link. To the one opposite: all go up, two on each link.
  MessageWay next = cluster.wayOf({{0, 4}, {4, 8}, {8, 12}, {12, 0}});
  EXPECT_EQ(next.hops, 1);
  EXPECT_EQ(next.sharing, 1);
  MessageWay far = cluster.wayOf({{0, 8}, {4, 12}, {8, 0}, {12, 4}});
  EXPECT_EQ(far.hops, 2);
  EXPECT_EQ(far.sharing, 2);
  EXPECT_DOUBLE_EQ(far.seconds(1e9), 2e-6 + 2);
  EXPECT_EQ(cluster.wayOf({{0, 5}}).hops, 2);
  EXPECT_EQ(cluster.wayOf({{0, 3}}).hops, 1);
  EXPECT_EQ(cluster.wayOf({{3, 3}}).seconds(1e9), 0);
}

TEST(Torus, CountsWhatAllSendToAll) {
  // On a ring of four up: one to the next from each, and two to the one opposite; three messages on a link.
  Cluster ring = torus("[4]");
  EXPECT_DOUBLE_EQ(ring.collectiveSeconds("all_to_all", 3e9, ring.layoutOf(ranks(4))), 2e-6 + 3);
  // Along each of two dimensions four times as many of a fifth of the size.
  Cluster square = torus("[4, 4]");
  EXPECT_DOUBLE_EQ(square.collectiveSeconds("all_to_all", 15e9, square.layoutOf(ranks(16))), 4e-6 + 12);
}

TEST(Torus, KnowsBoxes) {
  Torus torus{{4, 8}};
  auto box = torus.boxOf(ranks(16));
  ASSERT_TRUE(box);
  EXPECT_EQ((*box)[0], (TorusExtent{2, 1, false}));
  EXPECT_EQ((*box)[1], (TorusExtent{8, 1, true}));
  EXPECT_FALSE(torus.boxOf(ranks(12)));
  EXPECT_FALSE(torus.boxOf({0, 1, 3}));
  EXPECT_TRUE(torus.boxOf({0, 2, 4, 6, 16, 18, 20, 22}));
}

TEST(Torus, MayBeOneOfSeveral) {
  Cluster cluster = llvm::cantFail(readCluster(
      torusFile("torus = [2, 4]", "[[levels]]\nname = \"network\"\nlatency = 1e-4\nbandwidth = 1e8\nsource = \"a test\"\n"), "c.toml"));
  EXPECT_FALSE(cluster.size());
  EXPECT_EQ(cluster.between(7, 8).name, "network");
  EXPECT_DOUBLE_EQ(gather(cluster, ranks(2, 8), 1e8), 1e-4 + 1);
  EXPECT_EQ(cluster.wayOf({{0, 1}, {7, 8}}).level, 1u);
}

TEST(Torus, RefusesWhatItCannotBe) {
  EXPECT_EQ(refusalOfTorus(torusFile("torus = [4, 1]")), "c.toml, line 7: 'torus' must be a list of sizes from 2 on, such as [4, 4, 8], of at most 2147483648 devices");
  EXPECT_THAT(refusalOfTorus(torusFile("torus = 4")), HasSubstr("'torus' must be a list"));
  EXPECT_THAT(refusalOfTorus(torusFile("torus = []")), HasSubstr("'torus' must be a list"));
  EXPECT_THAT(refusalOfTorus(torusFile("torus = [65536, 65536]")), HasSubstr("of at most 2147483648 devices"));
  EXPECT_THAT(refusalOfTorus(torusFile("torus = [4, 4]\ncount = 16")), HasSubstr("line 8: 'count' of a torus"));
  EXPECT_THAT(refusalOfTorus(torusFile("count = 4", "[[levels]]\nname = \"far\"\ntorus = [2, 2]\nlatency = 0\nbandwidth = 1\nsource = \"a test\"\n")),
              HasSubstr("line 13: 'torus': only the first of the levels"));
}
