//===- TextStream.h - text as tokens come ---------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_RUNTIME_COMMON_TEXTSTREAM_H
#define MESHWRIGHT_RUNTIME_COMMON_TEXTSTREAM_H

#include <string>
#include <vector>

namespace meshwright {

/// Gives out a text that grows, as far as it will stay what it is: not the first bytes of a
/// character, and nothing that may be the begin of a stop string.
class TextStream {
public:
  explicit TextStream(std::vector<std::string> stops) : stops(std::move(stops)) {}

  /// What is new of `text`, all of the text so far, that can be given out. At a stop string `ended`
  /// becomes true, and nothing of it or behind it is given out.
  std::string next(const std::string &text);
  /// What was held back.
  std::string rest(const std::string &text);
  bool ended = false;

private:
  std::vector<std::string> stops;
  size_t given = 0;
};

} // namespace meshwright

#endif // MESHWRIGHT_RUNTIME_COMMON_TEXTSTREAM_H
