//===- TopK.h - the largest elements of gradients ---------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_LIB_TRAIN_TOPK_H
#define MESHWRIGHT_LIB_TRAIN_TOPK_H

#include "Train/Train.h"

namespace meshwright::train {

/// Whether the elements of `density` with their columns are less than a matrix, which `parameter` is in each layer.
bool isWorthIds(VariableOp parameter, double density);

/// The sum of blocks, of each its largest elements, and what the residual becomes.
struct Sparse {
  mlir::Value gradient, residual;
};

/// The sum of the largest elements of each block of `blocks` plus `residual`, for the gradient of `parameter`.
Sparse largest(VariableOp parameter, mlir::Value blocks, mlir::Value residual, double density, mlir::OpBuilder &builder);

} // namespace meshwright::train

#endif // MESHWRIGHT_LIB_TRAIN_TOPK_H
