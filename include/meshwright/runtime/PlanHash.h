//===- PlanHash.h - where a plan has its hash --------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// The hash of a plan is XXH3's 64 bits of its text, in which the digits of the hash are zeros.
// Without LLVM, since executables compare it when they start.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_RUNTIME_PLANHASH_H
#define MESHWRIGHT_RUNTIME_PLANHASH_H

#include <string>
#include <string_view>

namespace meshwright::plan {

inline constexpr size_t hashDigits = 16;

/// Where the digits of the hash begin in the text of a plan, or npos. Quotes in its strings are
/// escaped, so the key is found nowhere else.
inline size_t hashPosition(std::string_view text) {
  constexpr std::string_view key = "\"hash\"", space = " \n\r\t";
  for (size_t at = text.find(key); at != text.npos; at = text.find(key, at + 1)) {
    size_t colon = text.find_first_not_of(space, at + key.size());
    if (colon == text.npos || text[colon] != ':')
      continue;
    size_t quote = text.find_first_not_of(space, colon + 1);
    if (quote != text.npos && text[quote] == '"' && text.size() - quote > hashDigits + 1 &&
        text[quote + 1 + hashDigits] == '"')
      return quote + 1;
  }
  return text.npos;
}

/// The text that the hash is of; empty if `text` has no hash.
inline std::string hashedText(std::string text) {
  size_t at = hashPosition(text);
  return at == text.npos ? "" : text.replace(at, hashDigits, hashDigits, '0');
}

} // namespace meshwright::plan

#endif // MESHWRIGHT_RUNTIME_PLANHASH_H
