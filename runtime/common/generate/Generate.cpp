//===- Generate.cpp - text from a trained model ---------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "common/generate/Generate.h"

#include "Tokenizer/Core/Tokenizer.h"
#include "common/checkpoint/Checkpoint.h"
#include "common/generate/Decoder.h"
#include "common/generate/Sampler.h"
#include "common/generate/TextStream.h"
#include "common/monitor/Error.h"

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>

using namespace meshwright;
namespace fs = std::filesystem;

/// The tokenizer that --tokenizer names, or that is beside the weights.
static std::unique_ptr<tokenizer::Tokenizer> findTokenizer(const Options &options,
                                                          int64_t vocabulary) {
  if (!options.tokenizer.empty())
    return tokenizer::loadTokenizer(options.tokenizer);
  fs::path folder = options.resume.empty() ? fs::path(options.init).parent_path()
                                           : fs::path(findCheckpoint(options.resume));
  std::error_code error;
  for (const char *name : {"tokenizer.json", "tokenizer.model"})
    if (fs::exists(folder / name, error))
      return tokenizer::loadTokenizer((folder / name).string());
  if (vocabulary == 256)
    return tokenizer::loadTokenizer("bytes");
  fail("--generate: ", folder.string(),
       " has no tokenizer.json: name the model's tokenizer with --tokenizer FILE");
}

/// The text of a file, or what is no file's name itself.
static std::string promptOf(const std::string &given) {
  std::error_code error;
  if (!fs::is_regular_file(given, error))
    return given;
  std::ifstream file(given, std::ios::binary);
  std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  if (file.bad())
    fail("--generate: cannot read ", given);
  return text;
}

static void print(const std::string &text) {
  if (fwrite(text.data(), 1, text.size(), stdout) != text.size() || fflush(stdout) != 0)
    fail("--generate: cannot write to the standard output");
}

void meshwright::generate(const Options &options) {
  using Clock = std::chrono::steady_clock;
  auto secondsSince = [](Clock::time_point begin) {
    return std::chrono::duration<double>(Clock::now() - begin).count();
  };
  Decoder decoder(options);
  auto tokens = findTokenizer(options, decoder.vocabulary());
  std::string prompt = promptOf(options.generate);
  std::vector<int32_t> ids = tokens->before();
  tokens->makeEncoder()->encode(prompt, ids);
  if (ids.empty())
    fail("--generate: the prompt has no token: give some text to go on from");
  for (int32_t id : ids)
    if (id < 0 || id >= decoder.vocabulary())
      fail("--generate: the tokenizer's token ", id, " is not in the model's vocabulary of ",
           decoder.vocabulary(), ": name the model's own tokenizer with --tokenizer FILE");
  int64_t length = int64_t(ids.size());
  if (length >= decoder.length())
    fail("--generate: the prompt has ", length, " tokens, but sequences of this executable have ",
         decoder.length(), ": shorten it, or compile with a larger --seq");
  int64_t wanted = options.generateTokens;
  if (options.given("--tokens") && length + wanted > decoder.length())
    fail("--tokens ", wanted, ": the prompt has ", length,
         " tokens and sequences of this executable ", decoder.length(), ": give at most ",
         decoder.length() - length, ", or compile with a larger --seq");
  wanted = std::min(wanted, decoder.length() - length);

  Sampler sampler{options.temperature, options.topK, options.topP, uint64_t(options.seed)};
  std::optional<int32_t> end = tokens->endToken();
  TextStream stream(options.stop);
  std::string begin = tokens->decode(ids), text;
  print(begin);
  Clock::time_point start = Clock::now();
  const float *logits = decoder.read(ids);
  double promptSeconds = secondsSince(start);
  start = Clock::now();
  int64_t made = 0;
  while (made < wanted && !stream.ended) {
    int32_t next = sampler.choose(logits, decoder.vocabulary(), int64_t(ids.size()));
    ++made;
    if (next == end)
      break;
    ids.push_back(next);
    text = tokens->decode(ids).substr(begin.size());
    print(stream.next(text));
    if (made < wanted && !stream.ended)
      logits = decoder.read({next});
  }
  print(stream.rest(text) + "\n");
  double seconds = secondsSince(start);
  fprintf(stderr, "note: %lld tokens of prompt in %.2f s, %lld more at %.1f tokens/s\n",
          (long long)length, promptSeconds, (long long)made, double(made) / seconds);
}
