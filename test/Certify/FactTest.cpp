//===- FactTest.cpp - distributions and offsets without IR -------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Certify/Fact.h"

#include <gtest/gtest.h>

using namespace meshwright;
using namespace meshwright::certify;

static const Mesh mesh{{{"a", 2}, {"b", 3}, {"c", 4}}};

/// The offset of parts is where each device's part begins, whatever the order of axes.
TEST(Offset, OfPartsIsTheDevicesPosition) {
  for (const Axes &axes : {Axes{}, Axes{0}, Axes{2, 0}, Axes{1, 2, 0}, Axes{0, 1, 2}}) {
    Offset offset = Offset::ofParts(axes, 5, mesh);
    for (int64_t rank = 0; rank < mesh.size(); ++rank) {
      int64_t begin = 0;
      for (auto [axis, factor] : offset.terms)
        begin += factor * mesh.coordinate(rank, axis);
      EXPECT_EQ(begin, 5 * mesh.position(rank, axes));
    }
    EXPECT_EQ(offset.axesOfParts(5, mesh), axes);
    EXPECT_FALSE(offset && offset.axesOfParts(4, mesh));
  }
}

TEST(Offset, AddsAndNegates) {
  Offset a = Offset::ofParts({0, 2}, 6, mesh), b = Offset::ofParts({1}, 6, mesh);
  EXPECT_EQ(a.plus(b)->plus(a.negated()), b);
  EXPECT_FALSE(*a.plus(a.negated()));
  // Six devices that each begin six elements behind another, but not along {0, 1}.
  EXPECT_FALSE(a.plus(b)->axesOfParts(6, mesh));
}

TEST(Distribution, SaysWhatADeviceHas) {
  Distribution type = Distribution::replicated({12, 7, anyExtent});
  type.dims[0] = {2, 1};
  type.sum = {0};
  EXPECT_EQ(type.localExtent(0, mesh), 1);
  EXPECT_EQ(type.localExtent(1, mesh), 7);
  EXPECT_EQ(type.localExtent(2, mesh), anyExtent);
  for (unsigned axis : {0, 1, 2})
    EXPECT_FALSE(type.isReplicated(axis));
  EXPECT_EQ(type.str(mesh), "12x7x? sharded [{c, b}, {}, {}] partial by sum over {a}");
  EXPECT_EQ(Distribution::replicated({}).str(mesh), "scalar replicated");
}

/// What the device one further along c has, in each group of devices along c.
TEST(Pieces, MoveAlongSomeAxes) {
  Pieces shards = Pieces::ofShards({1, 2}, 24, mesh), moved = shards.permuted({1, 2, 3, 0}, {2}, mesh);
  for (int64_t rank = 0; rank < mesh.size(); ++rank) {
    int64_t b = mesh.coordinate(rank, 1), c = (mesh.coordinate(rank, 2) + 1) % 4;
    EXPECT_EQ(moved.of[mesh.position(rank, {1, 2})].front().first, 2 * (4 * b + c));
  }
  EXPECT_EQ(moved.permuted({3, 0, 1, 2}, {2}, mesh), shards);
  EXPECT_EQ(shards.permuted({1, 2, 0}, {1}, mesh).of[0].front().first, 8);
}

TEST(Distribution, IsDiagonalIfAnAxisDividesTwoDimensions) {
  Distribution type = Distribution::replicated({12, 12});
  type.dims = {{1}, {2}};
  EXPECT_FALSE(type.isDiagonal());
  type.dims[1] = {2, 1};
  EXPECT_TRUE(type.isDiagonal());
  type.dims[1].clear();
  type.pieces[1] = Pieces::ofShards({1}, 12, mesh);
  EXPECT_TRUE(type.isDiagonal());
}

TEST(Summands, OfTwoIndicesAreTheTermsOfBoth) {
  Summands both = Summands::ofDevices({1}, mesh).times(Summands::ofDevices({2}, mesh));
  EXPECT_EQ(both, Summands::ofDevices({1, 2}, mesh));
  EXPECT_EQ(both.permuted({1, 2, 0}, {1}, mesh).of[0].find_first(), 4);
}

TEST(Summands, AreThereOnce) {
  Summands own = Summands::ofDevices({1}, mesh), moved = own.permuted({1, 2, 0}, {1}, mesh);
  EXPECT_FALSE(own.plus(own));
  std::optional<Summands> two = own.plus(moved);
  ASSERT_TRUE(two);
  EXPECT_FALSE(two->isComplete());
  EXPECT_FALSE(two->plus(moved));
  EXPECT_TRUE(two->plus(moved.permuted({1, 2, 0}, {1}, mesh))->isComplete());
  EXPECT_FALSE(own.plus(Summands::ofDevices({2}, mesh)));
}

TEST(Summands, AreOfEqualBlocks) {
  Pieces shards = Pieces::ofShards({1}, 6, mesh);
  EXPECT_EQ(*Summands::ofBlocks(shards, 6), Summands::ofDevices({1}, mesh));
  // Every third element is no block, nor are two that begin in the middle of one.
  EXPECT_FALSE(Summands::ofBlocks({{1}, {{{0, 2, 3}}, {{1, 2, 3}}, {{2, 2, 3}}}}, 6));
  EXPECT_FALSE(Summands::ofBlocks({{1}, {{{1, 2}}, {{2, 2}}, {{4, 2}}}}, 6));
  EXPECT_FALSE(Summands::ofBlocks(shards.pad(1, 4), 6));
}
