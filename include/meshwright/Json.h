//===- Json.h - JSON from files that anybody may have written ---------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_JSON_H
#define MESHWRIGHT_JSON_H

#include "llvm/ADT/Twine.h"
#include "llvm/Support/JSON.h"

namespace meshwright {

/// Deeper than any JSON of ours nests. LLVM's parser recurses, so deeper text could end the process.
inline constexpr unsigned jsonDepth = 256;

/// Where `text` nests brackets of the kinds `open` and `close` deeper than `limit`, outside of
/// strings, or npos.
inline size_t beyondDepth(llvm::StringRef text, unsigned limit = jsonDepth,
                          llvm::StringRef open = "[{", llvm::StringRef close = "]}") {
  unsigned depth = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '"')
      while (++i < text.size() && text[i] != '"')
        i += text[i] == '\\';
    else if (open.contains(text[i]) && ++depth > limit)
      return i;
    else if (close.contains(text[i]) && depth)
      --depth;
  }
  return llvm::StringRef::npos;
}

/// llvm::json::parse for text that is not known to be harmless.
inline llvm::Expected<llvm::json::Value> parseJson(llvm::StringRef text) {
  if (beyondDepth(text) != llvm::StringRef::npos)
    return llvm::createStringError("arrays and objects are nested more than " +
                                   llvm::Twine(jsonDepth) + " deep");
  return llvm::json::parse(text);
}

} // namespace meshwright

#endif // MESHWRIGHT_JSON_H
