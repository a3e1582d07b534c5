//===- PlanTest.cpp - plans are read and checked ---------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "PlanText.h"
#include "Process.h"
#include "common/checkpoint/Gather.h"
#include "common/checkpoint/SafeTensors.h"
#include "common/checkpoint/TensorCopy.h"
#include "common/monitor/AttentionShares.h"
#include "common/monitor/Error.h"
#include "common/plan/Plan.h"
#include "common/plan/Sharding.h"
#include "meshwright/runtime/Normal.h"

#include <cmath>
#include <cstring>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <numeric>
#include <set>

using namespace meshwright;
using namespace testing_process;
using Json = nlohmann::json;
using testing::HasSubstr;

static std::string parseError(const Json &json) {
  try {
    Plan::parse(json.dump());
  } catch (const Error &error) {
    return error.what();
  }
  return "";
}

TEST(Plan, NamesWhatIsMissingOrWrong) {
  Json good = planText({7, 5}, {2, 5}, {{"a", "b"}, Json::array()});
  EXPECT_EQ(parseError(good), "");
  for (const auto &[key, value] : good.items()) {
    Json without = good;
    without.erase(key);
    EXPECT_THAT(parseError(without), HasSubstr("\"" + key + "\"")) << key;
  }
  for (const char *key :
       {"name", "role", "type", "shape", "local_shape", "sharding", "offset", "init", "storage"}) {
    Json without = good;
    without["variables"][0].erase(key);
    EXPECT_THAT(parseError(without), HasSubstr(key));
  }
  auto changed = [&](const char *path, Json value) {
    Json bad = good;
    bad[Json::json_pointer(path)] = value;
    return parseError(bad);
  };
  EXPECT_THAT(changed("/inputs/0/shape/1", 3), HasSubstr("\"tokens\" is [1, 3, 4]"));
  EXPECT_THAT(changed("/inputs/0/name", "lokens"), HasSubstr("lokens"));
  EXPECT_THAT(changed("/version", 2), HasSubstr("version 2"));
  EXPECT_THAT(changed("/batch", "x"), HasSubstr("wrong type"));
  EXPECT_THAT(changed("/batch", 7), HasSubstr("does not divide"));
  EXPECT_THAT(changed("/data_axes/0", "c"), HasSubstr("\"c\""));
  // Padding makes parts larger, nothing smaller.
  EXPECT_EQ(changed("/variables/0/local_shape/0", 3), "");
  EXPECT_THAT(changed("/variables/0/local_shape/0", 1), HasSubstr("local_shape"));
  EXPECT_THAT(changed("/variables/0/offset", 8), HasSubstr("multiple of 64"));
  EXPECT_THAT(changed("/variables/0/offset", 4096), HasSubstr("arena"));
  EXPECT_THAT(changed("/variables/0/type", "f31"), HasSubstr("f31"));
  EXPECT_THAT(changed("/variables/0/init/kind", "xavier"), HasSubstr("xavier"));
}

/// The keys of T and of the structs in it.
template <typename T> struct Keys {
  static void add(std::set<std::string> &keys) {
    if constexpr (!std::is_arithmetic_v<T> && !std::is_same_v<T, std::string>) {
      T initial;
      T::fields(initial, [&](const char *key, auto &field) {
        keys.insert(key);
        Keys<std::decay_t<decltype(field)>>::add(keys);
      });
    }
  }
};
template <typename T> struct Keys<std::optional<T>> : Keys<T> {};
template <typename T> struct Keys<plan::List<T>> : Keys<T> {};
template <typename T> struct Keys<plan::Table<T>> : Keys<T> {};

TEST(Plan, EachKeyIsDescribed) {
  std::string page = readFile(PLAN_PAGE);
  std::set<std::string> keys;
  Keys<plan::Plan>::add(keys);
  EXPECT_GE(keys.size(), 80u);
  for (const std::string &key : keys)
    EXPECT_TRUE(page.find("`" + key + "`") != page.npos || page.find("\"" + key + "\"") != page.npos)
        << PLAN_PAGE << " does not say what \"" << key << "\" is";
}

