//===- PowerSgd.h - low-rank approximations of gradients --------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_LIB_TRAIN_POWERSGD_H
#define MESHWRIGHT_LIB_TRAIN_POWERSGD_H

#include "Train/Train.h"

namespace meshwright::train {

/// Whether two factors of `rank` are less than half of a matrix, which `parameter` is in each layer.
bool isWorthFactors(VariableOp parameter, int64_t rank);

/// The shape of a parameter's factor.
mlir::RankedTensorType factorType(VariableOp parameter, int64_t rank);

/// The sum of blocks, approximated, and what the states become.
struct LowRank {
  mlir::Value gradient, residual, factor;
};

/// The sum of `blocks` of the gradient of `parameter` and of `residual`, approximated from `factor`.
LowRank approximate(VariableOp parameter, mlir::Value blocks, mlir::Value residual, mlir::Value factor,
                    mlir::OpBuilder &builder);

} // namespace meshwright::train

#endif // MESHWRIGHT_LIB_TRAIN_POWERSGD_H
