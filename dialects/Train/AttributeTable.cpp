//===- AttributeTable.cpp - refuses attributes that no table has ------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "meshwright/AttributeTable.h"
#include "meshwright/runtime/Suggestion.h"

using namespace mlir;
using namespace meshwright;

static std::string nameOf(Holder holder) {
  return holder == Holder::Op ? "" : holder == Holder::Argument ? "of an argument " : "of a result ";
}

LogicalResult meshwright::verifyAttribute(ArrayRef<KnownAttribute> known, Operation *op,
                                          Holder holder, NamedAttribute attribute) {
  StringRef name = attribute.getName();
  const auto *found = llvm::find_if(known, [&](const KnownAttribute &row) { return row.name == name; });
  auto error = [&] { return op->emitOpError("attribute '") << name << "' " << nameOf(holder); };
  if (found == known.end()) {
    std::vector<std::string_view> names;
    for (const KnownAttribute &row : known)
      names.push_back(row.name);
    std::string meant = nearestName(name, names);
    InFlightDiagnostic diagnostic = error() << "is unknown";
    if (!meant.empty())
      diagnostic << "; did you mean '" << meant << "'?";
    return diagnostic;
  }
  if (!found->type.fits(attribute.getValue()))
    return error() << "is " << attribute.getValue() << "; expected " << found->type.text;
  if (!found->place.fits(op, holder))
    return error() << "belongs on " << found->place.text;
  return success();
}
