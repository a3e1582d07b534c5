//===- KnownPatterns.cpp - split patterns by hand ------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// Each function returns the end of the match that begins at `at`, as a matcher that backtracks
// finds it: the first alternative that matches at all, each repetition as long as the rest allows.
//
//===----------------------------------------------------------------------===//
#include "Tokenizer/Core/SplitPattern.h"
#include "Tokenizer/Core/Unicode.h"

namespace meshwright::tokenizer {

const char *const patterns::gpt2 =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
const char *const patterns::llama3 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
const char *const patterns::qwen2 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
const char *const patterns::o200k =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

namespace {

/// Text from a place on, by classes of characters.
class Scanner {
public:
  explicit Scanner(const char *end) : classes(charClasses()), end(end) {}

  bool atEnd(const char *at) const { return at == end; }
  uint8_t classAt(const char *at) const { return classes[nextCodePoint(at)]; }
  static const char *after(const char *at) {
    nextCodePoint(at);
    return at;
  }
  static bool isLineEnd(char c) { return c == '\n' || c == '\r'; }

  /// The end of the characters from `at` on that have one of the classes `any`, `most` at most.
  const char *run(const char *at, uint8_t any, int most = 0) const {
    for (int count = 0; at != end; ++count) {
      const char *next = at;
      if (!(classes[nextCodePoint(next)] & any) || (most && count == most))
        break;
      at = next;
    }
    return at;
  }
  /// The same of those that have none of the classes `none`.
  const char *runWithout(const char *at, uint8_t none) const {
    while (at != end) {
      const char *next = at;
      if (classes[nextCodePoint(next)] & none)
        break;
      at = next;
    }
    return at;
  }

  /// 's|'t|'re|'ve|'m|'ll|'d; `at` itself if there is none.
  template <bool anyCase> const char *contraction(const char *at) const {
    if (end - at < 2 || *at != '\'')
      return at;
    auto letter = [&](ptrdiff_t index) -> char {
      if (index >= end - at)
        return 0;
      char c = at[index];
      return anyCase && c >= 'A' && c <= 'Z' ? char(c + ('a' - 'A')) : c;
    };
    char first = letter(1), second = letter(2);
    if (first == 's' || first == 't' || first == 'm' || first == 'd')
      return at + 2;
    if ((first == 'r' && second == 'e') || (first == 'v' && second == 'e') ||
        (first == 'l' && second == 'l'))
      return at + 3;
    // The long s, whose capital is S.
    if (anyCase && first == '\xc5' && second == '\xbf')
      return at + 3;
    return at;
  }

  /// \s+(?!\S)|\s+ from a space on.
  const char *spaces(const char *at) const {
    const char *stop = run(at, Space);
    if (stop == end)
      return stop;
    const char *last = previousCharacter(stop);
    return last == at ? stop : last;
  }
  /// \s*[\r\n]+|\s+(?!\S)|\s+ from a space on.
  const char *spacesOfLines(const char *at) const {
    const char *stop = run(at, Space);
    for (const char *line = stop; line != at; --line)
      if (isLineEnd(line[-1]))
        return line;
    return spaces(at);
  }
  /// ' ?[^\s\p{L}\p{N}]+[\r\n]*', also [\r\n/]*; `at` itself if there is none.
  const char *signs(const char *at, bool thenSlashes) const {
    const char *first = *at == ' ' ? at + 1 : at;
    const char *stop = runWithout(first, Space | Letter | Number);
    if (stop == first)
      return at;
    while (stop != end && (isLineEnd(*stop) || (thenSlashes && *stop == '/')))
      ++stop;
    return stop;
  }

protected:
  const uint8_t *classes;
  const char *end;
};

struct Gpt2 : Scanner {
  using Scanner::Scanner;
  const char *match(const char *at) const {
    if (const char *stop = contraction<false>(at); stop != at)
      return stop;
    const char *first = *at == ' ' && end - at > 1 ? at + 1 : at;
    uint8_t kind = classAt(first);
    if (kind & Letter)
      return run(first, Letter);
    if (kind & Number)
      return run(first, Number);
    return kind & Space ? spaces(at) : runWithout(first, Space | Letter | Number);
  }
};

/// Llama 3's and Qwen's, which differ in how many digits are one piece.
template <int digits> struct Llama3 : Scanner {
  using Scanner::Scanner;
  const char *match(const char *at) const {
    if (const char *stop = contraction<true>(at); stop != at)
      return stop;
    uint8_t kind = classAt(at);
    if (kind & Letter)
      return run(at, Letter);
    if (kind & Number)
      return run(at, Number, digits);
    const char *next = after(at);
    if (!isLineEnd(*at) && next != end && classAt(next) & Letter)
      return run(next, Letter);
    if (const char *stop = signs(at, false); stop != at)
      return stop;
    return spacesOfLines(at);
  }
};

struct O200k : Scanner {
  using Scanner::Scanner;

