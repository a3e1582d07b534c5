//===- TokenizerTest.cpp - the same ids as other libraries --------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Tokenizer/Core/Tokenizer.h"
#include "Inputs.h"
#include "Tokenizer/Core/Unicode.h"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

using namespace meshwright::tokenizer;
using namespace testing_tokenizer;
using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;

static std::vector<int32_t> encode(const Tokenizer &tokenizer, const std::string &text,
                                   bool specialAsText = false) {
  std::vector<int32_t> ids;
  tokenizer.makeEncoder(specialAsText)->encode(text, ids);
  return ids;
}

class Kind : public testing::TestWithParam<const char *> {};

TEST_P(Kind, GivesTheIdsOfItsLibrary) {
  std::string file = GetParam(), name = file.substr(0, file.find('.'));
  std::unique_ptr<Tokenizer> tokenizer = loadTokenizer(inputPath(file));
  bool isJson = file == name + ".json";
  std::string text = readInput(isJson ? "text.bin" : "sentencepiece.txt");
  std::vector<int32_t> expected = readIds(name + ".ids"), found = encode(*tokenizer, text);
  ASSERT_GT(expected.size(), 1000u);
  ASSERT_EQ(found, expected);

  // In parts, as `meshwright tokenize` encodes it, with words that are known from the parts before.
  std::vector<int32_t> inParts;
  std::unique_ptr<Encoder> encoder = tokenizer->makeEncoder();
  for (size_t begin = 0, end; begin < text.size(); begin = end) {
    end = tokenizer->cut(text, std::min(text.size(), begin + 500));
    encoder->encode(std::string_view(text).substr(begin, end - begin), inParts, begin == 0);
  }
  EXPECT_EQ(inParts, expected);
}

INSTANTIATE_TEST_SUITE_P(Files, Kind,
                         testing::Values("gpt2.json", "llama3.json", "qwen2.json", "o200k.json",
                                         "deepseek.json", "starcoder.json", "mixture.json",
                                         "llama2.json", "metaspace.json", "bpe.model",
                                         "unigram.model"));

TEST(Tokenizer, DecodesWhatItEncodes) {
  for (const char *name :
       {"gpt2.json", "llama3.json", "o200k.json", "llama2.json", "metaspace.json", "bpe.model"}) {
    std::unique_ptr<Tokenizer> tokenizer = loadTokenizer(inputPath(name));
    std::string text = "It's 1234 na\xc3\xafve \xe4\xb8\xad\xe6\x96\x87 words, \xf0\x9f\x99\x82!\n";
    EXPECT_EQ(tokenizer->decode(encode(*tokenizer, text)), text) << name;
    EXPECT_THAT(complaint([&] { tokenizer->decode({1 << 20}); }), HasSubstr("has no token 1048576"))
        << name;
  }
}

TEST(Tokenizer, MergesLongWordsAsShortOnes) {
  // Beyond 64 symbols words are merged with a heap. With a word mark before each, they are the
  // same.
  std::unique_ptr<Tokenizer> tokenizer = loadTokenizer(inputPath("gpt2.json"));
  std::string word = "internationalization", longWord;
  std::vector<int32_t> once = encode(*tokenizer, word);
  for (int i = 0; i < 2000; ++i)
    longWord += word;
  std::vector<int32_t> many = encode(*tokenizer, longWord);
  EXPECT_EQ(tokenizer->decode(many), longWord);
  EXPECT_LE(many.size(), 2000 * once.size());
}

TEST(Tokenizer, KnowsMarks) {
  std::unique_ptr<Tokenizer> llama = loadTokenizer(inputPath("llama3.json"));
  int32_t begin = *llama->idOf("<|begin_of_text|>"), end = *llama->idOf("<|end_of_text|>");
  EXPECT_EQ(llama->before(), std::vector<int32_t>{begin});
  EXPECT_TRUE(llama->behind().empty());
  EXPECT_EQ(llama->endToken(), end);
  EXPECT_EQ(llama->idOf("<|nothing|>"), std::nullopt);
  EXPECT_THAT(encode(*llama, "<|end_of_text|>"), ElementsAre(end));
  std::vector<int32_t> asText = encode(*llama, "<|end_of_text|>", true);
  EXPECT_GT(asText.size(), 1u);
  EXPECT_EQ(llama->decode(asText), "<|end_of_text|>");
  EXPECT_EQ(llama->decode({begin}), "");

  std::unique_ptr<Tokenizer> pieces = loadTokenizer(inputPath("bpe.model"));
  EXPECT_EQ(pieces->before(), std::vector<int32_t>{1});
  EXPECT_EQ(pieces->endToken(), 2);
  EXPECT_EQ(pieces->idOf("</s>"), 2);
  EXPECT_EQ(pieces->idOf("no such piece"), std::nullopt);
}

