//===- IrText.h - text of IR that anybody may have written ----------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_IRTEXT_H
#define MESHWRIGHT_IRTEXT_H

#include "meshwright/Spelling.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Error.h"

#include <optional>

namespace meshwright {

/// Where text would end MLIR's parser, and why.
struct TextFault {
  size_t offset;
  std::string what;
};

/// The first place of `text` at which MLIR's parser would end the process: it recurses as brackets
/// nest and at each sign of an affine expression, and makes a place for each result of an op up to
/// the one that is named, as in %5#2147483648.
inline std::optional<TextFault> findTextFault(llvm::StringRef text) {
  constexpr unsigned depth = 512, digits = 5;
  // How many signs an expression has so far, for each bracket that is open.
  llvm::SmallVector<unsigned> signs{0};
  for (size_t i = 0; i < text.size(); ++i) {
    llvm::StringRef rest = text.substr(i);
    if (rest.starts_with("//")) {
      i += rest.take_until([](char c) { return c == '\n'; }).size();
    } else if (rest[0] == '"') {
      while (++i < text.size() && text[i] != '"' && text[i] != '\n')
        i += text[i] == '\\';
      signs.back() = 0;
    } else if (rest.starts_with("->") || rest.starts_with(">=") || rest.starts_with("<=")) {
      ++i;
    } else if (llvm::StringRef("([{<").contains(rest[0])) {
      signs.push_back(0);
      if (signs.size() > depth + 1)
        return TextFault{i, "brackets are nested more than " + std::to_string(depth) + " deep"};
    } else if (llvm::StringRef(")]}>").contains(rest[0])) {
      if (signs.size() > 1)
        signs.pop_back();
    } else if (llvm::StringRef("+-").contains(rest[0])) {
      if (++signs.back() > depth)
        return TextFault{i, "an expression has more than " + std::to_string(depth) + " signs"};
    } else if (llvm::StringRef(",=:%@").contains(rest[0])) {
      signs.back() = 0;
    } else if (rest[0] == '#') {
      llvm::StringRef number = rest.drop_front().take_while(llvm::isDigit);
      llvm::StringRef name = text.take_front(i).rtrim(
          "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_$.-");
      if (number.size() > digits && name.ends_with("%"))
        return TextFault{i, ("no op has a result #" + number).str()};
    }
  }
  return std::nullopt;
}

/// An error if the text of the file `path` would end MLIR's parser or has old spellings, which it
/// would ignore.
inline llvm::Error checkIrText(const llvm::Twine &path, llvm::StringRef text) {
  if (llvm::Error error = checkSpelling(path, text))
    return error;
  if (std::optional<TextFault> fault = findTextFault(text))
    return llvm::createStringError("'" + path + "': " + fault->what);
  return llvm::Error::success();
}

} // namespace meshwright

#endif // MESHWRIGHT_IRTEXT_H
