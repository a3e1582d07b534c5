//===- PatternTest.cpp - split patterns by hand against PCRE2 ----------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Tokenizer/Core/SplitPattern.h"
#include "Tokenizer/Core/Unicode.h"

#include <gtest/gtest.h>
#include <random>

using namespace meshwright::tokenizer;

using Matches = std::vector<std::pair<size_t, size_t>>;

/// Short texts of few kinds of characters, so that all kinds are beside each other.
static std::string randomText(std::mt19937 &random) {
  static const std::vector<std::string> characters = {"a",
                                                      "b",
                                                      "S",
                                                      "T",
                                                      "D",
                                                      "M",
                                                      "'",
                                                      "'",
                                                      "'s",
                                                      "'re",
                                                      "'LL",
                                                      "'VE",
                                                      "l",
                                                      "v",
                                                      "e",
                                                      "r",
                                                      "1",
                                                      "2",
                                                      "\xd9\xa3",
                                                      "\xc2\xb2",
                                                      " ",
                                                      " ",
                                                      "\n",
                                                      "\r",
                                                      "\t",
                                                      "\xc2\xa0",
                                                      "\xe3\x80\x80",
                                                      "\xc2\x85",
                                                      "\xe1\xa0\x8e",
                                                      ".",
                                                      "/",
                                                      "-",
                                                      "$",
                                                      "\xc3\x89",
                                                      "\xc3\xa9",
                                                      "\xc7\x85",
                                                      "\xca\xb0",
                                                      "\xe4\xb8\xad",
                                                      "\xcc\x81",
                                                      "\xe0\xa4\xbe",
                                                      "\xf0\x9f\x99\x82",
                                                      "\xc5\xbf",
                                                      "\xe2\x84\xaa",
                                                      "\xe2\x85\xab",
                                                      "\xe2\x80\x99",
                                                      "\xef\xbf\xbd"};
  std::string text;
  for (size_t count = random() % 24; count > 0; --count)
    text += characters[random() % characters.size()];
  return text;
}

class Pattern : public testing::TestWithParam<const char *> {};

TEST_P(Pattern, DividesAsItsExpressionDoes) {
  std::unique_ptr<SplitPattern> byHand = makePattern(GetParam()),
                                byRegex = makeRegexPattern(GetParam());
  ASSERT_TRUE(byHand->mayCutLines()); // It is one that has code.
  std::mt19937 random(7);
  for (int i = 0; i < 60000; ++i) {
    std::string text = randomText(random);
    Matches expected, found;
    byRegex->matches(text, expected);
    byHand->matches(text, found);
    ASSERT_EQ(found, expected) << text;
  }
}

TEST_P(Pattern, MayCutLines) {
  std::unique_ptr<SplitPattern> pattern = makePattern(GetParam());
  std::mt19937 random(8);
  int cuts = 0;
  for (int i = 0; i < 60000; ++i) {
    std::string first = randomText(random), second = randomText(random);
    if (first.empty() || second.empty() || first.back() <= ' ' || first.back() >= 0x7f ||
        !isalnum(uint8_t(second[0])))
      continue;
    first += '\n';
    Matches whole, found, rest;
    pattern->matches(first + second, whole);
    pattern->matches(first, found);
    pattern->matches(second, rest);
    for (auto [begin, end] : rest)
      found.emplace_back(begin + first.size(), end + first.size());
    ASSERT_EQ(found, whole) << first << second;
    ++cuts;
  }
  EXPECT_GT(cuts, 1000);
}

INSTANTIATE_TEST_SUITE_P(Known, Pattern,
                         testing::Values(patterns::gpt2, patterns::llama3, patterns::qwen2,
                                         patterns::o200k));

TEST(RegexPattern, FindsEmptyMatchesToo) {
  Matches found;
  makeRegexPattern("x*")->matches("ax\xc3\xa9", found);
  EXPECT_EQ(found, (Matches{{0, 0}, {1, 2}, {2, 2}}));
}

TEST(RegexPattern, RefusesWhatIsNone) {
  auto said = [](const char *regex) -> std::string {
    try {
      makeRegexPattern(regex);
    } catch (const std::exception &error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(said("(a"), "the pattern (a is none that PCRE2 knows: missing closing parenthesis");
  EXPECT_NE(said("[^\\S]").find("\\S in brackets, which is not supported"), std::string::npos);
}

TEST(Utf8, IsRepairedAsPythonDoes) {
  auto repaired = [](std::string text) {
    std::string storage;
    return std::string(repairUtf8(text, storage));
  };
  const std::string no = "\xef\xbf\xbd";
  EXPECT_EQ(repaired("plain ASCII of more than a word"), "plain ASCII of more than a word");
  EXPECT_EQ(repaired("\xc3\xa9\xe2\x82\xac\xf0\x9f\x99\x82"),
            "\xc3\xa9\xe2\x82\xac\xf0\x9f\x99\x82");
  EXPECT_EQ(repaired("a\xff"
                     "b"),
            "a" + no + "b");
  EXPECT_EQ(repaired("\xe2\x82"), no); // the begin of one character
  EXPECT_EQ(repaired("\xf0\x9f\x99x"), no + "x");
  EXPECT_EQ(repaired("\xed\xa0\x80"), no + no + no); // a surrogate
  EXPECT_EQ(repaired("\xc0\xaf"), no + no);          // overlong
  EXPECT_EQ(repaired("\xe0\x80\x80"), no + no + no);
  EXPECT_EQ(repaired("\xf4\x90\x80\x80"), no + no + no + no); // past the last
}
