//===- ClusterTest.cpp - clusters, their files and their collectives --------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "meshwright/Cost/Cluster.h"
#include "meshwright/Cost/Profile.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

using namespace meshwright::cost;
using testing::ElementsAre;
using testing::HasSubstr;

namespace {
const char *const device = "[[devices]]\nlike = \"h100-sxm\"\n";
const char *const inside = "[[levels]]\nname = \"inside\"\ncount = 4\nlatency = 1e-6\n"
                           "bandwidth = 100e9\nsource = \"a test\"\n";
const char *const outside = "[[levels]]\nname = \"outside\"\nlatency = 1e-5\nbandwidth = 10e9\n"
                            "source = \"a test\"\n";

std::string file(std::string devices = device, std::string first = inside,
                 std::string second = outside) {
  return "name = \"test\"\ntarget = \"cuda\"\n" + devices + first + second;
}
Cluster read(const std::string &text) { return llvm::cantFail(readCluster(text, "c.toml")); }
std::string refusal(const std::string &text) {
  llvm::Expected<Cluster> cluster = readCluster(text, "c.toml");
  return cluster ? "accepted" : toString(cluster.takeError());
}
} // namespace

TEST(Cluster, KnowsWhereItsDevicesAre) {
  Cluster cluster = read(file());
  EXPECT_FALSE(cluster.size());
  EXPECT_EQ(cluster.devicesPerUnit(1), 4);
  EXPECT_EQ(cluster.between(0, 3).name, "inside");
  EXPECT_EQ(cluster.between(3, 4).name, "outside");
  GroupLayout machine = cluster.layoutOf({0, 1, 2, 3});
  EXPECT_EQ(machine.level, 0u);
  EXPECT_THAT(machine.units, ElementsAre(4, 1));
  GroupLayout rail = cluster.layoutOf({1, 5, 9});
  EXPECT_EQ(rail.level, 1u);
  EXPECT_EQ(rail.membersPerUnit, 1);
  EXPECT_THAT(rail.units, ElementsAre(1, 3));
  GroupLayout both = cluster.layoutOf({0, 1, 4, 5});
  EXPECT_EQ(both.membersPerUnit, 2);
  EXPECT_THAT(both.units, ElementsAre(2, 2));
}

TEST(Cluster, SendsOnRingsOfMessagesWithoutAlgorithms) {
  Cluster cluster = read(file());
  GroupLayout machine = cluster.layoutOf({0, 1, 2, 3});
  EXPECT_DOUBLE_EQ(cluster.collectiveSeconds("all_gather", 1e9, machine), 3e-6 + 1e-2);
  EXPECT_DOUBLE_EQ(cluster.collectiveSeconds("all_reduce", 1e9, machine), 6e-6 + 1e-2);
  // One of a machine has one adapter, two have two.
  EXPECT_DOUBLE_EQ(cluster.collectiveSeconds("all_gather", 1e9, cluster.layoutOf({0, 4})),
                   1e-5 + 0.1);
  EXPECT_DOUBLE_EQ(cluster.collectiveSeconds("all_gather", 1e9, cluster.layoutOf({0, 1, 4, 5})),
                   3e-5 + 0.05);
  // What goes to all others leaves the machine but for the part of the neighbour.
  EXPECT_DOUBLE_EQ(cluster.collectiveSeconds("all_to_all", 3e9, cluster.layoutOf({0, 1, 4, 5})),
                   1e-5 + 0.2);
  EXPECT_EQ(cluster.collectiveSeconds("all_reduce", 1e9, cluster.layoutOf({2})), 0);
}

TEST(Cluster, TakesTheFastestAlgorithm) {
  auto algorithm = [](std::string name, std::string pattern, std::string rest) {
    return "[[levels.algorithms]]\nname = \"" + name + "\"\ncollectives = [\"all_reduce\"]\n" +
           "pattern = \"" + pattern + "\"\nsource = \"a test\"\n" + rest;
  };
  Cluster cluster =
      read(file(device, inside + algorithm("low", "ring", "base = 1e-6\nbandwidth = 1e9\n") +
                            algorithm("wide", "ring", "base = 1e-3\nstep = 1e-3\n"
                                                      "bandwidth = [[2, 5e9], [4, 10e9]]\n"),
                outside + algorithm("tree", "tree", "step = 1e-3\nbandwidth = 1e9\n")));
  GroupLayout machine = cluster.layoutOf({0, 1, 2, 3});
  EXPECT_DOUBLE_EQ(cluster.collectiveSeconds("all_reduce", 1e6, machine), 1e-6 + 1e-3);
  EXPECT_DOUBLE_EQ(cluster.collectiveSeconds("all_reduce", 1e9, machine), 7e-3 + 0.1);
  // A tree goes up and down over machines; others are as without algorithms.
  GroupLayout far = cluster.layoutOf({0, 4, 8, 12});
  EXPECT_DOUBLE_EQ(cluster.collectiveSeconds("all_reduce", 1e6, far), 4e-3 + 1e-3);
  EXPECT_DOUBLE_EQ(cluster.collectiveSeconds("all_gather", 1e6, far), 3e-5 + 1e-4);
}

