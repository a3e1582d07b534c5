//===- LocationText.cpp - where in the IR, for people ------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Codegen/LocationText.h"

#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;

std::string meshwright::codegen::locationText(Location location) {
  std::string text;
  llvm::raw_string_ostream os(text);
  if (auto file = location->findInstanceOf<FileLineColLoc>()) {
    os << file.getFilename().getValue() << ":" << file.getLine() << ":" << file.getColumn();
    return text;
  }
  llvm::SetVector<StringRef> names;
  location->walk([&](Location part) {
    // A name around another is a value's, and what it names is part of the other.
    if (auto name = dyn_cast<NameLoc>(part))
      if (!name.getChildLoc()->findInstanceOf<NameLoc>())
        names.insert(name.getName());
    return WalkResult::advance();
  });
  os << llvm::join(names, ", ");
  return text;
}
