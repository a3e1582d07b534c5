//===- TrainCommand.cpp - the `tokenizer train` command --------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Tokenizer/CommandLine.h"
#include "Tokenizer/Core/Error.h"
#include "Tokenizer/Core/Normalizer.h"
#include "Tokenizer/Core/PreTokenizer.h"
#include "Tokenizer/Core/Unicode.h"
#include "Tokenizer/Portions.h"
#include "Tokenizer/TrainBpe.h"
#include "meshwright/AtomicFile.h"
#include "meshwright/HelpRequested.h"
#include "meshwright/Tokenize.h"

#include "llvm/Support/FormatVariadic.h"

#include <nlohmann/json.hpp>

namespace meshwright {

using namespace tokenizer;

static constexpr const char *trainUsage =
    "usage: meshwright tokenizer train FILE|DIR... --vocab N -o tokenizer.json [flags]\n"
    "  Trains a byte-level BPE tokenizer, in the format of Hugging Face tokenizers.\n"
    "  --vocab N                 vocabulary size: special tokens, 256 bytes and merges\n"
    "  -o FILE                   file to write\n"
    "  --pattern NAME            pre-tokenization pattern: gpt2, llama3, qwen2 or o200k (llama3)\n"
    "  --special TOKEN[,TOKEN]   special tokens, which get the first ids (<|endoftext|>)\n"
    "  --min-frequency N         merge only pairs that occur at least N times (2)\n"
    "  --field NAME              JSONL key of the text (text)\n"
    "  --threads N               threads that count words (all cores)\n";

namespace {
/// Counts words of portions on one thread.
class WordCounter {
public:
  WordCounter(const Corpus &corpus, const std::string &field, const std::string &pattern)
      : reader(corpus, field) {
    nlohmann::json spec = nlohmann::json::parse(splitSpec(pattern));
    bool isByteLevel;
    normalizer = makeNormalizer(spec["normalizer"]);
    preTokenizer = makePreTokenizer(spec["pre_tokenizer"], isByteLevel);
  }

  WordCounts operator()(const Portion &portion) {
    WordCounts counts;
    std::string repaired, normalized, word;
    reader.each(portion, [&](const TextPart &part) {
      std::string_view text = repairUtf8(part.text, repaired);
      if (normalizer)
        text = normalizer->apply(text, normalized);
      pieces.reset(text, part.beginsDocument);
      preTokenizer->split(pieces);
      for (std::string_view piece : pieces.list)
        ++counts[word.assign(piece)];
    });
    return counts;
  }

private:
  PortionReader reader;
  std::unique_ptr<Normalizer> normalizer;
  std::unique_ptr<PreTokenizer> preTokenizer;
  Pieces pieces;
};
} // namespace

static void trainTokenizer(llvm::ArrayRef<std::string> args, llvm::raw_ostream &os) {
  std::vector<std::string> inputs;
  std::string path, pattern = "llama3", specialText = "<|endoftext|>", field = "text";
  int64_t vocabulary = 0, leastCount = 2, threads = defaultThreads();
  parseFlags(args,
             {{"--vocab", NumberFlag{&vocabulary, 257, 1 << 24}},
              {"-o", &path},
              {"--pattern", &pattern},
              {"--special", &specialText},
              {"--min-frequency", NumberFlag{&leastCount, 1, INT64_MAX}},
              {"--field", &field},
              {"--threads", NumberFlag{&threads, 1, 1024}}},
             inputs, trainUsage);
  if (inputs.empty())
    fail("no text given\n", trainUsage);
  if (!vocabulary)
    fail("--vocab is missing: it says how many tokens to make");
  if (path.empty())
    fail("-o is missing: it says where the tokenizer goes");
  if (!patternNamed(pattern))
    fail("--pattern ", pattern, " is none of gpt2, llama3, qwen2 and o200k");
  std::vector<std::string> special;
  for (size_t begin = 0; begin <= specialText.size();) {
    size_t end = std::min(specialText.find(',', begin), specialText.size());
    special.push_back(specialText.substr(begin, end - begin));
    if (special.back().empty() || llvm::count(special, special.back()) > 1)
      fail("--special ", specialText, " has an empty token, or one twice");
    begin = end + 1;
  }
  if (vocabulary <= 256 + int64_t(special.size()))
    fail("--vocab ", vocabulary, " leaves no merges: ", special.size(),
         " special tokens and 256 bytes are ", 256 + special.size(), " already");

  Corpus corpus(inputs, false);
  // Tells where text may be cut.
  std::unique_ptr<Tokenizer> divider =
      makeJsonTokenizer(tokenizerJson(trainBpe({}, 0, 1, {}), pattern, 0), path);
  ProgressBar progress(corpus.bytes());
  WordCounts words;
  forEachPortion<WordCounts>(
      corpus, *divider, int(threads), progress, [&] { return WordCounter(corpus, field, pattern); },
      [&](const WordCounts &counts) {
        for (const auto &[word, count] : counts)
          words[word] += count;
      });
  if (words.empty())
    fail("there is no text in ", corpus.files(), " files");
  TrainedBpe trained = trainBpe(words, vocabulary, uint64_t(leastCount), special);
  if (llvm::Error error =
          writeFileAtomically(tokenizerJson(trained, pattern, special.size()), path))
    fail(llvm::toString(std::move(error)));
  os << llvm::formatv("{0:N} tokens, {1:N} of them merges, from {2:N} words of {3:f1} MB\n",
                      trained.tokens.size(), trained.merges.size(), words.size(),
                      double(corpus.bytes()) / 1e6);
  if (int64_t(trained.tokens.size()) < vocabulary)
    os << llvm::formatv(
        "that is fewer than --vocab {0}: no other pair occurs {1} times; give more text\n",
        vocabulary, leastCount);
}

llvm::Error makeTokenizer(llvm::ArrayRef<std::string> args, llvm::raw_ostream &os) {
  if (llvm::is_contained(args, "-h") || llvm::is_contained(args, "--help"))
    return llvm::make_error<HelpRequested>(trainUsage);
  if (args.empty() || args[0] != "train")
    return llvm::createStringError(
        (args.empty() ? "tokenizer needs 'train'"
                      : "'tokenizer " + args[0] + "' is no command, but 'tokenizer train' is") +
        "\n" + trainUsage);
  try {
    trainTokenizer(args.drop_front(), os);
  } catch (const tokenizer::Error &error) {
    return llvm::createStringError(error.what());
  }
  return llvm::Error::success();
}

} // namespace meshwright
