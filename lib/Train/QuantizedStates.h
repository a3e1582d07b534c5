//===- QuantizedStates.h - blocks of 8-bit optimizer states -----------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// Blocks have to be the same on every mesh, so they are parts of rows of the parameter, of one length: a
// device that has some rows, or a part of them that is a whole number of blocks, needs nothing of others.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_LIB_TRAIN_QUANTIZEDSTATES_H
#define MESHWRIGHT_LIB_TRAIN_QUANTIZEDSTATES_H

#include "Train/Train.h"

namespace meshwright::train {

/// How many blocks a row of `parameter` has, along its last dimension; 0 where states stay in f32: where a
/// tensor of a file has too few elements, or rows divide only into blocks that are too short.
int64_t quantizedBlocks(VariableOp parameter);

/// The type of the largest magnitudes of the blocks.
mlir::RankedTensorType blockType(VariableOp parameter, int64_t blocks);

} // namespace meshwright::train

#endif // MESHWRIGHT_LIB_TRAIN_QUANTIZEDSTATES_H
