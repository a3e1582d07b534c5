//===- DataTest.cpp - token files, masks and documents --------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Process.h"
#include "common/data/DataOrder.h"
#include "common/data/Documents.h"
#include "common/data/LogProbs.h"
#include "common/data/MappedFile.h"
#include "common/data/TokenData.h"
#include "common/data/TokenFile.h"
#include "common/data/TokenMask.h"
#include "common/monitor/Error.h"

#include <cmath>
#include <filesystem>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <numeric>
#include <set>
#define XXH_INLINE_ALL
#include <xxhash.h>

using namespace meshwright;
using namespace testing_process;

template <typename T> static std::string bytesOf(const std::vector<T> &tokens) {
  return {reinterpret_cast<const char *>(tokens.data()), tokens.size() * sizeof(T)};
}

TEST(TokenFile, ReadsEveryWidthAndShiftsTargets) {
  TemporaryDirectory scratch;
  writeFile(scratch.path("u8"), bytesOf<uint8_t>({1, 2, 3, 4, 5, 6, 7, 8}));
  writeFile(scratch.path("u16"), bytesOf<uint16_t>({1, 2, 3, 4, 5, 6, 7, 8}));
  writeFile(scratch.path("u32"), bytesOf<uint32_t>({1, 2, 3, 4, 5, 6, 7, 8}));
  for (const char *type : {"u8", "u16", "u32"}) {
    TokenFile file(scratch.path(type), "--data", type);
    EXPECT_EQ(file.tokens(), 8);
    EXPECT_EQ(file.sequences(3), 2);
    EXPECT_EQ(file.sequences(7), 1);
    EXPECT_THROW(file.sequences(8), Error);
    int32_t inputs[3], targets[3];
    file.read(1, 3, 8, inputs, targets);
    EXPECT_THAT(inputs, testing::ElementsAre(4, 5, 6));
    EXPECT_THAT(targets, testing::ElementsAre(5, 6, 7));
    EXPECT_THROW(file.read(1, 3, 7, inputs, targets), Error);
  }
}

TEST(TokenFile, SkipsTheHeader) {
  TemporaryDirectory scratch;
  std::vector<int32_t> header(256);
  header[0] = 20240520;
  header[1] = 1;
  header[2] = 3;
  writeFile(scratch.path("f"), bytesOf(header) + bytesOf<uint16_t>({500, 600, 50256}));
  TokenFile file(scratch.path("f"), "--data", "u16");
  EXPECT_EQ(file.tokens(), 3);
  int32_t inputs[2], targets[2];
  file.read(0, 2, 50257, inputs, targets);
  EXPECT_THAT(inputs, testing::ElementsAre(500, 600));
  EXPECT_THAT(targets, testing::ElementsAre(600, 50256));
  // That of tokens for Llama 3.
  header[0] = 20240801;
  header[1] = 7;
  writeFile(scratch.path("l"), bytesOf(header) + bytesOf<uint32_t>({500, 600, 128001}));
  TokenFile wide(scratch.path("l"), "--data", "u32");
  EXPECT_EQ(wide.tokens(), 3);
  wide.read(0, 2, 128256, inputs, targets);
  EXPECT_THAT(inputs, testing::ElementsAre(500, 600));
  EXPECT_THAT(targets, testing::ElementsAre(600, 128001));
}

/// A file as `meshwright tokenize` writes it.
static std::string shardOf(const std::vector<uint16_t> &tokens, const std::vector<uint64_t> &documents) {
  TokenShardHeader header;
  header.tokenBytes = 2;
  header.vocabulary = 50257;
  header.tokens = tokens.size();
  header.documents = documents.size();
  std::vector<uint64_t> sums;
  for (size_t i = 0; i < tokens.size(); i += TokenShardHeader::blockTokens)
    sums.push_back(XXH3_64bits(&tokens[i], 2 * std::min<size_t>(tokens.size() - i, TokenShardHeader::blockTokens)));
  auto head = [&] { return std::string(reinterpret_cast<const char *>(&header), sizeof(header)); };
  std::string tail = bytesOf(documents) + bytesOf(sums), summed = head() + tail;
  header.checksum = XXH3_64bits(summed.data(), summed.size());
  std::string zeros(header.documentsBegin() - header.tokensEnd(), 0);
  return head() + bytesOf(tokens) + zeros + tail;
}

/// What `check` says of a file; empty if nothing.
template <typename Check> static std::string complaint(Check check) {
  try {
    check();
  } catch (const Error &error) {
    return error.what();
  }
  return "";
}

