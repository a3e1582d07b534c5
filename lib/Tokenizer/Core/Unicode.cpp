//===- Unicode.cpp - UTF-8 and classes of characters -------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Tokenizer/Core/Unicode.h"

#include <cstring>
#include <memory>
#include <utf8proc.h>

namespace meshwright::tokenizer {

static bool isWhiteSpace(uint32_t c) {
  return (c >= 9 && c <= 13) || c == 0x20 || c == 0x85 || c == 0xa0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 || c == 0x202f || c == 0x205f ||
         c == 0x3000;
}

/// Whether NFC replaces the character where it is alone.
static bool isReplaced(uint32_t c) {
  const utf8proc_property_t *property = utf8proc_get_property(int32_t(c));
  if (property->decomp_type != 0 || property->decomp_seqindex == UINT16_MAX)
    return false;
  int32_t buffer[8];
  utf8proc_ssize_t size =
      utf8proc_decompose_char(int32_t(c), buffer, 8, UTF8PROC_DECOMPOSE, nullptr);
  if (size < 1 || size > 8)
    return true;
  size =
      utf8proc_normalize_utf32(buffer, size, utf8proc_option_t(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
  return size != 1 || buffer[0] != int32_t(c);
}

static uint8_t classOf(uint32_t c) {
  uint8_t result = isWhiteSpace(c) ? Space : 0;
  switch (utf8proc_category(int32_t(c))) {
  case UTF8PROC_CATEGORY_LU:
  case UTF8PROC_CATEGORY_LT:
    result |= Letter | Upper;
    break;
  case UTF8PROC_CATEGORY_LL:
    result |= Letter | Lower;
    break;
  case UTF8PROC_CATEGORY_LM:
  case UTF8PROC_CATEGORY_LO:
    result |= Letter | Upper | Lower;
    break;
  case UTF8PROC_CATEGORY_MN:
  case UTF8PROC_CATEGORY_MC:
  case UTF8PROC_CATEGORY_ME:
    result |= Mark | Upper | Lower | MayCompose;
    break;
  case UTF8PROC_CATEGORY_ND:
  case UTF8PROC_CATEGORY_NL:
  case UTF8PROC_CATEGORY_NO:
    result |= Number;
    break;
  case UTF8PROC_CATEGORY_PC:
  case UTF8PROC_CATEGORY_PD:
  case UTF8PROC_CATEGORY_PS:
  case UTF8PROC_CATEGORY_PE:
  case UTF8PROC_CATEGORY_PI:
  case UTF8PROC_CATEGORY_PF:
  case UTF8PROC_CATEGORY_PO:
    result |= Punctuation;
    break;
  default:
    break;
  }
  // Besides marks only Hangul's vowels and final consonants join what is before them.
  if ((c >= 0x1100 && c <= 0x11ff) || isReplaced(c))
    result |= MayCompose;
  return result;
}

const uint8_t *charClasses() {
  static const std::unique_ptr<uint8_t[]> classes = [] {
    auto result = std::make_unique<uint8_t[]>(codePoints);
    for (uint32_t c = 0; c < codePoints; ++c)
      result[c] = classOf(c);
    return result;
  }();
  return classes.get();
}

void appendCodePoint(uint32_t value, std::string &to) {
  utf8proc_uint8_t bytes[4];
  to.append(reinterpret_cast<const char *>(bytes),
            size_t(utf8proc_encode_char(int32_t(value), bytes)));
}

/// How many bytes from `at` on are one character; 0 if they are none, and `begun` is then how many
/// could begin one, at least 1.
static size_t characterSize(const uint8_t *at, size_t left, size_t &begun) {
  uint8_t first = at[0];
  begun = 1;
  if (first < 0x80)
    return 1;
  if (first < 0xc2 || first > 0xf4)
    return 0;
  size_t size = first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
  // No overlong forms, no surrogates, nothing past U+10FFFF.
  uint8_t least = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
  uint8_t most = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
  for (; begun < size; ++begun) {
    if (begun >= left || at[begun] < least || at[begun] > most)
      return 0;
    least = 0x80;
    most = 0xbf;
  }
  return size;
}

std::string_view repairUtf8(std::string_view text, std::string &storage) {
  const auto *bytes = reinterpret_cast<const uint8_t *>(text.data());
  size_t done = 0, begun = 0;
  bool changed = false;
  for (size_t i = 0; i < text.size();) {
    uint64_t word;
    if (i + sizeof(word) <= text.size()) {
      std::memcpy(&word, bytes + i, sizeof(word));
      if (!(word & 0x8080808080808080u)) {
        i += sizeof(word);
        continue;
      }
    }
    if (size_t size = characterSize(bytes + i, text.size() - i, begun)) {
      i += size;
      continue;
    }
    if (!changed)
      storage.clear();
    changed = true;
    storage.append(text, done, i - done).append("\xef\xbf\xbd");
    i += begun;
    done = i;
  }
  if (!changed)
    return text;
  storage.append(text, done);
  return storage;
}

} // namespace meshwright::tokenizer
