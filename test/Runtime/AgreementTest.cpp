//===- AgreementTest.cpp - what ranks compare at the start -----------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Process.h"

#include "common/launch/Agreement.h"
#include "common/launch/Options.h"
#include "common/monitor/Error.h"
#include "common/plan/Plan.h"

#include <algorithm>
#include <filesystem>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <map>

using namespace meshwright;
using namespace testing_process;

/// The options of an executable whose optimizer has a hyperparameter.
static Options initial() {
  plan::Header plan;
  plan.hyperparameters = {{"eps", "", 0.5, {}, {}}};
  return Options(plan);
}

static Options parsed(const std::vector<std::string> &arguments) {
  std::vector<const char *> argv{"EXE"};
  for (const std::string &argument : arguments)
    argv.push_back(argument.c_str());
  Options options = initial();
  EXPECT_TRUE(parseOptions(int(argv.size()), argv.data(), options));
  return options;
}

namespace {
class AgreementTest : public testing::Test {
protected:
  AgreementTest() {
    writeFile(path("data.bin"), std::string(1000, 'a'));
    plan.hash = "0123456789abcdef";
  }
  std::string path(const std::string &name) const { return scratch.path(name); }

  /// The names of the terms that differ between two command lines.
  std::vector<std::string> termsThatDiffer(const Options &a, const Options &b) const {
    std::vector<Term> first = termsOf(plan, a), second = termsOf(plan, b);
    EXPECT_EQ(first.size(), second.size());
    std::vector<std::string> names;
    for (size_t i = 0; i < first.size(); ++i) {
      EXPECT_EQ(first[i].name, second[i].name);
      EXPECT_NE(first[i].remedy, "");
      if (first[i].value != second[i].value)
        names.push_back(first[i].name);
    }
    return names;
  }
  std::vector<std::string> differences(const std::vector<std::string> &a,
                                       const std::vector<std::string> &b) const {
    auto whole = [&](std::vector<std::string> arguments) {
      arguments.insert(arguments.end(), {"--steps", "3"});
      if (std::find(arguments.begin(), arguments.end(), "--data") == arguments.end())
        arguments.insert(arguments.end(), {"--data", path("data.bin")});
      return parsed(arguments);
    };
    return termsThatDiffer(whole(a), whole(b));
  }

  Plan plan;
  TemporaryDirectory scratch;
};
} // namespace

using Names = std::vector<std::string>;

// A flag that is added to the table is compared, unless the table and this list say otherwise.
TEST_F(AgreementTest, FlagsThatNeedNotBeTheSame) {
  const std::map<std::string, AcrossRanks> others = {
      {"--data", AcrossRanks::SameFile},      {"--eval-data", AcrossRanks::SameFile},
      {"--loss-mask", AcrossRanks::SameFile}, {"--eval-loss-mask", AcrossRanks::SameFile},
      {"--source", AcrossRanks::SameFile},    {"--eval-source", AcrossRanks::SameFile},
      {"--source-documents", AcrossRanks::SameFile}, {"--eval-source-documents", AcrossRanks::SameFile},
      {"--documents", AcrossRanks::SameDocuments}, {"--eval-documents", AcrossRanks::SameDocuments},
      {"--expert-loads", AcrossRanks::SameFile},
      {"--reference-log-probs", AcrossRanks::SameFile}, {"--eval-reference-log-probs", AcrossRanks::SameFile},
      {"--log-probs", AcrossRanks::Given},    {"--buddy", AcrossRanks::Given},
      {"--ssd", AcrossRanks::Given},
      {"--init", AcrossRanks::SameWeights},   {"--resume", AcrossRanks::SameCheckpoint},
      {"--dump", AcrossRanks::Given},         {"--tune", AcrossRanks::Given},
      {"--metrics", AcrossRanks::Free},       {"--ranks", AcrossRanks::Free},
      {"--tensorboard", AcrossRanks::Free},   {"--eval-only", AcrossRanks::Free},
      {"--log-samples", AcrossRanks::Free},   {"--generate", AcrossRanks::Free},
      {"--tokenizer", AcrossRanks::Free},     {"--temperature", AcrossRanks::Free},
      {"--top-k", AcrossRanks::Free},         {"--top-p", AcrossRanks::Free},
      {"--beams", AcrossRanks::Free},         {"--length-penalty", AcrossRanks::Free},
      {"--early-stopping", AcrossRanks::Free}, {"--lines", AcrossRanks::Free},
      {"--stop", AcrossRanks::Free},          {"--log-every", AcrossRanks::Free},
      {"--peak-flops", AcrossRanks::Given},   {"--adapter", AcrossRanks::SameWeights}};
  std::map<std::string, AcrossRanks> found;
  for (const FlagValue &flag : flagValues(initial()))
    if (flag.across != AcrossRanks::Same)
      found[flag.name] = flag.across;
  EXPECT_EQ(found, others);
}