TEST(TokenFile, ReadsShards) {
  TemporaryDirectory scratch;
  writeFile(scratch.path("s"), shardOf({500, 600, 50256, 7, 8}, {0, 3}));
  EXPECT_TRUE(TokenFile::hasDocuments(scratch.path("s")));
  TokenFile file(scratch.path("s"), "--data", "u8"); // Its type is its own.
  EXPECT_EQ(file.tokens(), 5);
  EXPECT_EQ(file.tokenizer(), "");
  int32_t inputs[4], targets[4], positions[4];
  file.read(0, 4, 50257, inputs, targets);
  EXPECT_THAT(targets, testing::ElementsAre(600, 50256, 7, 8));
  file.checkFormat(50257);
  file.checkTokens(50257, 0, 1, 1);
  EXPECT_THAT(complaint([&] { file.checkTokens(50256, 0, 1, 1); }),
              testing::HasSubstr("token 2 (at byte 1028) is 50256, but the model's vocabulary has 50256: the file "
                                 "was made with a tokenizer of 50257 tokens"));
  Documents documents(file, "--data");
  EXPECT_EQ(documents.bytes(), 16);
  documents.check(0, 1);
  documents.apply(0, 4, inputs, positions, targets);
  EXPECT_THAT(positions, testing::ElementsAre(0, 1, 2, 0));
  EXPECT_THAT(targets, testing::ElementsAre(600, 50256, noTarget, 8));
  // As one source of sequences.
  EXPECT_TRUE(haveDocuments({scratch.path("s"), scratch.path("s")}));
  TokenData data({"--data", {scratch.path("s")}}, {}, {"--documents", {}, true}, "u16", 4, 50257);
  data.read(0, inputs, targets, positions);
  EXPECT_THAT(positions, testing::ElementsAre(0, 1, 2, 0));
  EXPECT_EQ(data.leavingOut(), "the documents of --data " + scratch.path("s"));

  writeFile(scratch.path("none"), shardOf({1, 2, 3}, {}));
  EXPECT_FALSE(haveDocuments({scratch.path("s"), scratch.path("none")}));
  EXPECT_FALSE(TokenFile::hasDocuments(scratch.path("nowhere")));
  TokenFile none(scratch.path("none"), "--data", "u16");
  EXPECT_THAT(complaint([&] { Documents(none, "--data"); }), testing::HasSubstr("does not say where its documents begin"));
}

TEST(TokenFile, FindsDamageInShards) {
  TemporaryDirectory scratch;
  std::vector<uint16_t> tokens(3'000'000, 7);
  const std::string good = shardOf(tokens, {0, 10, 2'999'999});
  auto said = [&](std::string bytes) {
    writeFile(scratch.path("f"), bytes);
    return complaint([&] {
      TokenFile file(scratch.path("f"), "--data", "u16");
      for (int part = 0; part < 3; ++part)
        file.checkTokens(65536, part, 3, 2);
    });
  };
  auto flipped = [&](size_t at) {
    std::string bytes = good;
    bytes[at] ^= 1;
    return bytes;
  };
  EXPECT_EQ(said(good), "");
  EXPECT_THAT(said(flipped(1024 + 2 * 1'100'000)),
              testing::HasSubstr("tokens 1048576 to 2097151 do not match their checksum"));
  EXPECT_THAT(said(flipped(1024 + 2 * 2'999'999)), testing::HasSubstr("tokens 2097152 to 2999999"));
  EXPECT_THAT(said(flipped(good.size() - 1)), testing::HasSubstr("its header or its document boundaries do not"));
  EXPECT_THAT(said(flipped(good.size() - 40)), testing::HasSubstr("its header or its document boundaries do not"));
  EXPECT_THAT(said(flipped(48)), testing::HasSubstr("its header or its document boundaries do not"));
  EXPECT_THAT(said(flipped(4)), testing::HasSubstr("its header has version 0, but version 1 is read"));
  EXPECT_THAT(said(flipped(16)), testing::HasSubstr("its header announces 3000001 tokens"));
  EXPECT_THAT(said(good.substr(0, good.size() - 8)), testing::HasSubstr("truncated or damaged"));
  EXPECT_THAT(said(good.substr(0, 100)), testing::HasSubstr("100 bytes, less than its header's 1024"));
}

TEST(TokenFile, ChecksTheWholeRangeInParts) {
  TemporaryDirectory scratch;
  constexpr size_t size = 3'000'000;
  std::vector<uint16_t> tokens(size, 7);
  writeFile(scratch.path("good"), bytesOf(tokens));
  // In the last of three blocks, which the last of two parts has.
  tokens[size - 1] = tokens[size - 2] = 50257;
  writeFile(scratch.path("bad"), bytesOf(tokens));
  TokenFile good(scratch.path("good"), "--data", "u16"), bad(scratch.path("bad"), "--data", "u16");
  for (int parts : {1, 2, 3, 8}) {
    std::vector<std::string> said;
    for (int part = 0; part < parts; ++part) {
      EXPECT_EQ(complaint([&] { good.checkTokens(8, part, parts, 2); }), "");
      EXPECT_EQ(complaint([&] { bad.checkTokens(65536, part, parts, 2); }), "");
      said.push_back(complaint([&] { bad.checkTokens(50257, part, parts, 2); }));
      EXPECT_EQ(said.back().empty(), part != parts - 1);
    }
    EXPECT_THAT(said.back(), testing::HasSubstr("token 2999998 (at byte 5999996) is 50257"));
  }
}