  /// [Upper]*[Lower]+; `at` itself if there is none.
  const char *wordWithLower(const char *at) const {
    const char *upper = run(at, Upper);
    if (const char *stop = run(upper, Lower); stop != upper)
      return stop;
    // Backtracking: the last of them that is of both kinds is the lower one.
    while (upper != at) {
      const char *last = previousCharacter(upper);
      if (classAt(last) & Lower)
        return upper;
      upper = last;
    }
    return at;
  }
  /// The letters of either alternative, with one other character before them or without.
  const char *word(const char *at) const {
    const char *next = at;
    uint8_t kind = classes[nextCodePoint(next)];
    bool prefix = !isLineEnd(*at) && !(kind & (Letter | Number));
    if (prefix)
      if (const char *stop = wordWithLower(next); stop != next)
        return stop;
    if (const char *stop = wordWithLower(at); stop != at)
      return stop;
    if (prefix)
      if (const char *stop = run(next, Upper); stop != next)
        return stop;
    return run(at, Upper);
  }
  const char *match(const char *at) const {
    if (const char *stop = word(at); stop != at)
      return contraction<true>(stop);
    if (classAt(at) & Number)
      return run(at, Number, 3);
    if (const char *stop = signs(at, true); stop != at)
      return stop;
    return spacesOfLines(at);
  }
};

template <typename Matcher> class KnownPattern : public SplitPattern {
public:
  void matches(std::string_view text,
               std::vector<std::pair<size_t, size_t>> &found) const override {
    const char *begin = text.data(), *end = begin + text.size();
    Matcher matcher(end);
    for (const char *at = begin; at != end;) {
      const char *stop = matcher.match(at);
      found.emplace_back(size_t(at - begin), size_t(stop - begin));
      at = stop;
    }
  }
  bool mayCutLines() const override { return true; }
};

class LiteralPattern : public SplitPattern {
public:
  explicit LiteralPattern(std::string literal) : literal(std::move(literal)) {}
  void matches(std::string_view text,
               std::vector<std::pair<size_t, size_t>> &found) const override {
    if (literal.empty())
      return;
    for (size_t at = 0; (at = text.find(literal, at)) != text.npos; at += literal.size())
      found.emplace_back(at, at + literal.size());
  }

private:
  std::string literal;
};

} // namespace

std::unique_ptr<SplitPattern> makeLiteralPattern(const std::string &literal) {
  return std::make_unique<LiteralPattern>(literal);
}

std::unique_ptr<SplitPattern> makePattern(const std::string &regex) {
  if (regex == patterns::gpt2)
    return std::make_unique<KnownPattern<Gpt2>>();
  if (regex == patterns::llama3)
    return std::make_unique<KnownPattern<Llama3<3>>>();
  if (regex == patterns::qwen2)
    return std::make_unique<KnownPattern<Llama3<1>>>();
  if (regex == patterns::o200k)
    return std::make_unique<KnownPattern<O200k>>();
  return makeRegexPattern(regex);
}

} // namespace meshwright::tokenizer