TEST_F(AgreementTest, EveryOtherFlagIsCompared) {
  Names base{
      "--data", path("data.bin"), "--steps", "3",    "--save", "s",           "--trace",
      "t",      "--dump",         "d",       "--lr", "0.125",  "--eval-data", path("data.bin"),
      "--metrics", "m"};
  Options first = parsed(base);
  for (const FlagValue &flag : flagValues(first)) {
    if (flag.across != AcrossRanks::Same)
      continue;
    bool changed = false;
    for (const char *value : {"", "7", "0.0625", "u32", "cosine", "on", "skip", "sharded", "file", "elsewhere"}) {
      Names arguments = base;
      if (auto given = std::find(arguments.begin(), arguments.end(), flag.name);
          given != arguments.end())
        arguments.erase(given, given + 2);
      arguments.push_back(flag.name);
      if (*value)
        arguments.push_back(value);
      try {
        std::vector<const char *> argv{"EXE"};
        for (const std::string &argument : arguments)
          argv.push_back(argument.c_str());
        Options second = initial();
        parseOptions(int(argv.size()), argv.data(), second);
        EXPECT_THAT(termsThatDiffer(first, second), testing::ElementsAre(flag.name));
        changed = true;
        break;
      } catch (const Error &) {
      }
    }
    EXPECT_TRUE(changed) << "no value above is one of " << flag.name << ": add one";
  }
}

TEST_F(AgreementTest, NumbersAreComparedExactly) {
  EXPECT_EQ(differences({"--lr", "0.001"}, {"--lr", "1e-3"}), Names());
  EXPECT_EQ(differences({"--lr", "0.001"}, {"--lr", "0.00100000001"}), Names{"--lr"});
  EXPECT_EQ(differences({"--seed", "4294967295"}, {"--seed", "4294967294"}), Names{"--seed"});
}

// Each machine may have its own path.
TEST_F(AgreementTest, FilesAreComparedByContents) {
  for (size_t size : {size_t(1000), size_t(1) << 24}) {
    std::string content(size, 'a');
    writeFile(path("one"), content);
    writeFile(path("two"), content);
    EXPECT_EQ(differences({"--data", path("one")}, {"--data", path("two")}), Names());
    EXPECT_EQ(differences({"--eval-data", path("one")}, {"--eval-data", path("two")}), Names());
    EXPECT_EQ(differences({"--eval-data", path("one")}, {}), Names{"--eval-data"});
    for (size_t place : {size_t(0), size - 1}) {
      std::string other = content;
      other[place] = 'b';
      writeFile(path("two"), other);
      EXPECT_EQ(differences({"--data", path("one")}, {"--data", path("two")}), Names{"--data"});
    }
    writeFile(path("two"), content + "a");
    EXPECT_EQ(differences({"--data", path("one")}, {"--data", path("two")}), Names{"--data"});
  }
}

