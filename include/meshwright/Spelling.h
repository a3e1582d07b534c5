//===- Spelling.h - words of IR that have other names now -----------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_SPELLING_H
#define MESHWRIGHT_SPELLING_H

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Error.h"

namespace meshwright {

struct Spelling {
  llvm::StringLiteral before, now;
};

/// Attributes would be ignored under their old names, so text that has one is refused.
inline constexpr Spelling oldSpellings[] = {{"meshwright.stage", "meshwright.phase"},
                                            {"train.part_begin", "train.part_offset"},
                                            {"dist.at", "dist.coordinates"},
                                            {"dist.begin", "dist.offset"},
                                            {"exec.start", "exec.async_token"},
                                            {"exec.store_begin", "exec.store_offset"},
                                            {"exec.tied", "exec.inplace_aliases"},
                                            {"exec.value", "exec.value_id"},
                                            {"head_begin", "head_offset"},
                                            {"begin_dims", "offset_dims"},
                                            {"begins(", "offsets("},
                                            {"begin %", "offset %"},
                                            {"begin =", "offset ="}};

/// Where `text` has an array attribute of elements without a width, on which MLIR's parser ends: of
/// index, or of a type by another name; npos if it has none.
inline size_t findUnsizedArray(llvm::StringRef text) {
  for (size_t at = text.find("array"); at != llvm::StringRef::npos; at = text.find("array", at + 1)) {
    llvm::StringRef rest = text.substr(at + 5).ltrim();
    if (!rest.consume_front("<"))
      continue;
    rest = rest.ltrim();
    if (rest.starts_with("index") || rest.starts_with("!"))
      return at;
  }
  return llvm::StringRef::npos;
}

/// An error that names the first old spelling in the IR `text` of the file `path`, or what MLIR's parser
/// cannot read, if any.
inline llvm::Error checkSpelling(const llvm::Twine &path, llvm::StringRef text) {
  if (size_t at = findUnsizedArray(text); at != llvm::StringRef::npos)
    return llvm::createStringError("'" + path + "':" + llvm::Twine(text.take_front(at).count('\n') + 1) +
                                   ": arrays are of numbers with a width; write array<i64: ..>");
  auto isWord = [&](size_t at) {
    return at < text.size() &&
           (llvm::isAlnum(text[at]) || llvm::StringRef("_.@%").contains(text[at]));
  };
  for (const Spelling &spelling : oldSpellings)
    for (size_t at = text.find(spelling.before); at != llvm::StringRef::npos;
         at = text.find(spelling.before, at + 1))
      if (size_t end = at + spelling.before.size();
          !isWord(at - 1) && !(isWord(end) && llvm::isAlnum(spelling.before.back())))
        return llvm::createStringError("'" + path +
                                       "':" + llvm::Twine(text.take_front(at).count('\n') + 1) +
                                       ": '" + spelling.before + "' is called '" + spelling.now +
                                       "' now; rename it, or compile from the model");
  return llvm::Error::success();
}

} // namespace meshwright

#endif // MESHWRIGHT_SPELLING_H