TEST(TokenFile, RefusesOtherFormats) {
  TemporaryDirectory scratch;
  auto said = [&](const std::string &bytes, const char *type, int64_t vocabulary = 50257) {
    writeFile(scratch.path("f"), bytes);
    return complaint([&] { TokenFile(scratch.path("f"), "--data", type).checkFormat(vocabulary); });
  };
  auto has = [](const char *part) { return testing::HasSubstr(part); };
  std::string text = "A quarter of what is written here was written by people. ";
  for (const char *type : {"u8", "u16", "u32"})
    EXPECT_THAT(said("\x93NUMPY\x01" + std::string(57, ' ') + text.substr(0, 16), type),
                has("is a .npy file"));
  for (const char *type : {"u16", "u32"}) {
    EXPECT_THAT(said(text.substr(0, 56), type), has("is text, not u"));
    EXPECT_THAT(said("{\"tokens\": [5, 17, 99, 1234, 0, 12, 4, 1]}\n     ", type), has("JSON"));
    EXPECT_THAT(said("\xc3\xa9t\xc3\xa9, \xe2\x82\xac 5, \xf0\x9f\x99\x82, \xd0\x9c\xd0\xb8\xd1\x80 \xd0\xbc\xd0\xb8\xd1\x80   ", type),
                has("is text"));
  }
  EXPECT_EQ(said(text, "u8"), "");

  // Each type read as each narrower one.
  std::vector<uint64_t> tokens;
  for (uint64_t i = 0; i < 200; ++i)
    tokens.push_back(i * i * 31 % 50257);
  std::string u64 = bytesOf(tokens);
  std::string u32 = bytesOf(std::vector<uint32_t>(tokens.begin(), tokens.end()));
  std::string u16 = bytesOf(std::vector<uint16_t>(tokens.begin(), tokens.end()));
  for (const char *type : {"u8", "u16", "u32"})
    EXPECT_THAT(said(u64, type), has("8 bytes"));
  for (const char *type : {"u8", "u16"})
    EXPECT_THAT(said(u32, type), has("give --tokens u32"));
  EXPECT_EQ(said(u32, "u32"), "");
  EXPECT_EQ(said(u16, "u16"), "");
  // Tokens beyond 65535 too.
  std::vector<uint32_t> large;
  for (uint32_t i = 0; i < 200; ++i)
    large.push_back(i * i * 977 % 128256);
  EXPECT_THAT(said(bytesOf(large), "u16", 128256), has("give --tokens u32"));
  EXPECT_EQ(said(bytesOf(large), "u32", 128256), "");
  // Bytes as u16.
  std::vector<uint16_t> narrow(text.begin(), text.end());
  EXPECT_THAT(said(bytesOf(narrow), "u8", 256), has("give --tokens u16"));
  // What only looks like it: few kinds of tokens, zeros, and very little.
  std::vector<uint16_t> bases;
  for (int i = 0; i < 200; ++i)
    bases.push_back(uint16_t(i * i % 4));
  EXPECT_EQ(said(bytesOf(bases), "u16", 5), "");
  EXPECT_EQ(said(bytesOf(bases), "u16", 50257), "");
  EXPECT_EQ(said(std::string(400, '\0'), "u16"), "");
  EXPECT_EQ(said(u32.substr(0, 64), "u16"), "");
}

/// As test/Golden/philox.py and docs/models.md have it.
TEST(TokenMask, HidesChosenTokens) {
  std::vector<int32_t> tokens(12), targets(12);
  std::iota(tokens.begin(), tokens.end(), 50);
  TokenMask mask(0.5, /*maskToken=*/3, /*vocabulary=*/100);
  mask.apply({7, 5}, /*sequence=*/2, 12, tokens.data(), targets.data());
  EXPECT_THAT(tokens, testing::ElementsAre(50, 51, 52, 45, 54, 55, 3, 57, 3, 3, 91, 61));
  EXPECT_THAT(targets, testing::ElementsAre(-1, -1, -1, 53, -1, -1, 56, -1, 58, 59, 60, -1));
  EXPECT_EQ(mask.count({7, 5}, 2, 1, 12), 5);
}

