//===- PreTokenizer.h - what divides text into words ---------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_TOKENIZER_CORE_PRETOKENIZER_H
#define MESHWRIGHT_TOKENIZER_CORE_PRETOKENIZER_H

#include <deque>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace meshwright::tokenizer {

/// Parts of a text, which merges do not cross.
struct Pieces {
  std::vector<std::string_view> list;
  std::deque<std::string> owned;   ///< those that are no part of the text
  const char *textBegin = nullptr; ///< where a piece begins that begins the whole text

  // What steps need while they divide; kept, so that it is allocated once.
  std::vector<std::string_view> next;
  std::vector<std::pair<size_t, size_t>> matches;

  void reset(std::string_view text, bool beginsText) {
    list.assign(1, text);
    owned.clear();
    textBegin = beginsText ? text.data() : nullptr;
  }
};

class PreTokenizer {
public:
  virtual ~PreTokenizer() = default;
  virtual void split(Pieces &pieces) const = 0;
  /// As SplitPattern has it.
  virtual bool mayCutLines() const { return false; }
};

/// That of a tokenizer.json; null for none. `isByteLevel` becomes true if its last step writes
/// bytes as characters: pieces are then given as they are, since the model can do without. An Error
/// naming a kind that is not supported.
std::unique_ptr<PreTokenizer> makePreTokenizer(const nlohmann::json &spec, bool &isByteLevel);

} // namespace meshwright::tokenizer

#endif // MESHWRIGHT_TOKENIZER_CORE_PRETOKENIZER_H
