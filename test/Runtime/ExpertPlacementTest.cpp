//===- ExpertPlacementTest.cpp - where copies of experts are chosen to be --===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Process.h"

#include "common/monitor/Error.h"
#include "common/train/ExpertCopies.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <random>

using namespace meshwright;
using namespace testing_process;

/// The tokens of each device if those of an expert are as many at all residues, by the table alone.
static std::vector<double> byTable(const std::vector<double> &loads, const PlacementSizes &sizes, const std::vector<int32_t> &table) {
  std::vector<double> devices(size_t(sizes.devices));
  size_t own = loads.size() / devices.size(), slots = size_t(sizes.slots) / devices.size();
  for (size_t e = 0; e < loads.size(); ++e)
    devices[e / own] += loads[e];
  for (size_t r = 0; r < size_t(sizes.residues); ++r)
    for (size_t c = 0; c < size_t(sizes.slots); ++c)
      if (int32_t expert = table[r * size_t(sizes.slots) + c]; expert >= 0) {
        double tokens = loads[size_t(expert)] / double(sizes.residues);
        devices[size_t(expert) / own] -= tokens;
        devices[c / slots] += tokens;
      }
  return devices;
}

/// What programs rely on.
static void checkTable(const std::vector<double> &loads, const PlacementSizes &sizes, const std::vector<int32_t> &table) {
  ASSERT_EQ(int64_t(table.size()), sizes.elements());
  size_t slots = size_t(sizes.slots), last = size_t(sizes.residues) * slots;
  for (size_t r = 0; r <= size_t(sizes.residues); ++r) {
    std::vector<int> times(loads.size());
    for (size_t c = 0; c < slots; ++c) {
      int32_t expert = table[r * slots + c];
      ASSERT_TRUE(expert >= -1 && expert < int32_t(loads.size()));
      if (expert < 0 || r == size_t(sizes.residues))
        continue;
      EXPECT_EQ(expert, table[last + c]) << "a slot takes tokens of an expert whose matrices it has not";
      EXPECT_EQ(times[size_t(expert)]++, 0) << "two copies take the same tokens";
    }
  }
}

static double largest(const std::vector<double> &values) { return *std::max_element(values.begin(), values.end()); }

TEST(ExpertPlacementTest, APopularExpertIsDivided) {
  ExpertPlacement placed = placeExperts({40, 0, 0, 0}, {4, 4, 16});
  EXPECT_THAT(placed.before, testing::ElementsAre(40, 0, 0, 0));
  EXPECT_THAT(placed.after, testing::ElementsAre(10, 10, 10, 10));
  // Its own device has no copy, and the others take a quarter each.
  EXPECT_THAT(std::vector<int32_t>(placed.table.end() - 4, placed.table.end()), testing::ElementsAre(-1, 0, 0, 0));
  for (int64_t slot = 1; slot < 4; ++slot) {
    int64_t residues = 0;
    for (int64_t r = 0; r < 16; ++r)
      residues += placed.table[size_t(r * 4 + slot)] == 0;
    EXPECT_EQ(residues, 4);
  }
}

TEST(ExpertPlacementTest, BalancedExpertsHaveNoCopies) {
  for (const std::vector<double> &loads : {std::vector<double>{3, 3, 3, 3}, {1, 5, 5, 1}, {0, 0, 0, 0}}) {
    PlacementSizes sizes{2, 4, 8};
    EXPECT_EQ(placeExperts(loads, sizes).table, withoutCopies(sizes));
  }
}

TEST(ExpertPlacementTest, WithOneResidueExpertsMoveAsAWhole) {
  ExpertPlacement placed = placeExperts({6, 5, 1, 0}, {2, 2, 1});
  EXPECT_THAT(placed.after, testing::ElementsAre(6, 6));
  EXPECT_THAT(placed.table, testing::ElementsAre(-1, 1, -1, 1));
}

TEST(ExpertPlacementTest, RandomLoads) {
  std::mt19937 random(7);
  double before = 0, after = 0;
  for (int trial = 0; trial < 400; ++trial) {
    PlacementSizes sizes;
    sizes.devices = int64_t(2 + random() % 7);
    sizes.slots = sizes.devices * int64_t(1 + random() % 3);
    sizes.residues = int64_t(1 + random() % 16);
    std::vector<double> loads(size_t(sizes.devices) * (1 + random() % 6));
    for (double &load : loads)
      load = random() % 4 ? double(random() % 100) : double(random() % 1000);
    ExpertPlacement placed = placeExperts(loads, sizes);
    checkTable(loads, sizes, placed.table);
    std::vector<double> devices = byTable(loads, sizes, placed.table);
    for (size_t d = 0; d < devices.size(); ++d)
      EXPECT_NEAR(devices[d], placed.after[d], 1e-6);
    EXPECT_LE(largest(placed.after), largest(placed.before));
    before += largest(placed.before);
    after += largest(placed.after);
  }
  EXPECT_LT(after, 0.7 * before);
}

TEST(ExpertPlacementTest, LoadsAreOfTheLastStepThatHasSome) {
  TemporaryDirectory scratch;
  std::string path = scratch.path("metrics.jsonl");
  writeFile(path, "{\"step\": 0, \"expert_tokens\": {\"1\": [1, 2], \"2\": [3, 4]}}\n"
                  "{\"step\": 1, \"expert_tokens\": {\"1\": [5, 6], \"2\": [null, 4]}}\n"
                  "{\"step\": 2, \"loss\": 1}\n{\"step\": 3, \"expert_to");
  EXPECT_EQ(readExpertLoads(path), (ExpertLoads{{1, {5, 6}}}));
  writeFile(path, "{\"step\": 2, \"loss\": 1}\n");
  EXPECT_THROW(readExpertLoads(path), Error);
}