/// Shares of many tokens, and that each step, sequence and stream has a choice of its own.
TEST(TokenMask, ChoosesTheShare) {
  constexpr int64_t length = 100000;
  std::set<std::vector<int32_t>> different;
  for (auto [step, sequence, evaluates] : {std::tuple(0, 0, false), {1, 0, false}, {0, 1, false}, {0, 0, true}}) {
    std::vector<int32_t> tokens(length, 500), targets(length);
    TokenMask mask(0.15, 3, 1000, evaluates);
    std::array<uint32_t, 2> key = {1, uint32_t(step)};
    mask.apply(key, sequence, length, tokens.data(), targets.data());
    int64_t chosen = 0, masked = 0, kept = 0, low = 0;
    for (int64_t i = 0; i < length; ++i) {
      ASSERT_EQ(targets[i] == noTarget && tokens[i] != 500, false) << i;
      if (targets[i] == noTarget)
        continue;
      ++chosen;
      masked += tokens[i] == 3;
      kept += tokens[i] == 500;
      low += tokens[i] != 3 && tokens[i] < 500;
    }
    EXPECT_EQ(mask.count(key, sequence, 1, length), chosen);
    EXPECT_NEAR(double(chosen) / length, 0.15, 0.005);
    EXPECT_NEAR(double(masked) / double(chosen), 0.8, 0.02);
    EXPECT_NEAR(double(kept) / double(chosen), 0.1, 0.02);
    EXPECT_NEAR(double(low) / double(chosen), 0.05, 0.01);
    different.insert(targets);
  }
  EXPECT_EQ(different.size(), 4u);
}

TEST(LossMask, LeavesTargetsOut) {
  TemporaryDirectory scratch;
  writeFile(scratch.path("tokens"), bytesOf<uint16_t>({10, 11, 12, 13, 14, 15, 16, 17}));
  writeFile(scratch.path("mask"), bytesOf<uint8_t>({1, 0, 1, 1, 1, 0, 0, 1}));
  TokenFile tokens(scratch.path("tokens"), "--data", "u16");
  LossMask mask(scratch.path("mask"), "--loss-mask", tokens);
  int32_t inputs[3], targets[3];
  tokens.read(1, 3, 100, inputs, targets);
  mask.apply(1, 3, targets);
  // Tokens 4, 5 and 6; those that are read are never masked.
  EXPECT_THAT(inputs, testing::ElementsAre(13, 14, 15));
  EXPECT_THAT(targets, testing::ElementsAre(14, noTarget, noTarget));
  DataOrder order(2, false, 0);
  EXPECT_EQ(mask.count(order, 0, 1, 3), 2);
  EXPECT_EQ(mask.count(order, 1, 1, 3), 1);
  // The third of these is the first sequence again.
  EXPECT_EQ(mask.count(order, 0, 3, 3), 5);
  DataOrder shuffled(2, true, 5);
  EXPECT_EQ(mask.count(shuffled, 0, 1, 3), shuffled.at(0) == 0 ? 2 : 1);
}

TEST(LossMask, RefusesOtherFiles) {
  TemporaryDirectory scratch;
  constexpr size_t size = 1000;
  writeFile(scratch.path("tokens"), std::string(2 * size, '\0'));
  TokenFile tokens(scratch.path("tokens"), "--data", "u16");
  writeFile(scratch.path("long"), std::string(size + 1, '\1'));
  EXPECT_THAT(complaint([&] { LossMask(scratch.path("long"), "--loss-mask", tokens); }),
              testing::AllOf(testing::HasSubstr("long: has 1001 bytes"),
                             testing::HasSubstr("tokens has 1000 tokens")));
  std::string bytes(size, '\1');
  bytes[700] = '1';
  writeFile(scratch.path("text"), bytes);
  LossMask text(scratch.path("text"), "--loss-mask", tokens);
  // In the second of two parts, and where it is read.
  EXPECT_EQ(complaint([&] { text.check(0, 2, 2); }), "");
  EXPECT_THAT(complaint([&] { text.check(1, 2, 2); }), testing::HasSubstr("byte 700 is 49"));
  int32_t targets[99];
  EXPECT_EQ(complaint([&] { text.apply(6, 99, targets); }), "");
  EXPECT_THAT(complaint([&] { text.apply(7, 99, targets); }), testing::HasSubstr("byte 700 is 49"));
}

namespace {
/// Positions of a sequence's tokens and which of its targets count.
struct Places {
  std::vector<int32_t> positions, targets;
  Places(const Documents &documents, const TokenFile &tokens, int64_t index, int64_t length)
      : positions(size_t(length), 99), targets(positions) {
    std::vector<int32_t> inputs(targets);
    tokens.read(index, length, 100, inputs.data(), targets.data());
    documents.apply(index, length, inputs.data(), positions.data(), targets.data());
  }
};
} // namespace

