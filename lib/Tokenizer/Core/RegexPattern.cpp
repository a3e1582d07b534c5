//===- RegexPattern.cpp - split patterns by PCRE2 ------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Tokenizer/Core/Error.h"
#include "Tokenizer/Core/SplitPattern.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

namespace meshwright::tokenizer {

/// The pattern as PCRE2 means what Oniguruma does, which tokenizer.json is written for: \s without
/// U+180E, \w with marks, all connectors, and what Oniguruma has from Latin-1.
static std::string translated(const std::string &regex) {
  static constexpr const char *space =
      R"(\t-\r \x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000})";
  static constexpr const char *word =
      R"(\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\x{b2}\x{b3}\x{b9}\x{bc}-\x{be})";
  std::string result;
  bool inClass = false;
  for (size_t i = 0; i < regex.size(); ++i) {
    char c = regex[i];
    if (c != '\\' || i + 1 == regex.size()) {
      inClass = c == '[' ? true : c == ']' ? false : inClass;
      result += c;
      continue;
    }
    char kind = regex[++i];
    const char *set = kind == 's' || kind == 'S'   ? space
                      : kind == 'w' || kind == 'W' ? word
                                                   : nullptr;
    bool negated = kind == 'S' || kind == 'W';
    if (!set)
      result += {'\\', kind};
    else if (!inClass)
      result += std::string(negated ? "[^" : "[") + set + "]";
    else if (!negated)
      result += set;
    else
      fail("the pattern ", regex, " has \\", std::string(1, kind),
           " in brackets, which is not supported: write what it stands for as [^...]");
  }
  return result;
}

namespace {
class RegexPattern : public SplitPattern {
public:
  explicit RegexPattern(const std::string &regex) {
    std::string pattern = translated(regex);
    int error = 0;
    size_t at = 0;
    code.reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(),
                             PCRE2_UTF | PCRE2_UCP, &error, &at, nullptr));
    if (!code) {
      PCRE2_UCHAR message[256] = {};
      pcre2_get_error_message(error, message, sizeof(message));
      fail("the pattern ", regex,
           " is none that PCRE2 knows: ", reinterpret_cast<const char *>(message));
    }
    pcre2_jit_compile(code.get(), PCRE2_JIT_COMPLETE); // Slower without, where there is none.
  }

  void matches(std::string_view text,
               std::vector<std::pair<size_t, size_t>> &found) const override {
    std::unique_ptr<pcre2_match_data, Free> match(
        pcre2_match_data_create_from_pattern(code.get(), nullptr));
    auto subject = reinterpret_cast<PCRE2_SPTR>(text.data());
    const size_t *place = pcre2_get_ovector_pointer(match.get());
    for (size_t at = 0; at < text.size();) {
      int result = pcre2_match(code.get(), subject, text.size(), at, PCRE2_NO_UTF_CHECK,
                               match.get(), nullptr);
      if (result == PCRE2_ERROR_NOMATCH)
        return;
      if (result < 0) {
        PCRE2_UCHAR message[256] = {};
        pcre2_get_error_message(result, message, sizeof(message));
        fail("the tokenizer's pattern cannot be matched in text of ", text.size(),
             " bytes: ", reinterpret_cast<const char *>(message));
      }
      found.emplace_back(place[0], place[1]);
      at = place[1];
      if (place[1] == place[0]) // The next match may begin a character on.
        do
          ++at;
        while (at < text.size() && (uint8_t(text[at]) & 0xc0) == 0x80);
    }
  }

private:
  struct Free {
    void operator()(pcre2_code *it) const { pcre2_code_free(it); }
    void operator()(pcre2_match_data *it) const { pcre2_match_data_free(it); }
  };
  std::unique_ptr<pcre2_code, Free> code;
};
} // namespace

std::unique_ptr<SplitPattern> makeRegexPattern(const std::string &regex) {
  return std::make_unique<RegexPattern>(regex);
}

} // namespace meshwright::tokenizer
