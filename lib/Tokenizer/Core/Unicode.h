//===- Unicode.h - UTF-8 and classes of characters ---------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_TOKENIZER_CORE_UNICODE_H
#define MESHWRIGHT_TOKENIZER_CORE_UNICODE_H

#include <cstdint>
#include <string>
#include <string_view>

namespace meshwright::tokenizer {

/// What split patterns ask of a character, as bits.
enum CharClass : uint8_t {
  Letter = 1,       ///< \p{L}
  Number = 2,       ///< \p{N}
  Space = 4,        ///< the property White_Space, what \s is in Oniguruma and in Rust
  Mark = 8,         ///< \p{M}
  Upper = 16,       ///< [\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]
  Lower = 32,       ///< [\p{Ll}\p{Lm}\p{Lo}\p{M}]
  Punctuation = 64, ///< \p{P}
  MayCompose = 128  ///< NFC may change it, or what is before it
};

/// The classes of every code point, as utf8proc's version of Unicode has them.
const uint8_t *charClasses();

inline constexpr uint32_t codePoints = 0x110000;

/// The code point at `at`, which is moved behind it. The text must be UTF-8.
inline uint32_t nextCodePoint(const char *&at) {
  auto byte = [&] { return uint32_t(uint8_t(*at++)); };
  uint32_t first = byte();
  if (first < 0x80)
    return first;
  uint32_t value = first & (first < 0xe0 ? 0x1f : first < 0xf0 ? 0x0f : 0x07);
  for (int more = first < 0xe0 ? 1 : first < 0xf0 ? 2 : 3; more > 0; --more)
    value = value << 6 | (byte() & 0x3f);
  return value;
}

/// The start of the character before `at`, which must not be the first. The text must be UTF-8.
inline const char *previousCharacter(const char *at) {
  do
    --at;
  while ((uint8_t(*at) & 0xc0) == 0x80);
  return at;
}

void appendCodePoint(uint32_t value, std::string &to);

/// The text itself if it is UTF-8, or else a copy in `storage` in which each longest part that
/// could begin a character is U+FFFD: what Python's bytes.decode("utf-8", "replace") gives.
std::string_view repairUtf8(std::string_view text, std::string &storage);

} // namespace meshwright::tokenizer

#endif // MESHWRIGHT_TOKENIZER_CORE_UNICODE_H