/// The same documents, said by the token that ends them and by their first tokens' numbers.
TEST(Documents, RestartPositionsAndLeaveFirstTokensOut) {
  TemporaryDirectory scratch;
  // Token 7 ends documents. One ends with the sequence, and one goes on in the next.
  writeFile(scratch.path("tokens"), bytesOf<uint16_t>({1, 2, 7, 7, 3, 7, 4, 5, 6, 7, 8, 9, 10}));
  writeFile(scratch.path("starts"), bytesOf<uint64_t>({0, 3, 4, 6, 10}));
  writeFile(scratch.path("later"), bytesOf<uint64_t>({3, 4, 6, 10})); // What is before is one, too.
  TokenFile tokens(scratch.path("tokens"), "--data", "u16");
  for (std::string value : {std::string("7"), scratch.path("starts"), scratch.path("later")}) {
    Documents documents(value, "--documents", tokens, 100);
    documents.check(0, 2), documents.check(1, 2);
    EXPECT_EQ(documents.doubt(), "");
    Places first(documents, tokens, 0, 6), second(documents, tokens, 1, 6);
    EXPECT_THAT(first.positions, testing::ElementsAre(0, 1, 2, 0, 0, 1));
    EXPECT_THAT(first.targets, testing::ElementsAre(2, 7, noTarget, noTarget, 7, noTarget));
    EXPECT_THAT(second.positions, testing::ElementsAre(0, 1, 2, 3, 0, 1));
    EXPECT_THAT(second.targets, testing::ElementsAre(5, 6, 7, noTarget, 9, 10));
    Places third(documents, tokens, 2, 4); // From the third token of a document on.
    EXPECT_THAT(third.positions, testing::ElementsAre(0, 1, 0, 1));
    EXPECT_THAT(third.targets, testing::ElementsAre(7, noTarget, 9, 10));
  }
}

TEST(Documents, CountsTargetsWithMasks) {
  TemporaryDirectory scratch;
  writeFile(scratch.path("tokens"), bytesOf<uint16_t>({1, 2, 7, 3, 4, 5, 6, 7, 8}));
  writeFile(scratch.path("mask"), bytesOf<uint8_t>({0, 1, 0, 1, 1, 1, 1, 0, 1}));
  TokenFile tokens(scratch.path("tokens"), "--data", "u16");
  LossMask mask(scratch.path("mask"), "--loss-mask", tokens);
  Documents documents("7", "--documents", tokens, 100);
  DataOrder order(2, false, 0);
  auto count = [&](const Documents *documents, const LossMask *mask, int64_t first, int64_t many) {
    return countTargets(tokens, documents, mask, order, first, many, 4, 100);
  };
  EXPECT_EQ(count(nullptr, nullptr, 0, 3), 12);
  EXPECT_EQ(count(&documents, nullptr, 0, 1), 3);
  EXPECT_EQ(count(&documents, nullptr, 0, 2), 6);
  EXPECT_EQ(count(nullptr, &mask, 0, 2), 6);
  EXPECT_EQ(count(&documents, &mask, 0, 1), 2); // Tokens 1 and 4: the mask leaves 2 out.
  EXPECT_EQ(count(&documents, &mask, 1, 1), 2); // Tokens 5 and 6; 8 begins a document.
  EXPECT_EQ(count(&documents, &mask, 0, 3), 6);
}

// Each document of pairs is a sequence, padded or cut off, whose last token is a target alone.
TEST(TokenData, ReadsPairs) {
  TemporaryDirectory scratch;
  writeFile(scratch.path("a"), bytesOf<uint16_t>({1, 2, 3, 4, 5, 6, 7, 8, 9}));
  writeFile(scratch.path("starts"), bytesOf<uint64_t>({0, 3, 8}));
  writeFile(scratch.path("even"), bytesOf<uint64_t>({0, 3}));
  writeFile(scratch.path("mask"), bytesOf<uint8_t>({0, 0, 1, 0, 1, 1, 1, 1, 1}));
  auto open = [&](const char *starts) {
    return TokenData({"--data", {scratch.path("a")}}, {"--loss-mask", {scratch.path("mask")}},
                     {"--documents", {std::string(starts) == "7" ? "7" : scratch.path(starts)}}, "u16", 4, 100, std::nullopt,
                     /*preferencePairs=*/true);
  };
  TokenData data = open("even");
  EXPECT_EQ(data.sequences(), 2);
  auto read = [&](int64_t index) {
    std::vector<int32_t> inputs(4), targets(4), positions(4);
    data.read(index, inputs.data(), targets.data(), positions.data());
    inputs.insert(inputs.end(), targets.begin(), targets.end());
    return inputs;
  };
  using testing::ElementsAre;
  EXPECT_THAT(read(0), ElementsAre(1, 2, 3, 0, noTarget, 3, noTarget, noTarget));
  EXPECT_THAT(read(1), ElementsAre(4, 5, 6, 7, 5, 6, 7, 8));
  EXPECT_EQ(data.longerTargets(0, 1), 1);
  EXPECT_EQ(data.countTargets(DataOrder(2, false, 0), 0, 2), 5);
  EXPECT_THAT(complaint([&] { open("starts"); }), testing::HasSubstr("has 3 documents, which are no pairs"));
  EXPECT_THAT(complaint([&] { open("7"); }), testing::HasSubstr("need document boundaries as indices of first tokens"));
}

