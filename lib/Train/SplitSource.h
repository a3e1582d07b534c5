//===- SplitSource.h - what a decoder computes once for its source ----------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_LIB_TRAIN_SPLITSOURCE_H
#define MESHWRIGHT_LIB_TRAIN_SPLITSOURCE_H

#include "Train/Train.h"

namespace meshwright::train {

/// Moves what @loss, and functions that it repeats, compute of the inputs `source` and `source_lengths`
/// alone into a function @encode: an encoder, and the keys and values that a decoder's attention makes of
/// what it gives. Variables `source.N` keep what the rest of @loss reads of this. Without an input
/// `source` nothing changes.
mlir::LogicalResult splitSource(mlir::ModuleOp module, mlir::func::FuncOp loss);

} // namespace meshwright::train

#endif // MESHWRIGHT_LIB_TRAIN_SPLITSOURCE_H
