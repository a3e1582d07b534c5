//===- AddedTokens.cpp - tokens that are found before text is divided ----------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Tokenizer/Core/AddedTokens.h"

#include "Tokenizer/Core/Unicode.h"

#include <algorithm>
#include <cstring>
#include <utf8proc.h>

namespace meshwright::tokenizer {

void AddedTokens::add(AddedToken token) {
  if (token.text.empty())
    return;
  std::string &shared = common[uint8_t(token.text[0])];
  if (shared.empty())
    shared = token.text;
  while (token.text.compare(0, shared.size(), shared) != 0)
    shared.pop_back();
  auto place =
      std::lower_bound(tokens.begin(), tokens.end(), token.text,
                       [](const AddedToken &a, const std::string &b) { return a.text > b; });
  if (place == tokens.end() || place->text != token.text)
    tokens.insert(place, std::move(token));
}

bool AddedTokens::mayCutLines() const {
  return std::none_of(tokens.begin(), tokens.end(), [](const AddedToken &token) {
    return token.leftSpace || token.text.find('\n') != std::string::npos;
  });
}

const AddedToken *AddedTokens::longestAt(std::string_view text) const {
  // Descending, a text comes after all that go on from it, and between it and one that it begins
  // with are only others that begin so.
  auto at = std::lower_bound(tokens.begin(), tokens.end(), text,
                             [](const AddedToken &a, std::string_view b) { return a.text > b; });
  for (; at != tokens.end() && at->text[0] == text[0]; ++at)
    if (text.compare(0, at->text.size(), at->text) == 0)
      return &*at;
  return nullptr;
}

/// Whether \w matches the character at `at`.
static bool isWord(const char *at) {
  uint32_t c = nextCodePoint(at);
  utf8proc_category_t category = utf8proc_category(int32_t(c));
  return charClasses()[c] & (Letter | Mark) || c == 0x200c || c == 0x200d ||
         category == UTF8PROC_CATEGORY_ND || category == UTF8PROC_CATEGORY_NL ||
         category == UTF8PROC_CATEGORY_PC;
}

void AddedTokens::divide(std::string_view whole, bool specialAsText,
                         const std::function<void(std::string_view)> &text,
                         const std::function<void(int32_t id)> &token) const {
  const uint8_t *classes = charClasses();
  const char *begin = whole.data(), *end = begin + whole.size(), *done = begin;
  for (const char *at = begin; at < end;) {
    const std::string &shared = common[uint8_t(*at)];
    std::string_view rest(at, size_t(end - at));
    bool may = !shared.empty() && rest.substr(0, shared.size()) == shared;
    const AddedToken *found = may ? longestAt(rest) : nullptr;
    if (!found) {
      ++at;
      continue;
    }
    const char *from = at, *to = at + found->text.size();
    at = to;
    if ((found->special && specialAsText) ||
        (found->singleWord &&
         ((from != begin && isWord(previousCharacter(from))) || (to != end && isWord(to)))))
      continue;
    if (found->leftSpace)
      while (from > done) {
        const char *last = previousCharacter(from), *next = last;
        if (!(classes[nextCodePoint(next)] & Space))
          break;
        from = last;
      }
    if (found->rightSpace)
      for (const char *next = to; to != end; to = next)
        if (!(classes[nextCodePoint(next)] & Space))
          break;
    if (from > done)
      text({done, size_t(from - done)});
    token(found->id);
    done = to;
  }
  if (done < end)
    text({done, size_t(end - done)});
}

} // namespace meshwright::tokenizer