// Two documents are a pair if they have the same tokens before the first that counts; and completions that are not
// read, or do not count, are found.
TEST(TokenData, ChecksPairs) {
  TemporaryDirectory scratch;
  using Number = std::vector<int>;
  struct Found {
    Number counts; ///< of pairs without targets in both, the first; and in one, the first
    std::string error;
  };
  // Documents as rows; tokens above 90 count.
  auto check = [&](const std::vector<std::vector<uint16_t>> &documents, int64_t length = 4, int64_t part = 0, int64_t parts = 1) {
    std::vector<uint16_t> tokens;
    std::vector<uint64_t> starts;
    std::vector<uint8_t> mask;
    for (const auto &document : documents) {
      starts.push_back(tokens.size());
      for (uint16_t token : document) {
        tokens.push_back(token);
        mask.push_back(token > 90);
      }
    }
    writeFile(scratch.path("a"), bytesOf(tokens));
    writeFile(scratch.path("starts"), bytesOf(starts));
    writeFile(scratch.path("mask"), bytesOf(mask));
    TokenData data({"--data", {scratch.path("a")}}, {"--loss-mask", {scratch.path("mask")}},
                   {"--documents", {scratch.path("starts")}}, "u16", length, 100, std::nullopt, /*preferencePairs=*/true);
    Found found;
    found.error = complaint([&] {
      TokenData::Uncounted of = data.checkPreferencePairs(part, parts, [](int64_t) {});
      found.counts = {int(of.ofBoth), int(of.firstOfBoth), int(of.ofOne), int(of.firstOfOne)};
    });
    return found;
  };
  std::vector<uint16_t> chosen = {1, 2, 91}, rejected = {1, 2, 92, 93};
  EXPECT_EQ(check({chosen, rejected}).counts, (Number{0, -1, 0, -1}));
  // A first token counts as none, but is no prompt either.
  EXPECT_EQ(check({{91, 92}, {93, 94}}).counts, (Number{0, -1, 0, -1}));
  // The last token read is a target, the one behind it is not read.
  EXPECT_EQ(check({chosen, rejected, {1, 2, 3, 4, 91}, {1, 2, 3, 4, 92}}).counts, (Number{0, -1, 0, -1}));
  EXPECT_EQ(check({chosen, rejected, {1, 2, 3, 4, 91}, {1, 2, 3, 4, 92}}, 3).counts, (Number{1, 1, 0, -1}));
  EXPECT_EQ(check({chosen, rejected, {1, 2, 3}, rejected}).counts, (Number{0, -1, 1, 1}));
  EXPECT_EQ(check({{1, 2}, {3, 4}, chosen, rejected, {1, 2, 3}, {1, 2, 4}}).counts, (Number{2, 0, 0, -1}));
  EXPECT_EQ(check({{1, 2}, {3, 4}, chosen, rejected, {1, 2, 3}, {1, 2, 4}}, 4, 1, 2).counts, (Number{1, 2, 0, -1}));
  for (const std::vector<uint16_t> &other : {std::vector<uint16_t>{1, 3, 92}, {1, 92}, {1, 2, 3, 92}, {3, 4, 5, 6, 92}}) {
    std::string error = check({chosen, rejected, chosen, other}).error;
    EXPECT_THAT(error, testing::HasSubstr("documents 2 and 3 are no pair"));
    EXPECT_THAT(error, testing::HasSubstr("meshwright tokenize --preferences"));
  }
}

TEST(LogProbs, AreOneForEachSequence) {
  TemporaryDirectory scratch;
  writeFile(scratch.path("two"), bytesOf<float>({-1.5f, 0}));
  writeFile(scratch.path("above"), bytesOf<float>({-1.5f, 0.25f}));
  writeFile(scratch.path("infinite"), bytesOf<float>({-INFINITY, 0}));
  auto open = [&](const char *file, int64_t sequences) {
    return LogProbs(scratch.path(file), "--reference-log-probs", sequences, "--data d");
  };
  EXPECT_EQ(open("two", 2).at(0), -1.5f);
  EXPECT_THAT(complaint([&] { open("two", 3); }), testing::HasSubstr("has 8 bytes, but --data d has 3 sequences"));
  EXPECT_THAT(complaint([&] { open("above", 2); }), testing::HasSubstr("number 1 is 0.25"));
  EXPECT_THAT(complaint([&] { open("infinite", 2); }), testing::HasSubstr("number 0 is -inf"));
}

