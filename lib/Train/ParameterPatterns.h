//===- ParameterPatterns.h - parameters by their names in files -------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_TRAIN_PARAMETERPATTERNS_H
#define MESHWRIGHT_TRAIN_PARAMETERPATTERNS_H

#include "Train/Train.h"

namespace meshwright::train {

/// The parameters of `module` whose tensors' names in files match `pattern`, which `flag` gave.
/// Emits an error and fails where the pattern is malformed or matches some of the tensors that one
/// parameter is stored in only.
mlir::FailureOr<llvm::SmallVector<VariableOp>>
parametersMatching(mlir::ModuleOp module, llvm::StringRef pattern, llvm::StringRef flag);

/// An error about a pattern of `flag`.
mlir::InFlightDiagnostic emitPatternError(mlir::ModuleOp module, llvm::StringRef pattern,
                                          llvm::StringRef flag);

/// Says that no parameter matches, and which there are, by the names of their first tensors.
mlir::LogicalResult emitNoMatch(mlir::ModuleOp module, llvm::StringRef pattern,
                                llvm::StringRef flag);

} // namespace meshwright::train

#endif // MESHWRIGHT_TRAIN_PARAMETERPATTERNS_H
