//===- TrainBpe.h - a tokenizer from text ---------------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_TOKENIZER_TRAINBPE_H
#define MESHWRIGHT_TOKENIZER_TRAINBPE_H

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace meshwright::tokenizer {

/// How often each word, as bytes, is in a text.
using WordCounts = std::unordered_map<std::string, uint64_t>;

/// Byte-level BPE: special tokens come first, then the 256 bytes, then what merges make.
struct TrainedBpe {
  std::vector<std::string> tokens; ///< by id; those of text as characters that stand for bytes
  std::vector<std::pair<int32_t, int32_t>> merges;
};

/// Merges the most frequent pair, the one with the lowest ids of several, until there are
/// `vocabulary` tokens or no pair occurs `leastCount` times: what BpeTrainer of Hugging Face's
/// tokenizers does, with the same result.
TrainedBpe trainBpe(const WordCounts &words, int64_t vocabulary, uint64_t leastCount,
                    const std::vector<std::string> &special);

/// Split patterns that a tokenizer may be trained with, by name; null if there is none.
const char *patternNamed(std::string_view name);

/// The normalizer and the pre-tokenizer of a tokenizer.json that divides text by that pattern, as
/// JSON.
std::string splitSpec(std::string_view pattern);

/// A tokenizer.json of what was trained with that pattern.
std::string tokenizerJson(const TrainedBpe &trained, std::string_view pattern,
                          size_t specialTokens);

} // namespace meshwright::tokenizer

#endif // MESHWRIGHT_TOKENIZER_TRAINBPE_H