// Sequences do not cross files, and what is beyond a file's last one is not read.
TEST(TokenData, PutsFilesOneAfterTheOther) {
  TemporaryDirectory scratch;
  auto file = [&](const char *name, std::vector<uint16_t> tokens) {
    std::string bytes(reinterpret_cast<const char *>(tokens.data()), 2 * tokens.size());
    writeFile(scratch.path(name), bytes);
    return scratch.path(name);
  };
  std::string a = file("a", {1, 2, 7, 4, 5, 6}), b = file("b", {50, 51}), c = file("c", {60, 7, 61, 62, 7, 63, 64});
  TokenData data({"--data", {a, b, c}}, {"--loss-mask", {}}, {"--documents", {}}, "u16", 2, 100);
  EXPECT_EQ(data.tokens(), 15);
  EXPECT_THAT(data.tokensByFile(), testing::ElementsAre(6, 2, 7));
  EXPECT_EQ(data.sequences(), 5);
  EXPECT_THAT(data.unused(), testing::HasSubstr("nothing is read of 1 file too short for a sequence of 2 with its "
                                                "targets (" + b + " with 2 tokens)"));
  auto read = [](const TokenData &data, int64_t index) {
    std::vector<int32_t> inputs(2), targets(2), positions(2, -9);
    data.read(index, inputs.data(), targets.data(), positions.data());
    inputs.insert(inputs.end(), targets.begin(), targets.end());
    inputs.insert(inputs.end(), positions.begin(), positions.end());
    return inputs;
  };
  using testing::ElementsAre;
  EXPECT_THAT(read(data, 0), ElementsAre(1, 2, 2, 7, -9, -9));
  EXPECT_THAT(read(data, 1), ElementsAre(7, 4, 4, 5, -9, -9));
  EXPECT_THAT(read(data, 2), ElementsAre(60, 7, 7, 61, -9, -9));
  EXPECT_THAT(read(data, 4), ElementsAre(7, 63, 63, 64, -9, -9));
  // One token ends the documents of all files; each file has a mask of its own.
  std::string masks[] = {scratch.path("ma"), scratch.path("mb"), scratch.path("mc")};
  writeFile(masks[0], bytesOf<uint8_t>({1, 1, 1, 1, 0, 1}));
  writeFile(masks[1], bytesOf<uint8_t>({1, 1}));
  writeFile(masks[2], bytesOf<uint8_t>({1, 0, 1, 1, 1, 1, 1}));
  TokenData masked({"--data", {a, b, c}}, {"--loss-mask", {masks[0], masks[1], masks[2]}}, {"--documents", {"7"}},
                   "u16", 2, 100);
  EXPECT_THAT(read(masked, 1), ElementsAre(7, 4, noTarget, noTarget, 0, 0));
  EXPECT_THAT(read(masked, 2), ElementsAre(60, 7, noTarget, noTarget, 0, 1));
  EXPECT_THAT(read(masked, 3), ElementsAre(61, 62, 62, 7, 0, 1));
  DataOrder order(5, false, 0);
  EXPECT_EQ(masked.countTargets(order, 0, 5), 2 + 0 + 0 + 2 + 1);
  EXPECT_EQ(masked.countTargets(order, 3, 3), 2 + 1 + 2); // the third is the first again
  EXPECT_EQ(data.countTargets(order, 0, 5), 10);
  // What each part reads of them, all in all.
  int64_t bytes = 0;
  for (int part = 0; part < 2; ++part)
    masked.check(part, 2, 1, [&](int64_t more) { bytes += more; });
  EXPECT_EQ(bytes, masked.bytes());
  EXPECT_EQ(masked.doubt(), "");
  auto open = [&](std::vector<std::string> masks, std::vector<std::string> documents) {
    return complaint([&] { TokenData({"--data", {a, b, c}}, {"--loss-mask", masks}, {"--documents", documents}, "u16", 2, 100); });
  };
  EXPECT_THAT(open({masks[0], masks[2]}, {}), testing::HasSubstr("--loss-mask names 2 files, but --data 3: give one for "
                                                                 "each, in the same order"));
  EXPECT_THAT(open({masks[0], masks[2], masks[1]}, {}), testing::HasSubstr("has 7 bytes, but " + b + " has 2 tokens"));
  EXPECT_THAT(open({}, {masks[0]}), testing::HasSubstr("--documents names 1 file, but --data 3"));
  EXPECT_THAT(complaint([&] { data.sequences(6); }), testing::HasSubstr("the 3 files have 15 tokens, 5 sequences of 2"));
}

