//===- LocationText.h - where in the IR, for people --------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_CODEGEN_LOCATIONTEXT_H
#define MESHWRIGHT_CODEGEN_LOCATIONTEXT_H

#include "mlir/IR/Location.h"

#include <string>

namespace meshwright::codegen {

/// "file:line:column", or the names that an import gave, e.g. of the parameter or the
/// layer an op is made from.
std::string locationText(mlir::Location location);

} // namespace meshwright::codegen

#endif // MESHWRIGHT_CODEGEN_LOCATIONTEXT_H
