//===- Bpe.h - byte-pair encoding of words -------------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_TOKENIZER_CORE_BPE_H
#define MESHWRIGHT_TOKENIZER_CORE_BPE_H

#include <array>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace meshwright::tokenizer {

/// Texts of tokens and their ids. Where a tokenizer is byte-level, the texts are bytes.
using Vocabulary = std::unordered_map<std::string, int32_t>;

/// The byte that a character of byte-level BPE stands for (bytes_to_unicode of GPT-2); -1 for other
/// characters. And the character of a byte.
int byteOfCharacter(uint32_t character);
uint32_t characterOfByte(uint8_t byte);

/// The bytes that `text` stands for; false if it has a character that is no byte's.
bool bytesOfCharacters(std::string_view text, std::string &bytes);
/// The characters that stand for `bytes`.
std::string charactersOfBytes(std::string_view bytes);

/// The BPE model of a tokenizer.json.
class BpeModel {
public:
  /// An Error if it has a feature that is not supported or is damaged. `isByteLevel`: words are
  /// given as bytes.
  BpeModel(const nlohmann::json &spec, bool isByteLevel);

  /// Buffers of one thread, and the words that it has encoded before.
  class Cache;

  /// Appends the ids of a word.
  void encode(std::string_view word, Cache &cache, std::vector<int32_t> &ids) const;

  const Vocabulary &vocabulary() const { return tokens; }
  bool hasByteFallback() const { return byteFallback; }

  /// Whether no merge makes a token in which a character is followed by `mark`, unless that is
  /// `mark` too: words may then be divided before each such one.
  bool keepsWordsApart(std::string_view mark) const;

private:
  struct Merge {
    int32_t rank, result;
  };
  struct Slot {
    uint64_t pair = ~uint64_t(0);
    Merge merge;
  };
  const Merge *find(int32_t left, int32_t right) const {
    uint64_t pair = uint64_t(uint32_t(left)) << 32 | uint32_t(right);
    for (size_t i = slotOf(pair);; i = (i + 1) & mask) {
      if (slots[i].pair == pair)
        return &slots[i].merge;
      if (slots[i].pair == ~uint64_t(0))
        return nullptr;
    }
  }
  size_t slotOf(uint64_t pair) const { return size_t((pair * 0x9e3779b97f4a7c15u) >> shift); }

  void readMerges(const nlohmann::json &merges);
  void addSymbols(std::string_view word, std::vector<int32_t> &symbols) const;
  void mergeShort(std::vector<int32_t> &symbols) const;
  void mergeLong(std::vector<int32_t> &symbols) const;

  Vocabulary tokens;
  std::vector<Slot> slots; ///< of a hash table with open addressing
  size_t mask = 0;
  int shift = 0;
  bool isByteLevel, byteFallback = false, ignoreMerges = false, fuseUnknown = false;
  int32_t unknown = -1;                 ///< -1: what has no token is left out
  std::array<int32_t, 256> byteSymbols; ///< the token of each byte, or of its fallback; -1
  std::string prefix, suffix;           ///< of what continues a word and of what ends it
};

/// Words by their bytes, each with its ids. It is emptied when it is full.
class BpeModel::Cache {
public:
  Cache() : slots(size_t(1) << bits) {}

private:
  friend class BpeModel;
  static constexpr int bits = 17;
  static constexpr size_t mostWords = size_t(1) << (bits - 1), longestWord = 64;
  struct Slot {
    uint64_t hash = 0;
    uint32_t key = 0, ids = 0; ///< where they begin; `ids` is the id itself if there is one
    uint16_t size = 0, count = 0;
  };
  std::vector<Slot> slots;
  size_t words = 0;
  std::string keys;
  std::vector<int32_t> ids;
  std::vector<int32_t> symbols;
};

} // namespace meshwright::tokenizer

#endif // MESHWRIGHT_TOKENIZER_CORE_BPE_H