TEST(Documents, RefusesOthers) {
  TemporaryDirectory scratch;
  writeFile(scratch.path("tokens"), std::string(2000, '\0'));
  TokenFile tokens(scratch.path("tokens"), "--data", "u16");
  auto refused = [&](const std::string &value, int64_t part = 0) {
    return complaint([&] { Documents(value, "--documents", tokens, 50).check(part, 2); });
  };
  EXPECT_THAT(refused("50"), testing::HasSubstr("--documents 50: is no token of the model, whose "
                                                "vocabulary has 50"));
  EXPECT_THAT(refused("99999999999999999999"), testing::HasSubstr("is no token"));
  EXPECT_EQ(refused("49"), "");
  EXPECT_THAT(refused(scratch.path("none")), testing::HasSubstr("none"));
  writeFile(scratch.path("empty"), "");
  EXPECT_THAT(refused(scratch.path("empty")), testing::HasSubstr("is empty, which would make all"));
  writeFile(scratch.path("one"), bytesOf<uint64_t>({0}));
  EXPECT_EQ(refused(scratch.path("one")), "");
  writeFile(scratch.path("odd"), std::string(12, '\0'));
  EXPECT_THAT(refused(scratch.path("odd")), testing::HasSubstr("has 12 bytes"));
  writeFile(scratch.path("unsorted"), bytesOf<uint64_t>({0, 30, 20, 40}));
  EXPECT_THAT(refused(scratch.path("unsorted"), 1),
              testing::HasSubstr("start 2 (at byte 16) is 20 after 30"));
  writeFile(scratch.path("twice"), bytesOf<uint64_t>({0, 30, 30, 40}));
  EXPECT_THAT(refused(scratch.path("twice"), 1), testing::HasSubstr("is 30 after 30"));
  writeFile(scratch.path("far"), bytesOf<uint64_t>({0, 30, 999, 1000}));
  EXPECT_EQ(refused(scratch.path("far"), 0), "");
  EXPECT_THAT(refused(scratch.path("far"), 1),
              testing::HasSubstr("start 3 (at byte 24) is 1000, but"));
  // Where it is read, too: it may have changed.
  Documents documents(scratch.path("unsorted"), "--documents", tokens, 50);
  std::vector<int32_t> numbers(100);
  EXPECT_THAT(complaint([&] {
                documents.apply(0, 100, numbers.data(), numbers.data(), numbers.data());
              }),
              testing::HasSubstr("start 2 (at byte 16) is 20 after 30"));
  EXPECT_THAT(Documents("49", "--documents", tokens, 50).doubt(),
              testing::HasSubstr("has no such token, so all of it is one document"));
  EXPECT_EQ(documentToken("starts.bin"), std::nullopt);
  EXPECT_EQ(documentToken("./5"), std::nullopt);
  EXPECT_EQ(documentToken("-5"), std::nullopt);
  EXPECT_EQ(documentToken("5"), 5);
}

// Memory of a file that has become shorter: SIGBUS, which is said as an error.
TEST(MappedFile, FilesThatGetShorterAreErrors) {
  TemporaryDirectory scratch;
  std::string path = scratch.path("f");
  EXPECT_EXIT(
      {
        writeFile(path, std::string(100000, 'a'));
        MappedFile file(path, "--init");
        std::filesystem::resize_file(path, 10);
        exit(file.data()[50000]);
      },
      testing::ExitedWithCode(1),
      "error: --init .*/f: its byte 50000 cannot be read any more: it had 100000 bytes");
  writeFile(path, std::string(100000, 'a'));
  MappedFile file(path, "--data");
  std::filesystem::resize_file(path, 10);
  char bytes[20];
  file.read(0, bytes, 10);
  EXPECT_THROW(file.read(0, bytes, 20), Error);
}

TEST(TokenFile, NamesOtherFormats) {
  TemporaryDirectory scratch;
  for (auto [content, words] : {std::pair<std::string, const char *>{"PAR1 and so on", "is a Parquet file"},
                                {"ARROW1\0\0", "is an Arrow file"},
                                {"\x1f\x8b\x08\x08 as", "is compressed with gzip, not tokens: unpack it first"},
                                {"\x28\xb5\x2f\xfd as", "compressed with zstd"},
                                {"PK\3\4 numpy", "a zip archive"},
                                {"MMIDIDX\0\0", "an index of Megatron-LM"},
                                {"\x93NUMPY\1 ..", "is a .npy file"}})
    for (const char *type : {"u8", "u16", "u32"}) {
      writeFile(scratch.path("f"), content);
      EXPECT_THAT(complaint([&] { TokenFile(scratch.path("f"), "--data", type); }), testing::HasSubstr(words));
    }
}
