//===- AddedTokens.h - tokens that are found before text is divided ------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_TOKENIZER_CORE_ADDEDTOKENS_H
#define MESHWRIGHT_TOKENIZER_CORE_ADDEDTOKENS_H

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace meshwright::tokenizer {

/// An entry of "added_tokens" in a tokenizer.json.
struct AddedToken {
  std::string text;
  int32_t id = 0;
  bool special = false;    ///< no text of its own: a mark such as the end of a document
  bool normalized = false; ///< looked for in normalized text
  bool singleWord = false; ///< only where no word goes on before or behind it
  bool leftSpace = false, rightSpace = false; ///< takes the spaces before or behind it with it
};

/// Finds some tokens in a text: from its begin on the longest that begins at each place.
class AddedTokens {
public:
  void add(AddedToken token);
  bool empty() const { return tokens.empty(); }

  /// Calls `token` with each one found and `text` with what is between them, in order. Special ones
  /// are text too if `specialAsText`.
  void divide(std::string_view whole, bool specialAsText,
              const std::function<void(std::string_view)> &text,
              const std::function<void(int32_t id)> &token) const;

  /// As SplitPattern has it: none has a line's end, or takes one before it.
  bool mayCutLines() const;

private:
  const AddedToken *longestAt(std::string_view text) const;

  std::vector<AddedToken> tokens; ///< by their texts, descending
  /// By a first byte, what all tokens begin with that begin with it; empty where none does.
  std::array<std::string, 256> common;
};

} // namespace meshwright::tokenizer

#endif // MESHWRIGHT_TOKENIZER_CORE_ADDEDTOKENS_H