TEST(Cluster, MayHaveSeveralTypesOfDevices) {
  Cluster cluster = read(file("[[devices]]\nlike = \"h100-sxm\"\ncount = 8\n"
                              "[[devices]]\nlike = \"a100-sxm\"\n"));
  EXPECT_EQ(cluster.deviceAt(7).name, "h100-sxm");
  EXPECT_EQ(cluster.deviceAt(8).name, "a100-sxm");
  EXPECT_EQ(cluster.deviceAt(8).machine.bandwidth, 100e9);
  EXPECT_EQ(cluster.deviceAt(8).network.bandwidth, 10e9);
  // Where each type has a number of devices, these are all.
  Cluster counted = read(file("[[devices]]\nlike = \"h100-sxm\"\ncount = 8\n"
                              "[[devices]]\nlike = \"a100-sxm\"\ncount = 4\n"));
  EXPECT_EQ(counted.size(), 12);
}

TEST(Cluster, RefusesNumbersOfDevicesThatContradictEachOther) {
  auto types = [](std::string first, std::string second) {
    return "[[devices]]\nlike = \"h100-sxm\"\n" + first + "[[devices]]\nlike = \"a100-sxm\"\n" +
           second;
  };
  auto level = [](std::string name, std::string count) {
    return "[[levels]]\nname = \"" + name + "\"\n" + count +
           "latency = 0\nbandwidth = 1\nsource = \"a test\"\n";
  };
  std::string two = level("machines", "count = 2\n"); // of the four devices inside
  EXPECT_EQ(read(file(types("count = 3\n", "count = 5\n"), inside, two)).size(), 8);
  EXPECT_EQ(read(file(types("count = 7\n", ""), inside, two)).size(), 8);
  EXPECT_EQ(refusal(file(types("count = 3\n", "count = 4\n"), inside, two)),
            "c.toml, line 6: 'count': the types have 7 devices, but the levels connect 8");
  EXPECT_EQ(refusal(file(types("count = 8\n", ""), inside, two)),
            "c.toml, line 6: 'count': the types have 8 devices without the last type, which has no "
            "'count', but the levels connect 8");
  EXPECT_EQ(refusal(file(types("count = 3\n", "count = 4\n"))),
            "c.toml, line 8: the 7 devices of all types are no multiple of the 4 that the levels "
            "connect");
  EXPECT_EQ(refusal(file(device, level("a", "count = 2147483648\n"), level("b", "count = 2\n"))),
            "c.toml, line 13: with this 'count' there are more than 2147483648 devices");
  EXPECT_EQ(refusal(file(device, inside, level("inside", ""))),
            "c.toml, line 12: there is a level 'inside' already");
}

TEST(Cluster, RefusesNumbersThatMakeTimesNoNumbers) {
  auto with = [](std::string line) { return file(std::string(device) + line + "\n"); };
  EXPECT_EQ(refusal(with("memory = 0")), "c.toml, line 5: 'memory' must be positive");
  EXPECT_EQ(refusal(with("grouped_share = 0")), "c.toml, line 5: 'grouped_share' must be positive");
  EXPECT_EQ(refusal(with("launch = inf")),
            "c.toml, line 5: 'launch' must be a number that is not negative, below 1e30");
  EXPECT_EQ(refusal(with("launch = nan")),
            "c.toml, line 5: 'launch' must be a number that is not negative");
  EXPECT_EQ(refusal(with("memory_bandwidth = 5e-324")),
            "c.toml, line 5: 'memory_bandwidth' must be a positive number, from 1e-30 on");
  EXPECT_THAT(refusal(with("memory_bandwidth = [[1, 1e9], [inf, 1e9]]")),
              HasSubstr("'memory_bandwidth' must be a positive number, or pairs"));
  EXPECT_THAT(refusal(with("functions.expp = 1e9")),
              HasSubstr("line 5: 'functions' 'expp' is not supported; did you mean exp"));
  EXPECT_EQ(refusal(with("host = {latency = 0, bandwidth = 0}")),
            "c.toml, line 5: 'bandwidth' must be positive");
  EXPECT_EQ(refusal(file(device, inside, std::string(outside) + "contention = 2\n")),
            "c.toml, line 16: 'contention' must be a part of a collective's time, from 0 to 1");
  EXPECT_THAT(refusal("levels = [1]\nname = \"x\"\ntarget = \"cuda\"\n" + std::string(device)),
              HasSubstr("line 1: 'levels' must be tables, each begun by [[levels]]"));
}

TEST(Cluster, ReplacesTheRatesOfSmallHeadsWithThoseOfAttention) {
  std::string row = "[[devices]]\nlike = \"h100-sxm-measured\"\n";
  EXPECT_GT(read(file(row)).deviceAt(0).smallHeads.peak(), 0);
  Cluster own = read(file(row + "attention.bf16 = 1e12\n"));
  EXPECT_EQ(own.deviceAt(0).smallHeads.peak(), 0);
  EXPECT_GT(own.deviceAt(0).smallHeadsGrad.peak(), 0);
}

