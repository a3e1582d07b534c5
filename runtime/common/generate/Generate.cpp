//===- Generate.cpp - text from a trained model ---------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "common/generate/Generate.h"

#include "Tokenizer/Core/Tokenizer.h"
#include "common/checkpoint/SafeTensors.h"
#include "common/checkpoint/Checkpoint.h"
#include "common/generate/BeamSearch.h"
#include "common/generate/Conventions.h"
#include "common/generate/Decoder.h"
#include "common/generate/Sampler.h"
#include "common/generate/TextStream.h"
#include "common/generate/TokenIds.h"
#include "common/monitor/Error.h"

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>

using namespace meshwright;
namespace fs = std::filesystem;

/// The tokenizer that --tokenizer names, or that is beside the weights.
static std::unique_ptr<tokenizer::Tokenizer> findTokenizer(const Options &options,
                                                          int64_t vocabulary) {
  if (options.tokenizer == "ids")
    return makeIdTokenizer(vocabulary);
  if (!options.tokenizer.empty())
    return tokenizer::loadTokenizer(options.tokenizer);
  fs::path folder = options.resume.empty() ? fs::path(modelFolder(options.init))
                                           : fs::path(findCheckpoint(options.resume));
  std::error_code error;
  for (const char *name : {"tokenizer.json", "tokenizer.model"})
    if (fs::exists(folder / name, error))
      return tokenizer::loadTokenizer((folder / name).string());
  if (vocabulary == 256)
    return tokenizer::loadTokenizer("bytes");
  fail("--generate: ", folder.string(),
       " has no tokenizer.json: name the model's tokenizer with --tokenizer FILE, or give ids of tokens with "
       "--tokenizer ids");
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

namespace {
/// Texts of one model, and what they have taken.
class Generator {
public:
  explicit Generator(const Options &options);
  /// Makes what follows a prompt, or the target of a source. `show` gets text as it comes: where a prompt
  /// goes on, that first.
  void run(const std::string &prompt, const std::function<void(const std::string &)> &show);
  /// Says on standard error how long all that took.
  void report() const;

private:
  std::vector<int32_t> encode(const std::string &text) const;
  /// How many tokens may follow a prompt of `length`.
  int64_t mostBehind(int64_t length) const;
  int32_t choose(const float *logits, int64_t position, int64_t number, int64_t most) const;

  const Options &options;
  Decoder decoder;
  std::unique_ptr<tokenizer::Tokenizer> tokens;
  Conventions conventions;
  bool hasSource; ///< what is given is a source, which the text does not begin with
  int64_t readTokens = 0, madeTokens = 0;
  double readSeconds = 0, madeSeconds = 0;
};
} // namespace

Generator::Generator(const Options &options)
    : options(options), decoder(options),
      tokens(findTokenizer(options, decoder.vocabulary())),
      conventions(readConventions(decoder.itsPlan())), hasSource(decoder.sourceLength() > 0) {
  if (std::optional<int32_t> end = tokens->endToken(); end && !conventions.isEnd(*end))
    conventions.ends.push_back(*end);
  if (!conventions.unread.empty())
    fprintf(stderr,
            "note: the model's configuration asks for %s in generation, which is not supported and left out\n",
            conventions.unread.c_str());
}

std::vector<int32_t> Generator::encode(const std::string &text) const {
  std::vector<int32_t> ids = tokens->before();
  tokens->makeEncoder()->encode(text, ids);
  if (hasSource) {
    // As `meshwright tokenize` ends documents.
    std::vector<int32_t> end = tokens->behind();
    if (std::optional<int32_t> last = tokens->endToken(); end.empty() && last)
      end = {*last};
    ids.insert(ids.end(), end.begin(), end.end());
  }
  if (ids.empty())
    fail("--generate: the ", hasSource ? "source" : "prompt", " has no token: give some text to go on from");
  for (int32_t id : ids)
    if (id < 0 || id >= decoder.vocabulary())
      fail("--generate: the tokenizer's token ", id, " is not in the model's vocabulary of ",
           decoder.vocabulary(), ": name the model's own tokenizer with --tokenizer FILE");
  if (auto length = int64_t(ids.size()); hasSource && length > decoder.sourceLength())
    fail("--generate: the source has ", length, " tokens, but the encoder of this executable reads ",
         decoder.sourceLength(), ": shorten it, or compile with a larger --source-seq");
  return ids;
}

int64_t Generator::mostBehind(int64_t length) const {
  int64_t most = decoder.length() - length;
  if (most < 1)
    fail("--generate: the prompt has ", length, " tokens, but sequences of this executable have ",
         decoder.length(), ": shorten it, or compile with a larger --seq");
  if (options.given("--tokens") && options.generateTokens > most) {
    if (hasSource)
      fail("--tokens ", options.generateTokens, ": targets of this executable have ", most,
           " tokens: give at most that, or compile with a larger --seq");
    fail("--tokens ", options.generateTokens, ": the prompt has ", length,
         " tokens and sequences of this executable ", decoder.length(), ": give at most ", most,
         ", or compile with a larger --seq");
  }
  return std::min(options.generateTokens, most);
}

int32_t Generator::choose(const float *logits, int64_t position, int64_t number,
                          int64_t most) const {
  Sampler sampler{options.temperature, options.topK, options.topP, uint64_t(options.seed)};
  int64_t count = decoder.vocabulary();
  if (!hasSource)
    return sampler.choose(logits, count, position);
  std::vector<double> scores(logits, logits + count);
  conventions.apply(scores, number, most);
  std::vector<float> changed(scores.begin(), scores.end());
  return sampler.choose(changed.data(), count, position);
}

void Generator::run(const std::string &prompt,
                    const std::function<void(const std::string &)> &show) {
  using Clock = std::chrono::steady_clock;
  auto secondsSince = [](Clock::time_point begin) {
    return std::chrono::duration<double>(Clock::now() - begin).count();
  };
  std::vector<int32_t> ids = encode(prompt);
  readTokens += int64_t(ids.size());
  // A target's start is none of its tokens.
  int64_t most = mostBehind(hasSource ? 0 : int64_t(ids.size()));
  TextStream stream(options.stop);
  Clock::time_point start = Clock::now();
  std::string begin, text;
  decoder.goBackTo({});
  if (hasSource) {
    decoder.encode(ids);
    ids = {*conventions.start};
  } else {
    begin = tokens->decode(ids);
    show(begin);
  }
  size_t given = ids.size();
  auto textOf = [&] {
    if (!hasSource)
      return tokens->decode(ids).substr(begin.size());
    return tokens->decode(std::vector<int32_t>(ids.begin() + std::ptrdiff_t(given), ids.end()));
  };
  if (options.beams > 1) {
    readSeconds += secondsSince(start);
    start = Clock::now();
    BeamSearch search{options.beams, options.lengthPenalty, earlyStoppingNamed(options.earlyStopping)};
    std::vector<int32_t> best = search.run(decoder, conventions, ids, most);
    madeTokens += int64_t(best.size());
    if (!best.empty() && conventions.isEnd(best.back()))
      best.pop_back();
    ids.insert(ids.end(), best.begin(), best.end());
    text = textOf();
    show(stream.next(text));
  } else {
    const float *logits = decoder.read(ids);
    readSeconds += secondsSince(start);
    start = Clock::now();
    for (int64_t made = 0; made < most && !stream.ended;) {
      int32_t next = choose(logits, int64_t(ids.size()), made, most);
      ++made;
      ++madeTokens;
      if (conventions.isEnd(next))
        break;
      ids.push_back(next);
      text = textOf();
      show(stream.next(text));
      if (made < most && !stream.ended)
        logits = decoder.read({next});
    }
  }
  show(stream.rest(text));
  madeSeconds += secondsSince(start);
}

void Generator::report() const {
  fprintf(stderr, "note: %lld tokens of %s in %.2f s, %lld %s at %.1f tokens/s\n", (long long)readTokens,
          hasSource ? "source" : "prompt", readSeconds, (long long)madeTokens,
          hasSource ? "of target" : "more", double(madeTokens) / madeSeconds);
}

/// `text` in one line.
static std::string inOneLine(const std::string &text) {
  std::string line;
  for (char c : text)
    if (c == '\n' || c == '\r')
      line += c == '\n' ? "\\n" : "\\r";
    else
      line += c;
  return line;
}

/// What follows each line of a file, in a line of its own.
static void generateLines(Generator &generator, const std::string &path) {
  std::error_code error;
  if (!fs::is_regular_file(path, error))
    fail("--lines: --generate ", path, " is no file: give one with a prompt or source in each line");
  std::ifstream file(path, std::ios::binary);
  int64_t number = 0;
  for (std::string line; std::getline(file, line);) {
    ++number;
    std::string made;
    try {
      generator.run(line, [&](const std::string &text) { made += text; });
    } catch (const Error &why) {
      fail(path, ":", number, ": ", why.what());
    }
    print(inOneLine(made) + "\n");
  }
  if (file.bad())
    fail("--generate: cannot read ", path);
}

void meshwright::generate(const Options &options) {
  Generator generator(options);
  if (options.lines) {
    generateLines(generator, options.generate);
  } else {
    generator.run(promptOf(options.generate), print);
    print("\n");
  }
  generator.report();
}
