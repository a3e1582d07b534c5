//===- Bpe.cpp - byte-pair encoding of words -----------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Tokenizer/Core/Bpe.h"

#include "Tokenizer/Core/Spec.h"
#include "Tokenizer/Core/Unicode.h"

#include <algorithm>
#include <cstring>
#include <queue>
#define XXH_INLINE_ALL
#include <xxhash.h>

namespace meshwright::tokenizer {

//===--- bytes as characters ---------------------------------------------------===//

/// Printable bytes are themselves; the others follow from U+0100 on, in order.
static bool isPrintable(uint32_t byte) {
  return (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) ||
         (byte >= 0xae && byte <= 0xff);
}

uint32_t characterOfByte(uint8_t byte) {
  if (isPrintable(byte))
    return byte;
  uint32_t next = 0x100;
  for (uint32_t other = 0; other < byte; ++other)
    next += !isPrintable(other);
  return next;
}

int byteOfCharacter(uint32_t character) {
  static const std::vector<int> bytes = [] {
    std::vector<int> result(0x200, -1);
    for (int byte = 0; byte < 256; ++byte)
      result[characterOfByte(uint8_t(byte))] = byte;
    return result;
  }();
  return character < bytes.size() ? bytes[character] : -1;
}

bool bytesOfCharacters(std::string_view text, std::string &bytes) {
  bytes.clear();
  for (const char *at = text.data(), *end = at + text.size(); at != end;) {
    int byte = byteOfCharacter(nextCodePoint(at));
    if (byte < 0)
      return false;
    bytes += char(byte);
  }
  return true;
}

std::string charactersOfBytes(std::string_view bytes) {
  std::string result;
  for (char byte : bytes)
    appendCodePoint(characterOfByte(uint8_t(byte)), result);
  return result;
}

//===--- the model ---------------------------------------------------------------===//

BpeModel::BpeModel(const Json &spec, bool isByteLevel) : isByteLevel(isByteLevel) {
  if (auto found = spec.find("dropout"); found != spec.end() && !found->is_null() && *found != 0)
    fail("its BPE model has \"dropout\": ", found->dump(),
         ", which makes other tokens each time; set it to null");
  byteFallback = get(spec, "byte_fallback", false);
  ignoreMerges = get(spec, "ignore_merges", false);
  fuseUnknown = get(spec, "fuse_unk", false);
  prefix = get(spec, "continuing_subword_prefix", std::string());
  suffix = get(spec, "end_of_word_suffix", std::string());
  if (isByteLevel && (!prefix.empty() || !suffix.empty()))
    fail("its BPE model has a continuing_subword_prefix or an end_of_word_suffix beside ByteLevel, "
         "which is not supported");
  auto vocab = spec.find("vocab");
  if (vocab == spec.end() || !vocab->is_object())
    fail("its BPE model has no object \"vocab\"");
  tokens.reserve(vocab->size());
  std::string bytes;
  for (const auto &[text, id] : vocab->items()) {
    if (!id.is_number_unsigned() || id.get<uint64_t>() > INT32_MAX)
      fail("its BPE model's vocab has the id ", id.dump(), " for ", Json(text).dump(),
           ", which is no whole number");
    // What is no bytes cannot come from text, but may be an added token too.
    bool areBytes = isByteLevel && bytesOfCharacters(text, bytes);
    if (!isByteLevel || areBytes)
      tokens.emplace(areBytes ? bytes : text, id.get<int32_t>());
  }
  if (std::string name = get(spec, "unk_token", std::string()); !name.empty()) {
    auto found = vocab->find(name);
    if (found == vocab->end())
      fail("its BPE model has the unk_token ", name, ", which is not in its vocab");
    unknown = found->get<int32_t>();
  }
  for (int byte = 0; byte < 256; ++byte) {
    char name[8];
    snprintf(name, sizeof(name), "<0x%02X>", byte);
    auto found = tokens.find(isByteLevel ? std::string(1, char(byte)) : std::string(name));
    byteSymbols[size_t(byte)] = found == tokens.end() ? -1 : found->second;
  }
  readMerges(arrayOf(spec, "merges", "BPE model"));
}

void BpeModel::readMerges(const Json &merges) {
  int bits = 4;
  while ((size_t(1) << bits) < 2 * merges.size())
    ++bits;
  slots.resize(size_t(1) << bits);
  mask = slots.size() - 1;
  shift = 64 - bits;
  std::string storage;
  auto idOf = [&](const std::string &text, const Json &merge) {
    if (isByteLevel && !bytesOfCharacters(text, storage))
      return int32_t(-1); // No text has it.
    auto found = tokens.find(isByteLevel ? storage : text);
    if (found == tokens.end())
      fail("its BPE model has the merge ", merge.dump(), ", but no token ", Json(text).dump());
    return found->second;
  };
  for (size_t rank = 0; rank < merges.size(); ++rank) {
    const Json &merge = merges[rank];
    std::string left, right;
    if (merge.is_string()) {
      const auto &text = merge.get_ref<const std::string &>();
      size_t blank = text.find(' ');
      if (blank != text.npos && text.find(' ', blank + 1) == text.npos) {
        left = text.substr(0, blank);
        right = text.substr(blank + 1);
      }
    } else if (merge.is_array() && merge.size() == 2 && merge[0].is_string() &&
               merge[1].is_string()) {
      left = merge[0];
      right = merge[1];
    }
    if (left.empty() || right.empty())
      fail("its BPE model has the merge ", merge.dump(), ", which is no pair of tokens");
    std::string joined =
        left + (right.compare(0, prefix.size(), prefix) == 0 ? right.substr(prefix.size()) : right);
    int32_t first = idOf(left, merge), second = idOf(right, merge);
    int32_t result = first < 0 || second < 0 ? -1 : idOf(joined, merge);
    if (result < 0)
      continue;
    uint64_t pair = uint64_t(uint32_t(first)) << 32 | uint32_t(second);
    size_t i = slotOf(pair);
    while (slots[i].pair != ~uint64_t(0) && slots[i].pair != pair)
      i = (i + 1) & mask;
    slots[i] = {pair, {int32_t(rank), result}};
  }
}

bool BpeModel::keepsWordsApart(std::string_view mark) const {
  std::vector<bool> isResult;
  for (const Slot &slot : slots)
    if (slot.pair != ~uint64_t(0)) {
      if (size_t(slot.merge.result) >= isResult.size())
        isResult.resize(size_t(slot.merge.result) + 1);
      isResult[size_t(slot.merge.result)] = true;
    }
  for (const auto &[text, id] : tokens) {
    if (size_t(id) >= isResult.size() || !isResult[size_t(id)])
      continue;
    size_t at = 0;
    while (text.compare(at, mark.size(), mark) == 0)
      at += mark.size();
    if (text.find(mark, at) != text.npos)
      return false;
  }
  // A run of unknown characters must not be one token either.
  bool allKnown = byteFallback && std::all_of(byteSymbols.begin(), byteSymbols.end(),
                                              [](int32_t id) { return id >= 0; });
  return !ignoreMerges && prefix.empty() && suffix.empty() && (allKnown || !fuseUnknown);
}

void BpeModel::addSymbols(std::string_view word, std::vector<int32_t> &symbols) const {
  int32_t pending = -1; // an unknown one, with which the next may fuse
  auto add = [&](int32_t id) {
    if (pending >= 0)
      symbols.push_back(pending);
    pending = -1;
    symbols.push_back(id);
  };
  auto addUnknown = [&] {
    if (pending >= 0 && !fuseUnknown)
      symbols.push_back(pending);
    pending = unknown;
  };
  if (isByteLevel) {
    for (char byte : word)
      if (int32_t id = byteSymbols[uint8_t(byte)]; id >= 0)
        add(id);
      else
        addUnknown();
  } else {
    std::string text;
    for (const char *at = word.data(), *end = at + word.size(); at != end;) {
      const char *from = at;
      nextCodePoint(at);
      text.assign(from == word.data() ? "" : prefix).append(from, at);
      if (at == end)
        text += suffix;
      if (auto found = tokens.find(text); found != tokens.end()) {
        add(found->second);
        continue;
      }
      if (byteFallback && std::all_of(text.begin(), text.end(),
                                      [&](char byte) { return byteSymbols[uint8_t(byte)] >= 0; })) {
        // As `tokenizers`, which does not end a run of unknown characters here.
        for (char byte : text)
          symbols.push_back(byteSymbols[uint8_t(byte)]);
        continue;
      }
      addUnknown();
    }
  }
  if (pending >= 0)
    symbols.push_back(pending);
}

/// Merges the pair of lowest rank, the leftmost of several, until there is none.
void BpeModel::mergeShort(std::vector<int32_t> &symbols) const {
  std::array<const Merge *, 64> merges;
  size_t count = symbols.size();
  for (size_t i = 0; i + 1 < count; ++i)
    merges[i] = find(symbols[i], symbols[i + 1]);
  while (count > 1) {
    size_t best = count;
    int32_t rank = INT32_MAX;
    for (size_t i = 0; i + 1 < count; ++i)
      if (merges[i] && merges[i]->rank < rank) {
        rank = merges[i]->rank;
        best = i;
      }
    if (best == count)
      break;
    symbols[best] = merges[best]->result;
    --count;
    std::copy(symbols.begin() + long(best) + 2, symbols.begin() + long(count) + 1,
              symbols.begin() + long(best) + 1);
    if (best + 2 < count + 1)
      std::copy(merges.begin() + long(best) + 1, merges.begin() + long(count),
                merges.begin() + long(best));
    if (best > 0)
      merges[best - 1] = find(symbols[best - 1], symbols[best]);
    if (best + 1 < count)
      merges[best] = find(symbols[best], symbols[best + 1]);
  }
  symbols.resize(count);
}

/// The same in O(n log n).
void BpeModel::mergeLong(std::vector<int32_t> &symbols) const {
  struct Node {
    int32_t previous, next; ///< -1: none
  };
  struct Candidate {
    int32_t rank, at, left, right;
    bool operator<(const Candidate &other) const {
      return rank != other.rank ? rank > other.rank : at > other.at;
    }
  };
  auto count = int32_t(symbols.size());
  std::vector<Node> nodes(static_cast<size_t>(count));
  std::vector<Candidate> heap;
  auto candidate = [&](int32_t at, int32_t next, auto &&push) {
    if (const Merge *merge = find(symbols[size_t(at)], symbols[size_t(next)]))
      push(Candidate{merge->rank, at, symbols[size_t(at)], symbols[size_t(next)]});
  };
  for (int32_t i = 0; i < count; ++i) {
    nodes[size_t(i)] = {i - 1, i + 1 < count ? i + 1 : -1};
    if (i + 1 < count)
      candidate(i, i + 1, [&](Candidate each) { heap.push_back(each); });
  }
  std::priority_queue<Candidate> queue(std::less<Candidate>(), std::move(heap));
  while (!queue.empty()) {
    Candidate top = queue.top();
    queue.pop();
    Node &node = nodes[size_t(top.at)];
    // Others may have merged with either since.
    if (symbols[size_t(top.at)] != top.left || node.next < 0 ||
        symbols[size_t(node.next)] != top.right)
      continue;
    symbols[size_t(top.at)] = find(top.left, top.right)->result;
    int32_t gone = node.next;
    symbols[size_t(gone)] = -1;
    node.next = nodes[size_t(gone)].next;
    if (node.next >= 0) {
      nodes[size_t(node.next)].previous = top.at;
      candidate(top.at, node.next, [&](Candidate each) { queue.push(each); });
    }
    if (node.previous >= 0)
      candidate(node.previous, top.at, [&](Candidate each) { queue.push(each); });
  }
  symbols.erase(std::remove(symbols.begin(), symbols.end(), -1), symbols.end());
}

void BpeModel::encode(std::string_view word, Cache &cache, std::vector<int32_t> &ids) const {
  if (word.empty())
    return;
  Cache::Slot *slot = nullptr;
  uint64_t hash = 0;
  bool isShort = word.size() <= Cache::longestWord;
  if (isShort) {
    hash = XXH3_64bits(word.data(), word.size());
    size_t last = cache.slots.size() - 1;
    for (size_t i = hash & last;; i = (i + 1) & last) {
      slot = &cache.slots[i];
      if (slot->size == 0)
        break;
      if (slot->hash != hash || slot->size != word.size() ||
          std::memcmp(cache.keys.data() + slot->key, word.data(), word.size()) != 0)
        continue;
      if (slot->count == 1)
        ids.push_back(int32_t(slot->ids));
      else
        ids.insert(ids.end(), cache.ids.begin() + slot->ids,
                   cache.ids.begin() + slot->ids + slot->count);
      return;
    }
  }
  std::vector<int32_t> &symbols = cache.symbols;
  symbols.clear();
  auto whole = ignoreMerges ? tokens.find(std::string(word)) : tokens.end();
  if (whole != tokens.end()) {
    symbols.push_back(whole->second);
  } else {
    addSymbols(word, symbols);
    if (symbols.size() <= 64)
      mergeShort(symbols);
    else
      mergeLong(symbols);
  }
  ids.insert(ids.end(), symbols.begin(), symbols.end());
  if (!isShort)
    return;
  if (cache.words == Cache::mostWords) {
    std::fill(cache.slots.begin(), cache.slots.end(), Cache::Slot());
    cache.keys.clear();
    cache.ids.clear();
    cache.words = 0;
    slot = &cache.slots[hash & (cache.slots.size() - 1)];
  }
  ++cache.words;
  *slot = {hash, uint32_t(cache.keys.size()), uint32_t(cache.ids.size()), uint16_t(word.size()),
           uint16_t(symbols.size())};
  cache.keys += word;
  if (symbols.size() == 1)
    slot->ids = uint32_t(symbols[0]);
  else
    cache.ids.insert(cache.ids.end(), symbols.begin(), symbols.end());
}

} // namespace meshwright::tokenizer
