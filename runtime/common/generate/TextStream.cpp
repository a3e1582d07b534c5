//===- TextStream.cpp - text as tokens come -------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "common/generate/TextStream.h"

#include <algorithm>
#include <cstdint>

using namespace meshwright;

/// Where an incomplete character at the end of `text` begins: its first bytes, or the U+FFFD that
/// tokenizers write for them.
static size_t completeSize(const std::string &text) {
  const std::string replacement = "\xEF\xBF\xBD";
  size_t size = text.size();
  while (size >= 3 && text.compare(size - 3, 3, replacement) == 0)
    size -= 3;
  if (size < text.size())
    return size;
  for (size_t back = 1; back <= 3 && back <= size; ++back) {
    uint8_t byte = uint8_t(text[size - back]);
    if (byte < 0x80)
      return size;
    if (byte >= 0xC0) {
      size_t length = byte >= 0xF0 ? 4 : byte >= 0xE0 ? 3 : 2;
      return back < length ? size - back : size;
    }
  }
  return size;
}

std::string TextStream::next(const std::string &text) {
  size_t end = completeSize(text);
  for (const std::string &stop : stops)
    if (size_t at = text.find(stop, given); at != text.npos) {
      end = std::min(end, at);
      ended = true;
    }
  for (const std::string &stop : stops)
    for (size_t part = std::min(stop.size() - 1, text.size()); part > 0 && !ended; --part)
      if (text.compare(text.size() - part, part, stop, 0, part) == 0)
        end = std::min(end, text.size() - part);
  if (end <= given)
    return "";
  std::string fresh = text.substr(given, end - given);
  given = end;
  return fresh;
}

std::string TextStream::rest(const std::string &text) {
  std::string held = ended || given >= text.size() ? "" : text.substr(given);
  given = text.size();
  return held;
}
