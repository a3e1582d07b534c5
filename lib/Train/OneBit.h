//===- OneBit.h - signs of gradients ------------------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_LIB_TRAIN_ONEBIT_H
#define MESHWRIGHT_LIB_TRAIN_ONEBIT_H

#include "Train/Train.h"

namespace meshwright::train {

/// Whether rows of a matrix, which `parameter` is in each layer, are whole bytes of signs.
bool hasRowsOfSigns(VariableOp parameter);

/// An average of gradients, which a step moves by its (1 - decay)-th part; null where there is none.
struct AverageOfGradients {
  mlir::Value value, decay;
};

/// The gradient, and what the residuals become.
struct OneBit {
  mlir::Value gradient, residual, serverResidual;
};

/// The gradient of `parameter` with which `average` becomes the one of signs, or without an average the sum of signs of `blocks`.
OneBit signsOf(VariableOp parameter, mlir::Value blocks, mlir::Value residual, mlir::Value serverResidual,
               AverageOfGradients average, mlir::OpBuilder &builder);

} // namespace meshwright::train

#endif // MESHWRIGHT_LIB_TRAIN_ONEBIT_H
