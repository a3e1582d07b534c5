//===- SplitPattern.h - where a pattern divides text --------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_TOKENIZER_CORE_SPLITPATTERN_H
#define MESHWRIGHT_TOKENIZER_CORE_SPLITPATTERN_H

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace meshwright::tokenizer {

/// The patterns that are matched by code of their own, many times as fast as by a matcher of
/// regular expressions. Each divides all of a text: what is between two matches is nothing.
namespace patterns {
extern const char *const gpt2, *const llama3, *const qwen2, *const o200k;
} // namespace patterns

/// Finds the matches of a regular expression, one after the other.
class SplitPattern {
public:
  virtual ~SplitPattern() = default;

  /// Calls `each` (begin, end) for each match in `text`, which must be UTF-8.
  virtual void matches(std::string_view text,
                       std::vector<std::pair<size_t, size_t>> &found) const = 0;

  /// Whether it is one of `patterns`: then text may be cut between a line's end and a letter or a
  /// digit of ASCII that begins the next line, if no other space is before that end.
  virtual bool mayCutLines() const { return false; }
};

/// One of `patterns`, or whatever PCRE2 makes of the text of one. An Error if that is no pattern.
std::unique_ptr<SplitPattern> makePattern(const std::string &regex);

/// The same by PCRE2 alone, for what has no code of its own, and to check what has.
std::unique_ptr<SplitPattern> makeRegexPattern(const std::string &regex);

/// A pattern that matches `literal` itself.
std::unique_ptr<SplitPattern> makeLiteralPattern(const std::string &literal);

} // namespace meshwright::tokenizer

#endif // MESHWRIGHT_TOKENIZER_CORE_SPLITPATTERN_H
