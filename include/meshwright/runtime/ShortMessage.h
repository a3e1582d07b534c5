//===- ShortMessage.h - messages that quote what anybody may have written ---===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// Shared by the compiler and the runtime, so it needs the standard library only.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_RUNTIME_SHORTMESSAGE_H
#define MESHWRIGHT_RUNTIME_SHORTMESSAGE_H

#include <cctype>
#include <string>
#include <string_view>

namespace meshwright {

/// So many bytes of a value are quoted in a message.
inline constexpr size_t mostQuoted = 80;
/// So many bytes of a message are printed, whatever it is about.
inline constexpr size_t mostOfMessage = 32768;

/// The first `count` bytes of `text`, or up to three fewer: no character of UTF-8 is cut.
inline std::string_view firstBytes(std::string_view text, size_t count) {
  while (count > 0 && count < text.size() && (text[count] & 0xC0) == 0x80)
    --count;
  return text.substr(0, count);
}

/// Whether `text` may be a path, of which a part names no file. 4096 is Linux's PATH_MAX.
inline bool mayBePath(std::string_view text) {
  return text.size() <= 4096 && text.find('/') != text.npos && text.find(' ') == text.npos;
}

/// `message` with at most `mostQuoted` bytes of each value that it quotes within a line, in ' or ".
inline std::string shortMessage(std::string_view message) {
  auto isWord = [&](size_t at) {
    return at < message.size() && std::isalnum(static_cast<unsigned char>(message[at]));
  };
  std::string result;
  size_t done = 0, noEnd[2] = {0, 0}; // Of either quote: none ends before there.
  for (size_t i = 0; i < message.size(); ++i) {
    char quote = message[i];
    // After a letter it is an apostrophe.
    if ((quote != '\'' && quote != '"') || (i > 0 && isWord(i - 1)) || i < noEnd[quote == '"'])
      continue;
    size_t end = i + 1;
    while (end < message.size() && message[end] != '\n' &&
           (message[end] != quote || isWord(end + 1)))
      ++end;
    if (end == message.size() || message[end] == '\n') {
      noEnd[quote == '"'] = end;
      continue;
    }
    std::string_view value = message.substr(i + 1, end - i - 1);
    if (value.size() > mostQuoted && !mayBePath(value)) {
      result += message.substr(done, i + 1 - done);
      result += firstBytes(value, mostQuoted);
      result += std::string("...") + quote + " (" + std::to_string(value.size()) + " bytes)";
      done = end + 1;
    }
    i = end;
  }
  result += message.substr(done);
  if (result.size() <= mostOfMessage)
    return result;
  size_t end = result.size() - 1024;
  while (end < result.size() && (result[end] & 0xC0) == 0x80)
    ++end;
  std::string_view start = firstBytes(result, mostOfMessage - 2048);
  return std::string(start) + " ... (" + std::to_string(end - start.size()) +
         " bytes left out) ... " + result.substr(end);
}

} // namespace meshwright

#endif // MESHWRIGHT_RUNTIME_SHORTMESSAGE_H