// Several files are compared with their order.
TEST_F(AgreementTest, FilesAreComparedInOrder) {
  for (const char *name : {"a", "b", "c/a.bin", "c/b.bin"}) {
    std::filesystem::create_directory(path("c"));
    writeFile(path(name), std::string(1000, std::string(name).find('a') == std::string::npos ? 'b' : 'a'));
  }
  auto files = [&](const char *flag, Names names) {
    Names words;
    for (const std::string &name : names)
      words.insert(words.end(), {flag, path(name)});
    return words;
  };
  for (const char *flag : {"--data", "--eval-data"}) {
    EXPECT_EQ(differences(files(flag, {"a", "b"}), files(flag, {"c/a.bin", "c/b.bin"})), Names());
    EXPECT_EQ(differences(files(flag, {"a", "b"}), files(flag, {"c"})), Names());
    EXPECT_EQ(differences(files(flag, {"a", "b"}), files(flag, {"b", "a"})), Names{flag});
    EXPECT_EQ(differences(files(flag, {"a", "b"}), files(flag, {"a", "b", "b"})), Names{flag});
    EXPECT_EQ(differences(files(flag, {"a", "a"}), files(flag, {"a", "b"})), Names{flag});
  }
  EXPECT_EQ(differences({"--documents", path("a"), "--documents", path("b")},
                        {"--documents", path("b"), "--documents", path("a")}),
            Names{"--documents"});
}

// A number is a token, whatever files there are.
TEST_F(AgreementTest, DocumentsAreATokenOrAFile) {
  writeFile(path("one"), std::string(16, 'a'));
  writeFile(path("two"), std::string(16, 'a'));
  writeFile(path("other"), std::string(16, 'b'));
  auto documents = [&](const std::string &value) { return Names{"--documents", value}; };
  EXPECT_EQ(differences(documents("5"), documents("5")), Names());
  EXPECT_EQ(differences(documents("5"), documents("6")), Names{"--documents"});
  EXPECT_EQ(differences(documents("5"), {}), Names{"--documents"});
  EXPECT_EQ(differences(documents(path("one")), documents(path("two"))), Names());
  EXPECT_EQ(differences(documents(path("one")), documents(path("other"))), Names{"--documents"});
  EXPECT_EQ(differences(documents(path("one")), documents("5")), Names{"--documents"});
}

static std::string tensorFile(const std::string &name, char byte) {
  std::string header = "{\"" + name + R"(":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})";
  uint64_t length = header.size();
  return std::string(reinterpret_cast<char *>(&length), 8) + header + std::string(4, byte);
}

TEST_F(AgreementTest, ShardsOfWeightsAreCompared) {
  for (auto [folder, byte] : {std::pair("a", 1), {"b", 1}, {"c", 2}}) {
    std::filesystem::create_directory(path(folder));
    writeFile(path(folder) + "/1.safetensors", tensorFile("x", 1));
    writeFile(path(folder) + "/2.safetensors", tensorFile("y", char(byte)));
    writeFile(path(folder) + "/index.json",
              R"({"weight_map":{"x":"1.safetensors","y":"2.safetensors"}})");
  }
  auto init = [&](const char *folder) { return Names{"--init", path(folder) + "/index.json"}; };
  EXPECT_EQ(differences(init("a"), init("b")), Names());
  EXPECT_EQ(differences(init("a"), init("c")), Names{"--init"});
}

TEST_F(AgreementTest, PathsOfWhatOneRankWritesMayDiffer) {
  EXPECT_EQ(differences({"--metrics", "m"}, {}), Names());
  EXPECT_EQ(differences({"--dump", "a"}, {"--dump", "b"}), Names());
  EXPECT_EQ(differences({"--dump", "a"}, {}), Names{"--dump"});
  EXPECT_EQ(differences({"--save", "a"}, {}), Names{"--save"});
  EXPECT_EQ(differences({"--save", "a:2"}, {"--save", "a:3"}), Names{"--save"});
}
