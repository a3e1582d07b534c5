//===- LocationText.h - where in the IR, for people --------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_LOCATIONTEXT_H
#define MESHWRIGHT_LOCATIONTEXT_H

#include "mlir/IR/Location.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"

#include <string>

namespace meshwright::codegen {

/// "file:line:column", or the names that an import gave, e.g. of the parameter or the
/// layer an op is made from.
inline std::string locationText(mlir::Location location) {
  std::string text;
  llvm::raw_string_ostream os(text);
  if (auto file = location->findInstanceOf<mlir::FileLineColLoc>()) {
    os << file.getFilename().getValue() << ":" << file.getLine() << ":" << file.getColumn();
    return text;
  }
  llvm::SetVector<llvm::StringRef> names;
  location->walk([&](mlir::Location part) {
    // A name around another is a value's, and what it names is part of the other.
    if (auto name = llvm::dyn_cast<mlir::NameLoc>(part))
      if (!name.getChildLoc()->findInstanceOf<mlir::NameLoc>())
        names.insert(name.getName());
    return mlir::WalkResult::advance();
  });
  os << llvm::join(names, ", ");
  return text;
}

} // namespace meshwright::codegen

#endif // MESHWRIGHT_LOCATIONTEXT_H
