//===- Text.h - StableHLO as JAX prints it -----------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_FRONTEND_STABLEHLO_TEXT_H
#define MESHWRIGHT_FRONTEND_STABLEHLO_TEXT_H

#include "mlir/IR/MLIRContext.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

#include <string>

namespace meshwright::hlo {

/// Makes MLIR's parser read StableHLO, CHLO and, to refuse it, Shardy: any op in the generic form,
/// and in the pretty form those that the import knows. Ops stay unregistered. In both forms
/// attributes have StableHLO's names; dimension numbers are dictionaries of arrays, enumerations
/// are strings.
void registerText(mlir::MLIRContext &context);

/// What an error says behind the name of an op that cannot be imported: what would work.
std::string refusalOf(llvm::StringRef name);

} // namespace meshwright::hlo

#endif // MESHWRIGHT_FRONTEND_STABLEHLO_TEXT_H
