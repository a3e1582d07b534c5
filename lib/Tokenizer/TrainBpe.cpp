//===- TrainBpe.cpp - a tokenizer from text -------------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Tokenizer/TrainBpe.h"

#include "Tokenizer/Core/Bpe.h"
#include "Tokenizer/Core/SplitPattern.h"
#include "Tokenizer/Core/Unicode.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <numeric>
#include <queue>

namespace meshwright::tokenizer {

namespace {

using Pair = std::pair<int32_t, int32_t>;

struct PairHash {
  size_t operator()(Pair pair) const {
    return (uint64_t(uint32_t(pair.first)) << 32 | uint32_t(pair.second)) * 0x9e3779b97f4a7c15u >>
           7;
  }
};

/// A pair to merge in some words.
struct Candidate {
  Pair pair;
  int64_t count;
  std::vector<uint32_t> words;

  bool operator<(const Candidate &other) const {
    return count != other.count ? count < other.count : pair > other.pair;
  }
};

class Trainer {
public:
  Trainer(const WordCounts &counts, std::vector<std::string> tokens,
          const std::array<int32_t, 256> &bytes);
  void run(int64_t vocabulary, int64_t leastCount);

  TrainedBpe result;

private:
  void merge(const Candidate &top, int32_t token);
  void change(Pair pair, int64_t by, uint32_t word);

  std::vector<std::vector<int32_t>> words;
  std::vector<int64_t> wordCounts;
  std::unordered_map<Pair, int64_t, PairHash> pairCounts;
  std::unordered_map<Pair, std::vector<uint32_t>, PairHash> grown; ///< words in which pairs are new
  std::priority_queue<Candidate> queue;
  std::unordered_map<std::string, int32_t> ids;
};

} // namespace

Trainer::Trainer(const WordCounts &counts, std::vector<std::string> tokens,
                 const std::array<int32_t, 256> &bytes) {
  for (size_t id = 0; id < tokens.size(); ++id)
    ids.emplace(tokens[id], int32_t(id));
  result.tokens = std::move(tokens);
  for (const auto &[word, count] : counts) {
    std::vector<int32_t> symbols;
    for (char byte : word)
      symbols.push_back(bytes[uint8_t(byte)]);
    auto number = uint32_t(words.size());
    wordCounts.push_back(int64_t(count));
    for (size_t i = 0; i + 1 < symbols.size(); ++i)
      change({symbols[i], symbols[i + 1]}, 1, number);
    words.push_back(std::move(symbols));
  }
}

void Trainer::change(Pair pair, int64_t by, uint32_t word) {
  pairCounts[pair] += by * wordCounts[word];
  if (by < 0)
    return;
  std::vector<uint32_t> &places = grown[pair];
  if (places.empty() || places.back() != word)
    places.push_back(word);
}

/// Makes `token` of the pair in its words. As in Hugging Face's trainer, the count of the pair
/// itself stays: a later pair of tokens with the same texts finds it.
void Trainer::merge(const Candidate &top, int32_t token) {
  auto [left, right] = top.pair;
  for (uint32_t number : top.words) {
    std::vector<int32_t> &word = words[number];
    size_t kept = 0;
    for (size_t i = 0; i < word.size(); ++i) {
      if (word[i] != left || i + 1 == word.size() || word[i + 1] != right) {
        word[kept++] = word[i];
        continue;
      }
      if (kept > 0) {
        change({word[kept - 1], left}, -1, number);
        change({word[kept - 1], token}, 1, number);
      }
      if (i + 2 < word.size()) {
        change({right, word[i + 2]}, -1, number);
        change({token, word[i + 2]}, 1, number);
      }
      word[kept++] = token;
      ++i;
    }
    word.resize(kept);
  }
}

void Trainer::run(int64_t vocabulary, int64_t leastCount) {
  auto enqueue = [&] {
    for (auto &[pair, places] : grown)
      if (int64_t count = pairCounts[pair]; count > 0)
        queue.push({pair, count, std::move(places)});
    grown.clear();
  };
  enqueue();
  while (int64_t(ids.size()) < vocabulary && !queue.empty()) {
    // A priority queue gives no way to move from it, and lists of words are long.
    Candidate top = std::move(const_cast<Candidate &>(queue.top()));
    queue.pop();
    if (int64_t count = pairCounts[top.pair]; count != top.count) {
      top.count = count;
      queue.push(std::move(top));
      continue;
    }
    if (top.count < std::max<int64_t>(leastCount, 1))
      break;
    std::string text =
        result.tokens[size_t(top.pair.first)] + result.tokens[size_t(top.pair.second)];
    auto [found, isNew] = ids.emplace(text, int32_t(result.tokens.size()));
    if (isNew)
      result.tokens.push_back(text);
    result.merges.push_back(top.pair);
    merge(top, found->second);
    enqueue();
  }
}

TrainedBpe trainBpe(const WordCounts &words, int64_t vocabulary, uint64_t leastCount,
                    const std::vector<std::string> &special) {
  std::vector<std::string> tokens = special;
  std::vector<int> order(256);
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(),
            [](int a, int b) { return characterOfByte(uint8_t(a)) < characterOfByte(uint8_t(b)); });
  std::array<int32_t, 256> bytes;
  for (int byte : order) {
    bytes[size_t(byte)] = int32_t(tokens.size());
    tokens.emplace_back();
    appendCodePoint(characterOfByte(uint8_t(byte)), tokens.back());
  }
  Trainer trainer(words, std::move(tokens), bytes);
  trainer.run(vocabulary, int64_t(leastCount));
  // A pair that came again has the place where it came last.
  std::vector<Pair> &merges = trainer.result.merges;
  std::unordered_map<Pair, size_t, PairHash> last;
  for (size_t i = 0; i < merges.size(); ++i)
    last[merges[i]] = i;
  size_t kept = 0;
  for (size_t i = 0; i < merges.size(); ++i)
    if (last[merges[i]] == i)
      merges[kept++] = merges[i];
  merges.resize(kept);
  return std::move(trainer.result);
}

