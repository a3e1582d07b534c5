//===- BindingTest.cpp - how ranks divide a machine's cores -------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// On machines that hwloc makes up of a description.
//
//===----------------------------------------------------------------------===//
#include "common/launch/Binding.h"

#include <cstdlib>
#include <gtest/gtest.h>

using namespace meshwright;

namespace {
std::vector<Core> machine(const char *description) {
  setenv("HWLOC_SYNTHETIC", description, 1);
  std::vector<Core> cores = coresOfMachine();
  unsetenv("HWLOC_SYNTHETIC");
  return cores;
}

/// What each of so many ranks gets.
std::vector<std::string> divided(const std::vector<Core> &cores, int ranks, int threads) {
  std::vector<std::string> result;
  for (int rank = 0; rank < ranks; ++rank)
    result.push_back(textOf(shareOf(cores, rank, ranks, threads)));
  return result;
}
using Shares = std::vector<std::string>;

const char *twoPackages = "package:2 numa:1 l3:12 core:8 pu:1";
const char *eightMemories = "package:2 numa:4 core:24 pu:1";
const char *twoThreadsACore = "package:2 numa:1 core:96 pu:2";
} // namespace

TEST(Binding, TwoTimes96Cores) {
  std::vector<Core> cores = machine(twoPackages);
  ASSERT_EQ(cores.size(), 192u);
  EXPECT_EQ(cores[95].node, cores[0].node);
  EXPECT_NE(cores[96].node, cores[0].node);
  // Each rank within one memory, also where there are more cores than ranks need.
  EXPECT_EQ(divided(cores, 2, 96), Shares({"0-95", "96-191"}));
  EXPECT_EQ(divided(cores, 4, 48), Shares({"0-47", "48-95", "96-143", "144-191"}));
  EXPECT_EQ(divided(cores, 8, 8)[3], "72-95");
  EXPECT_EQ(divided(cores, 3, 48), Shares({"0-47", "48-95", "96-191"}));
  EXPECT_EQ(divided(cores, 1, 8), Shares({"0-95"}));
  EXPECT_EQ(divided(cores, 192, 1)[191], "191");
  // One that needs cores of both gets those that are its share.
  EXPECT_EQ(divided(cores, 3, 64), Shares({"0-63", "64-127", "128-191"}));
  // Nothing to choose, or too few.
  EXPECT_EQ(divided(cores, 1, 192), Shares({""}));
  EXPECT_EQ(divided(cores, 1, 97), Shares({""}));
  EXPECT_EQ(divided(cores, 2, 97), Shares({"", ""}));
  EXPECT_EQ(divided(cores, 193, 1)[7], "");
}

TEST(Binding, SeveralMemoriesAPackage) {
  std::vector<Core> cores = machine(eightMemories);
  ASSERT_EQ(cores.size(), 192u);
  EXPECT_EQ(divided(cores, 8, 24)[5], "120-143");
  EXPECT_EQ(divided(cores, 2, 24), Shares({"0-23", "96-119"}));
  EXPECT_EQ(divided(cores, 2, 48), Shares({"0-47", "96-143"}));
  EXPECT_EQ(divided(cores, 2, 96), Shares({"0-95", "96-191"}));
  EXPECT_EQ(divided(cores, 1, 40), Shares({"0-47"}));
}

TEST(Binding, SeveralThreadsACore) {
  std::vector<Core> cores = machine(twoThreadsACore);
  ASSERT_EQ(cores.size(), 192u);
  ASSERT_EQ(cores[1].threads, CoreList({2, 3}));
  // As many threads as the hardware has, or one a core.
  EXPECT_EQ(divided(cores, 2, 192), Shares({"0-191", "192-383"}));
  EXPECT_EQ(divided(cores, 2, 96), Shares({"0-191", "192-383"}));
  EXPECT_EQ(divided(cores, 4, 48)[1], "96-191");
  EXPECT_EQ(divided(cores, 1, 384), Shares({""}));
  // Nine of 36 hardware threads each: no share of whole cores has room for as many.
  EXPECT_EQ(divided(machine("package:2 numa:1 core:18 pu:2"), 8, 9), Shares(8, ""));
  EXPECT_EQ(divided(machine("package:2 numa:1 core:18 pu:2"), 4, 18)[3], "54-71");
}

TEST(Binding, OneMemory) {
  std::vector<Core> cores = machine("package:1 numa:1 core:8 pu:1");
  EXPECT_EQ(divided(cores, 2, 2), Shares({"0-3", "4-7"}));
  // The system shares them out as well.
  EXPECT_EQ(divided(cores, 2, 4), Shares({"", ""}));
  EXPECT_EQ(divided(cores, 1, 2), Shares({""}));
  EXPECT_EQ(divided(machine("core:2 pu:1"), 2, 1), Shares({"", ""}));
}

TEST(Binding, NotWhereSomebodyHasChosen) {
  setenv("HWLOC_SYNTHETIC", "numa:2 core:2 pu:1", 1);
  const CoreList all = {0, 1, 2, 3};
  using Lists = std::vector<CoreList>;
  EXPECT_EQ(sharesOfMachine(all, 2, 2), Lists({{0, 1}, {2, 3}}));
  EXPECT_EQ(sharesOfMachine({0, 1, 2}, 2, 1), Lists({{}, {}})); // By taskset, mpirun or srun.
  for (const char *variable : {"OMP_PROC_BIND", "OMP_PLACES", "GOMP_CPU_AFFINITY"}) {
    setenv(variable, "close", 1);
    EXPECT_EQ(sharesOfMachine(all, 2, 2), Lists({{}, {}})) << variable;
    unsetenv(variable);
  }
  setenv("MESHWRIGHT_BIND", "off", 1);
  EXPECT_EQ(sharesOfMachine(all, 2, 2), Lists({{}, {}}));
  unsetenv("MESHWRIGHT_BIND");
  unsetenv("HWLOC_SYNTHETIC");
}

TEST(Binding, Text) {
  EXPECT_EQ(textOf({}), "");
  EXPECT_EQ(textOf({0, 1, 2, 5, 7, 8}), "0-2,5,7-8");
}
