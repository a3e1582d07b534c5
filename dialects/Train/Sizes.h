//===- Sizes.h - the sizes that a module is written for ---------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_TRAIN_SIZES_H
#define MESHWRIGHT_TRAIN_SIZES_H

#include "Train/Train.h"

namespace meshwright::train {

/// Checks what `module` says of its batch, its microbatches and its sequences, which the runtime reads
/// data by, against the shape of an input tokens of `program`, [microbatches, sequences, positions].
/// The sequences may be a part of all, of which `ranks` at most have one.
mlir::LogicalResult verifySizes(mlir::ModuleOp module, mlir::Operation *program,
                                llvm::StringRef input, llvm::ArrayRef<int64_t> tokens, int64_t ranks = 1);

} // namespace meshwright::train

#endif // MESHWRIGHT_TRAIN_SIZES_H