const char *patternNamed(std::string_view name) {
  return name == "gpt2"     ? patterns::gpt2
         : name == "llama3" ? patterns::llama3
         : name == "qwen2"  ? patterns::qwen2
         : name == "o200k"  ? patterns::o200k
                            : nullptr;
}

using OrderedJson = nlohmann::ordered_json;

/// Adds what divides text.
static void addSplit(OrderedJson &file, std::string_view pattern) {
  OrderedJson bytes = {{"type", "ByteLevel"},
                       {"add_prefix_space", false},
                       {"trim_offsets", true},
                       {"use_regex", pattern == "gpt2"}};
  file["normalizer"] = pattern == "qwen2" ? OrderedJson{{"type", "NFC"}} : OrderedJson();
  if (pattern == "gpt2") {
    file["pre_tokenizer"] = bytes;
    return;
  }
  OrderedJson split = {{"type", "Split"},
                       {"pattern", {{"Regex", patternNamed(pattern)}}},
                       {"behavior", "Isolated"},
                       {"invert", false}};
  file["pre_tokenizer"] = {{"type", "Sequence"},
                           {"pretokenizers", OrderedJson::array({split, bytes})}};
}

std::string splitSpec(std::string_view pattern) {
  OrderedJson spec;
  addSplit(spec, pattern);
  return spec.dump();
}

std::string tokenizerJson(const TrainedBpe &trained, std::string_view pattern,
                          size_t specialTokens) {
  OrderedJson added = OrderedJson::array();
  for (size_t id = 0; id < specialTokens; ++id)
    added.push_back({{"id", id},
                     {"content", trained.tokens[id]},
                     {"single_word", false},
                     {"lstrip", false},
                     {"rstrip", false},
                     {"normalized", false},
                     {"special", true}});
  OrderedJson file = {
      {"version", "1.0"}, {"truncation", nullptr}, {"padding", nullptr}, {"added_tokens", added}};
  addSplit(file, pattern);
  file["post_processor"] = nullptr;
  file["decoder"] = {{"type", "ByteLevel"},
                     {"add_prefix_space", true},
                     {"trim_offsets", true},
                     {"use_regex", true}};
  // An ordered object looks through all of its keys for each new one.
  std::string vocab;
  for (size_t id = 0; id < trained.tokens.size(); ++id)
    vocab += (id ? ",\n      " : "{\n      ") + OrderedJson(trained.tokens[id]).dump() + ": " +
             std::to_string(id);
  OrderedJson merges = OrderedJson::array();
  for (auto [left, right] : trained.merges)
    merges.push_back({trained.tokens[size_t(left)], trained.tokens[size_t(right)]});
  file["model"] = {{"type", "BPE"},
                   {"dropout", nullptr},
                   {"unk_token", nullptr},
                   {"continuing_subword_prefix", nullptr},
                   {"end_of_word_suffix", nullptr},
                   {"fuse_unk", false},
                   {"byte_fallback", false},
                   {"ignore_merges", false},
                   {"vocab", 0},
                   {"merges", merges}};
  std::string text = file.dump(2) + "\n", place = "\"vocab\": 0";
  return text.replace(text.rfind(place, text.find("\"merges\"")), place.size(),
                      "\"vocab\": " + vocab + "\n    }");
}

} // namespace meshwright::tokenizer
