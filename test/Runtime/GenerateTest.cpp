//===- GenerateTest.cpp - choosing tokens, and text as they come ----------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "common/generate/Conventions.h"
#include "common/generate/Sampler.h"
#include "common/generate/TextStream.h"
#include "common/monitor/Error.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <cmath>
#include <map>

using namespace meshwright;
using testing::ElementsAre;
using testing::UnorderedElementsAre;

namespace {
const std::vector<float> logits{1.0f, 3.0f, 2.0f, 3.0f};

/// How often each token is chosen at 10,000 positions.
std::map<int32_t, double> shares(const Sampler &sampler) {
  std::map<int32_t, double> shares;
  for (int64_t position = 0; position < 10000; ++position)
    shares[sampler.choose(logits.data(), int64_t(logits.size()), position)] += 1e-4;
  return shares;
}
std::vector<int32_t> tokensOf(const Sampler &sampler) {
  std::vector<int32_t> tokens;
  for (auto &[token, share] : shares(sampler))
    tokens.push_back(token);
  return tokens;
}
} // namespace

TEST(Sampler, IsGreedyAtTemperatureZero) {
  Sampler sampler;
  sampler.temperature = 0;
  EXPECT_THAT(tokensOf(sampler), ElementsAre(1)); // the first of two
}

TEST(Sampler, DrawsByProbability) {
  Sampler sampler;
  sampler.temperature = 2;
  auto found = shares(sampler);
  double sum = 0;
  for (float logit : logits)
    sum += std::exp(double(logit) / 2);
  for (int32_t token = 0; token < 4; ++token)
    EXPECT_NEAR(found[token], std::exp(double(logits[size_t(token)]) / 2) / sum, 0.02) << token;
}

TEST(Sampler, KeepsTheMostLikely) {
  Sampler top;
  top.topK = 3;
  EXPECT_THAT(tokensOf(top), UnorderedElementsAre(1, 2, 3));
  top.topK = 1;
  EXPECT_THAT(tokensOf(top), ElementsAre(1));
  top.topK = 9;
  EXPECT_THAT(tokensOf(top), UnorderedElementsAre(0, 1, 2, 3));
  Sampler nucleus;
  nucleus.topP = 0.5; // of about 0.40, 0.40, 0.15 and 0.05
  EXPECT_THAT(tokensOf(nucleus), UnorderedElementsAre(1, 3));
  nucleus.topP = 0.9;
  EXPECT_THAT(tokensOf(nucleus), UnorderedElementsAre(1, 2, 3));
  nucleus.topP = 1e-6;
  EXPECT_THAT(tokensOf(nucleus), ElementsAre(1));
}

TEST(Sampler, IsAFunctionOfSeedAndPosition) {
  Sampler one, two;
  two.seed = 1;
  int different = 0;
  for (int64_t position = 0; position < 100; ++position) {
    EXPECT_EQ(one.choose(logits.data(), 4, position), one.choose(logits.data(), 4, position));
    different += one.choose(logits.data(), 4, position) != two.choose(logits.data(), 4, position);
  }
  EXPECT_GT(different, 10);
}

TEST(TextStream, HoldsBackIncompleteCharacters) {
  TextStream stream({});
  EXPECT_EQ(stream.next("a"), "a");
  EXPECT_EQ(stream.next("a\xE2\x82"), "");
  EXPECT_EQ(stream.next("a\xE2\x82\xAC"), "\xE2\x82\xAC");
  // Tokenizers write U+FFFD for bytes that are no character yet.
  EXPECT_EQ(stream.next("a\xE2\x82\xAC\xEF\xBF\xBD"), "");
  EXPECT_EQ(stream.next("a\xE2\x82\xAC\xC3\xA4z"), "\xC3\xA4z");
  EXPECT_EQ(stream.rest("a\xE2\x82\xAC\xC3\xA4z\xEF\xBF\xBD"), "\xEF\xBF\xBD");
}

TEST(TextStream, EndsBeforeAStopString) {
  TextStream stream({"END", "\n\n"});
  EXPECT_EQ(stream.next("one"), "one");
  EXPECT_EQ(stream.next("one\n"), ""); // may be the begin of one
  EXPECT_EQ(stream.next("one\ntwo E"), "\ntwo ");
  EXPECT_FALSE(stream.ended);
  EXPECT_EQ(stream.next("one\ntwo EN"), "");
  EXPECT_EQ(stream.next("one\ntwo ENDs"), "");
  EXPECT_TRUE(stream.ended);
  EXPECT_EQ(stream.rest("one\ntwo ENDs"), "");
}

namespace {
/// Those of a plan whose configuration says `more` too.
Conventions conventionsOf(const std::string &more) {
  Plan plan;
  plan.sourceSequence = 8;
  plan.config = R"({"decoder_start_token_id": 3, "eos_token_id": [1], "renormalize_logits": false, "unread": "",)"
                R"( "suppress_tokens": [], )" + more + "}";
  return readConventions(plan);
}
std::vector<double> applied(const Conventions &conventions, int64_t made, int64_t most) {
  std::vector<double> scores = logProbabilities(logits.data(), int64_t(logits.size()));
  conventions.apply(scores, made, most);
  for (double &score : scores)
    score = std::exp(score);
  return scores;
}
} // namespace

TEST(Conventions, ForceTheFirstAndTheLastToken) {
  Conventions forced = conventionsOf(R"("forced_bos_token_id": [2], "forced_eos_token_id": [0])");
  EXPECT_EQ(forced.start, 3);
  EXPECT_TRUE(forced.isEnd(1));
  EXPECT_FALSE(forced.isEnd(0));
  EXPECT_THAT(applied(forced, 0, 5), ElementsAre(0, 0, 1, 0));
  EXPECT_THAT(applied(forced, 4, 5), ElementsAre(1, 0, 0, 0));
  EXPECT_THAT(applied(forced, 2, 5), testing::Each(testing::Gt(0)));
}

TEST(Conventions, SuppressTokens) {
  Conventions without = conventionsOf(R"("forced_bos_token_id": [], "forced_eos_token_id": [])");
  without.suppressed = {1};
  std::vector<double> all = applied(Conventions(), 0, 5), some = applied(without, 0, 5);
  EXPECT_EQ(some[1], 0);
  EXPECT_DOUBLE_EQ(some[2], all[2]);
  without.renormalizes = true;
  some = applied(without, 0, 5);
  EXPECT_NEAR(some[0] + some[2] + some[3], 1, 1e-12);
  EXPECT_NEAR(some[3] / some[2], all[3] / all[2], 1e-12);
}

TEST(Conventions, AreComplete) {
  EXPECT_THROW(conventionsOf(R"("forced_bos_token_id": [])"), Error);
  EXPECT_FALSE(readConventions(Plan()).start);
}
