//===- NonFinite.h - numbers of Python that JSON does not have ---------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// Python's json module writes and reads Infinity, -Infinity and NaN, so files of configurations may
// have them. For the compiler and executables alike, so without LLVM.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_RUNTIME_NONFINITE_H
#define MESHWRIGHT_RUNTIME_NONFINITE_H

#include <initializer_list>
#include <string>
#include <string_view>

namespace meshwright {

/// The one of Infinity, -Infinity and NaN that begins at `at` in `text`, or an empty text.
inline std::string_view nonFiniteAt(std::string_view text, size_t at) {
  for (std::string_view word : {"Infinity", "-Infinity", "NaN"})
    if (text.substr(at, word.size()) == word)
      return word;
  return {};
}

/// JSON as long as `text`, with 0 in place of each of them.
inline std::string withoutNonFinite(std::string text) {
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '"')
      while (++i < text.size() && text[i] != '"')
        i += text[i] == '\\';
    else if (std::string_view word = nonFiniteAt(text, i); !word.empty())
      text.replace(i, word.size(), "0" + std::string(word.size() - 1, ' '));
  }
  return text;
}

} // namespace meshwright

#endif // MESHWRIGHT_RUNTIME_NONFINITE_H