TEST(Tokenizer, BytesAreThemselves) {
  std::unique_ptr<Tokenizer> bytes = loadTokenizer("bytes");
  EXPECT_EQ(bytes->vocabulary(), 256);
  EXPECT_THAT(encode(*bytes, std::string("a\0\xff", 3)), ElementsAre(97, 0, 255));
  EXPECT_EQ(bytes->decode({97, 0, 255}), std::string("a\0\xff", 3));
  EXPECT_EQ(bytes->endToken(), std::nullopt);
  EXPECT_EQ(bytes->cut("abcdef", 3), 3u);
}

/// What is said of gpt2.json after `change`.
template <typename Change> static std::string said(Change change) {
  json spec = json::parse(readInput("gpt2.json"));
  change(spec);
  return complaint([&] { makeJsonTokenizer(spec.dump(), "t.json"); });
}

TEST(Tokenizer, RefusesOtherKindsByName) {
  EXPECT_EQ(said([](json &) {}), "");
  EXPECT_THAT(
      said([](json &spec) { spec["model"]["type"] = "WordPiece"; }),
      HasSubstr("cannot use 't.json': its model is WordPiece, which is not supported: BPE is"));
  EXPECT_THAT(said([](json &spec) { spec["model"]["type"] = "Unigram"; }),
              HasSubstr("give its tokenizer.model"));
  EXPECT_THAT(said([](json &spec) { spec["model"]["dropout"] = 0.1; }),
              HasSubstr("\"dropout\": 0.1"));
  EXPECT_THAT(said([](json &spec) {
                spec["normalizer"] = {{"type", "BertNormalizer"}};
              }),
              HasSubstr("its normalizer BertNormalizer is not supported: NFC, "));
  EXPECT_THAT(said([](json &spec) {
                spec["normalizer"] = {{"type", "Precompiled"}};
              }),
              HasSubstr("give its tokenizer.model"));
  EXPECT_THAT(said([](json &spec) {
                spec["pre_tokenizer"] = {{"type", "UnicodeScripts"}};
              }),
              HasSubstr("its pre-tokenizer UnicodeScripts is not supported: ByteLevel, "));
  EXPECT_THAT(said([](json &spec) {
                json bytes = spec["pre_tokenizer"];
                spec["pre_tokenizer"] = {{"type", "Sequence"},
                                         {"pretokenizers", {bytes, {{"type", "Digits"}}}}};
              }),
              HasSubstr("Digits after ByteLevel"));
  EXPECT_THAT(said([](json &spec) {
                spec["post_processor"] = {{"type", "Other"}};
              }),
              HasSubstr("its post-processor Other is not supported"));
  EXPECT_THAT(said([](json &spec) {
                spec["pre_tokenizer"] = {
                    {"type", "Split"}, {"pattern", {{"Regex", "(a"}}}, {"behavior", "Isolated"}};
              }),
              HasSubstr("missing closing parenthesis"));
}

TEST(Tokenizer, RefusesDamagedFiles) {
  EXPECT_THAT(said([](json &spec) { spec.erase("model"); }), HasSubstr("is no tokenizer.json"));
  EXPECT_THAT(said([](json &spec) { spec["model"]["merges"].push_back("no pair at all"); }),
              HasSubstr("the merge \"no pair at all\", which is no pair of tokens"));
  EXPECT_THAT(said([](json &spec) {
                spec["model"]["merges"].push_back({"zzz", "qqq"});
              }),
              HasSubstr("but no token \"zzz\""));
  EXPECT_THAT(said([](json &spec) { spec["model"]["vocab"]["a"] = -1; }),
              HasSubstr("the id -1 for \"a\""));
  EXPECT_THAT(said([](json &spec) { spec["model"]["vocab"]["a"] = 1 << 30; }),
              HasSubstr("its largest id is"));
  EXPECT_THAT(said([](json &spec) { spec["added_tokens"][0]["content"] = "a"; }),
              HasSubstr("but in the vocab the id"));
  EXPECT_THAT(said([](json &spec) { spec["model"]["byte_fallback"] = 3; }),
              HasSubstr("\"byte_fallback\" is 3"));
  EXPECT_THAT(complaint([] { loadTokenizer("/nowhere/tokenizer.json"); }),
              HasSubstr("there is no such file"));
  EXPECT_THAT(complaint([] { loadTokenizer(inputPath("train.txt")); }), HasSubstr("is no JSON"));
  EXPECT_THAT(complaint([] { makeSentencePieceTokenizer("\n\1\0", "m"); }),
              HasSubstr("cannot use 'm': SentencePiece says"));
}
