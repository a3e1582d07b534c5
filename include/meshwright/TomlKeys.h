//===- TomlKeys.h - keys of TOML that anybody may have written --------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_TOMLKEYS_H
#define MESHWRIGHT_TOMLKEYS_H

#include "llvm/ADT/StringRef.h"

#include <tuple>

namespace meshwright {

/// The line whose keys have more parts than those of any recipe or settings, or 0. The parser makes a
/// table of each part, and destroys them by recursion.
inline unsigned lineOfDeepKey(llvm::StringRef text) {
  constexpr unsigned most = 64;
  unsigned line = 0;
  while (!text.empty()) {
    llvm::StringRef rest;
    std::tie(rest, text) = text.split('\n');
    ++line;
    unsigned dots = 0;
    char quote = 0;
    for (char c : rest) {
      if (quote ? c == quote : c == '"' || c == '\'')
        quote = quote ? 0 : c;
      else if (!quote && c == '#')
        break;
      else if (!quote && c == '.' && ++dots > most)
        return line;
    }
  }
  return 0;
}

} // namespace meshwright

#endif // MESHWRIGHT_TOMLKEYS_H