TEST(Plan, VariablesInOffloadSpaces) {
  for (MemorySpace space : offloadSpaces) {
    const MemorySpaceRow &row = spaceRow(space);
    Json text = planText({8, 6}, {4, 2}, {{"a"}, {"b"}});
    text["programs"][0][row.bytes] = 128;
    text["programs"][0][row.memory] = {{{"category", "parameter"}, {"bytes", 128}}};
    text["variables"][0][row.variable] = true;
    if (row.staging) {
      text["programs"][0]["host_bytes"] = row.staging / 2;
      EXPECT_THROW(Plan::parse(text.dump(), 0), Error);
      text["programs"][0]["host_bytes"] = row.staging;
    }
    Plan plan = Plan::parse(text.dump(), 0);
    EXPECT_EQ(plan.spaces[space].bytes, 128);
    ASSERT_EQ(plan.spaces[space].memory.size(), 1u);
    EXPECT_EQ(plan.variables[0].space, space);
    EXPECT_EQ(plan.variableRange().end, 0); // none are in the arena
    char there = 0;
    BySpace<char *> arenas = {};
    arenas[space] = &there;
    EXPECT_EQ(VariableAddresses(arenas).of(plan.variables[0]), &there + 64);
    text["programs"][0][row.bytes] = 64;
    EXPECT_THROW(Plan::parse(text.dump(), 0), Error);
  }
}

/// Two programs along axis a, each with two layers of three, the second one tied.
static Json twoPrograms() {
  Json text = planText({2, 4}, {2, 4}, {Json::array(), Json::array()}, /*stacked=*/true,
                       {{"tensor", "h.{layer}.w"}});
  text["programs"][0]["at"] = {{"a", {0}}};
  text["programs"].push_back(
      plan::whole<plan::Program>({{"name", "second"}, {"at", {{"a", {1}}}}, {"arena_bytes", 8192}}));
  for (const char *list : {"variables", "inputs", "outputs"}) {
    Json other = text[list];
    for (Json &entry : other) {
      entry["in"] = 1;
      text[list].push_back(entry);
    }
  }
  text["variables"][1]["offset"] = 6400;
  text["variables"][1]["storage"]["tensor"] = "h.{layer+1}.w";
  return text;
}

TEST(Plan, RanksSeeTheirProgram) {
  Json text = twoPrograms();
  for (int64_t rank = 0; rank < 6; ++rank) {
    Plan plan = Plan::parse(text.dump(), rank);
    EXPECT_EQ(plan.program, size_t(rank / 3));
    EXPECT_EQ(plan.arena().bytes, rank < 3 ? 4096 : 8192);
    ASSERT_EQ(plan.variables.size(), 1u);
    EXPECT_EQ(plan.variables[0].offset, rank < 3 ? 64 : 6400);
    // What one rank of each program writes, and the tied layer once.
    std::vector<FileTensor> tensors = fileTensors(plan, WeightKind::Parameters);
    ASSERT_EQ(tensors.size(), 3u);
    for (size_t layer = 0; layer < 3; ++layer) {
      EXPECT_EQ(tensors[layer].name, "h." + std::to_string(layer) + ".w");
      ASSERT_EQ(tensors[layer].parts.size(), 1u);
      int64_t owner = layer < 2 ? 0 : 3;
      EXPECT_EQ(ownsShard(plan, *tensors[layer].parts[0].first, rank), rank == owner);
    }
  }
}

TEST(Plan, EveryRankRunsOneProgram) {
  auto changed = [&](const char *path, Json value) {
    Json bad = twoPrograms();
    bad[Json::json_pointer(path)] = value;
    return parseError(bad);
  };
  EXPECT_EQ(changed("/programs/1/at/a", {1}), "");
  EXPECT_THAT(changed("/programs/1/at", Json::object()),
              HasSubstr("rank 0 is to run both program main and program second"));
  EXPECT_THAT(changed("/programs/1/at/b", {1}), HasSubstr("no program is for rank 3"));
  EXPECT_THAT(changed("/programs/1/at/a", {2}), HasSubstr("is at 2 of axis \"a\""));
  EXPECT_THAT(changed("/programs/1/at", {{"c", {0}}}), HasSubstr("\"c\""));
  EXPECT_THAT(changed("/variables/1/in", 2), HasSubstr("is in program 2 of 2"));
}