TEST(Cluster, ReplacesTilesWithTheRatesOfProducts) {
  std::string row = "[[devices]]\nlike = \"h100-sxm-measured\"\n";
  EXPECT_TRUE(read(file(row + "products.f32 = 1e12\n")).deviceAt(0).tiles);
  EXPECT_FALSE(read(file(row + "products.bf16 = 1e12\n")).deviceAt(0).tiles);
}

TEST(Cluster, DescribesDevicesThatTheTableDoesNotHave) {
  std::string own = "[[devices]]\nname = \"mine\"\nmemory = 1e9\nproducts.f32 = 1e12\n"
                    "products.bf16 = [[1e6, 1e12], [1e9, 4e12]]\nmemory_bandwidth = 1e11\n"
                    "launch = 1e-6\nhost = {latency = 0, bandwidth = 1e10}\nsource = \"a test\"\n";
  const Device &mine = read(file(own)).deviceAt(0);
  EXPECT_EQ(mine.peakNarrow, 4e12);
  EXPECT_EQ(mine.kernels.peak(), 1e12);
  EXPECT_EQ(mine.capacity, 1e9);
  EXPECT_THAT(refusal(file("[[devices]]\nname = \"mine\"\n")), HasSubstr("'memory' is missing"));
}

TEST(Cluster, RefusesFilesWithLineAndKey) {
  EXPECT_THAT(refusal("name = "), HasSubstr("c.toml, line 1: "));
  EXPECT_EQ(refusal("name = \"x\"\ntarget = \"cuda\"\n" + std::string(device)),
            "c.toml, line 1: 'levels' is missing");
  EXPECT_THAT(refusal(file("[[devices]]\nlike = \"h100\"\n")),
              HasSubstr("c.toml, line 4: 'like' 'h100' is not supported; did you mean"));
  EXPECT_THAT(refusal(file() + "bandwith = 3\n"),
              HasSubstr("line 16: unknown key 'bandwith' is not supported; did you mean bandwidth"));
  EXPECT_THAT(refusal(file(device, "[[levels]]\nname = \"a\"\nlatency = 0\nbandwidth = 1\n"
                                   "source = \"a test\"\n")),
              HasSubstr("line 5: 'count' is missing"));
  EXPECT_THAT(refusal(file(device, inside, "[[levels]]\nname = \"a\"\nlatency = -1\n"
                                           "bandwidth = 1\nsource = \"a test\"\n")),
              HasSubstr("'latency' must be a number that is not negative"));
  EXPECT_THAT(refusal(file(device, inside, "[[levels]]\nname = \"a\"\nlatency = 1\n"
                                           "bandwidth = 0\nsource = \"a test\"\n")),
              HasSubstr("'bandwidth' must be positive"));
  EXPECT_THAT(refusal(file(std::string(device) + "memory_bandwidth = [[2, 3], [1, 4]]\n")),
              HasSubstr("line 5: 'memory_bandwidth' must be a positive number, or pairs"));
  EXPECT_THAT(refusal(file(device, "[[levels]]\nname = \"a\"\ncount = 2\nlatency = 0\n"
                                   "bandwidth = 1\n")),
              HasSubstr("'source' is missing"));
}

TEST(Cluster, OfMeshwrightItselfCanBeRead) {
  for (const NamedCluster &known : getClusters()) {
    llvm::Expected<Cluster> cluster = readCluster(known.text, known.name);
    ASSERT_TRUE(bool(cluster)) << toString(cluster.takeError());
    EXPECT_EQ(cluster->name, known.name);
    // Wider groups, and more bytes, take no less time. (An all-to-all of 8 was measured to have a
    // longer latency than one of 16 on two machines.)
    for (llvm::StringRef kind : {"all_reduce", "all_gather", "reduce_scatter"})
      for (int64_t stride : {1, 8}) {
        double before = 0;
        for (int64_t members : {2, 4, 8, 16, 32}) {
          llvm::SmallVector<int64_t> ranks;
          for (int64_t i = 0; i < members; ++i)
            ranks.push_back(i * stride);
          GroupLayout layout = cluster->layoutOf(ranks);
          double small = cluster->collectiveSeconds(kind, 1e4, layout);
          double large = cluster->collectiveSeconds(kind, 1e9, layout);
          EXPECT_GT(small, 0);
          EXPECT_GT(large, small);
          EXPECT_GE(small, before * 0.99) << known.name.str() << " " << kind.str() << " " << members;
          before = small;
        }
      }
  }
  for (const NamedProfile &known : getProfiles()) {
    llvm::Expected<Profile> profile = readProfile(known.name);
    ASSERT_TRUE(bool(profile)) << toString(profile.takeError());
    EXPECT_EQ(profile->name, known.name);
  }
  EXPECT_EQ(llvm::cantFail(readProfile("meshwright")).products, 1);
}
