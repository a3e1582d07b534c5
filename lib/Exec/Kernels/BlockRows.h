//===- BlockRows.h - blocks of 8-bit states as rows -------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_LIB_EXEC_BLOCKROWS_H
#define MESHWRIGHT_LIB_EXEC_BLOCKROWS_H

#include "Train/Train.h"

namespace meshwright::exec {

/// Gives ops on several blocks per row a row for each block, and element-wise ops that read what they make the same
/// shape. So an update, what reads its states and what writes them are one kernel, that reduces rows. Rows of which some elements are given
/// are added as a list of elements.
void makeRowsOfBlocks(mlir::Block &block);

} // namespace meshwright::exec

#endif // MESHWRIGHT_LIB_EXEC_BLOCKROWS_H