/// A plan whose ranks divide attention over axis b: rank r of it has the queries r, r + 3, ..
static Json dividedPlan() {
  Json text = planText({6}, {1}, Json::array({{"a", "b"}}));
  text["programs"][0]["attention_shares"] = {{{"axes", {"b"}},
                                              {"first_queries", {0, 1, 2}},
                                              {"first_keys", {1, 2, 0}},
                                              {"queries", 2},
                                              {"query_stride", 3},
                                              {"keys", 2},
                                              {"key_stride", 3},
                                              {"window", 0},
                                              {"flops", 10.0}}};
  return text;
}

TEST(Plan, SharesOfAttentionAreChecked) {
  auto changed = [&](const char *name, Json value) {
    Json bad = dividedPlan();
    bad["programs"][0]["attention_shares"][0][name] = value;
    return parseError(bad);
  };
  EXPECT_EQ(parseError(dividedPlan()), "");
  EXPECT_THAT(changed("axes", {"c"}), HasSubstr("\"c\""));
  EXPECT_THAT(changed("first_queries", {0, 1}), HasSubstr("among 3 ranks, but has the first query of 2"));
  EXPECT_THAT(changed("first_keys", {0}), HasSubstr("the first key of 1"));
  EXPECT_THAT(changed("first_queries", {0, 1, -1}), HasSubstr("the number -1, which must be from 0"));
  EXPECT_THAT(changed("query_stride", 0), HasSubstr("the number 0, which must be from 1"));
  for (const char *name : {"queries", "query_stride", "keys", "key_stride", "window"})
    EXPECT_THAT(changed(name, int64_t(1) << 31), HasSubstr("to 2147483647")) << name;
}

TEST(Plan, SharesOfAttentionCountWhatADocumentSees) {
  // Tokens 0 and 1 are a document, 2 and 3 another.
  const int32_t positions[] = {0, 1, 0, 1};
  auto flops = [&](const Json &text, int64_t rank) {
    Plan plan = Plan::parse(text.dump(), rank);
    return AttentionShares(plan, rank).flops(positions);
  };
  EXPECT_FALSE(AttentionShares::areCounted(Plan::parse(planText({6}, {1}, Json::array({{"a", "b"}})).dump())));
  EXPECT_TRUE(AttentionShares::areCounted(Plan::parse(dividedPlan().dump())));
  // Query 0 does not see key 1, and key 4 is padding; nor does query 3 see it.
  EXPECT_EQ(flops(dividedPlan(), 0), 0);
  // Query 1 does not see key 2; query 4 is padding.
  EXPECT_EQ(flops(dividedPlan(), 1), 0);
  // Query 2 does not see key 0, which is of another document.
  EXPECT_EQ(flops(dividedPlan(), 5), 0);
  Json whole = dividedPlan();
  auto &share = whole["programs"][0]["attention_shares"][0];
  share.erase("first_keys");
  share["keys"] = 4, share["key_stride"] = 1;
  EXPECT_EQ(flops(whole, 0), 30); // 0 sees itself, 3 sees 2 and itself
  EXPECT_EQ(flops(whole, 4), 20);
  EXPECT_EQ(flops(whole, 2), 10);
  share["window"] = 1;
  EXPECT_EQ(flops(whole, 0), 20);
  share["first_keys"] = {0, 0, 0}, share["keys"] = 2, share["key_stride"] = 3, share["window"] = 0;
  EXPECT_EQ(flops(whole, 0), 20); // of keys 0 and 3
}

TEST(Plan, GroupsAreRowMajor) {
  Plan plan = Plan::parse(planText({6}, {1}, Json::array({{"a", "b"}})).dump());
  EXPECT_EQ(plan.ranks(), 6);
  EXPECT_THAT(plan.coordinates(4), testing::ElementsAre(1, 1));
  EXPECT_THAT(plan.groupMembers({0}, 4), testing::ElementsAre(1, 4));
  EXPECT_THAT(plan.groupMembers({1}, 4), testing::ElementsAre(3, 4, 5));
  EXPECT_THAT(plan.groupMembers({1, 0}, 4), testing::ElementsAre(0, 3, 1, 4, 2, 5));
  EXPECT_THAT(plan.groupMembers({}, 4), testing::ElementsAre(4));
}
