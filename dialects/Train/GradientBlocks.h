//===- GradientBlocks.h - states of gradients that are compressed ------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// With gradient compression the gradient of a matrix [m, n], or [layers, m, n], is a sum of blocks
// [blocks, m, n], or [layers, blocks, m, n]: block d is that of the d-th part of each microbatch. Data are read
// so that these parts together are the d-th part of the batch. States of compression are no rows of an optimizer.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_TRAIN_GRADIENTBLOCKS_H
#define MESHWRIGHT_TRAIN_GRADIENTBLOCKS_H

#include "Train/Train.h"
#include "meshwright/GradientCompression.h"

namespace meshwright::train {

/// What compression has left out of each block's gradient so far: of the shape of the blocks, in f32.
inline constexpr llvm::StringLiteral residualRole = gradientResidualState;
/// With signs, what they have left out of the sum of blocks so far: of the parameter's shape, in f32.
inline constexpr llvm::StringLiteral serverResidualRole = gradientServerResidualState;
/// The right factor of the last approximation, with which the next one begins: [layers, n, rank], in f32.
inline constexpr llvm::StringLiteral factorRole = gradientFactorState;

/// Of a module: the number of blocks.
inline constexpr llvm::StringLiteral gradientBlocksAttr = "train.gradient_blocks";

inline bool isOfCompression(VariableOp variable) {
  return variable.getRole() == residualRole || variable.getRole() == serverResidualRole || variable.getRole() == factorRole;
}

} // namespace meshwright::train

#endif // MESHWRIGHT_TRAIN_GRADIENTBLOCKS_H
