//===- MeanSquares.h - directions from averages of mean squares -------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_LIB_TRAIN_MEANSQUARES_H
#define MESHWRIGHT_LIB_TRAIN_MEANSQUARES_H

#include "Train/Optimizer.h"
#include "Train/Train.h"

namespace meshwright::train {

/// How many of the first dimensions of a parameter count matrices: layers, experts and heads that have
/// tensors of their own.
int64_t countsOf(VariableOp parameter);
/// Whether it is one matrix in each layer.
bool isOneMatrix(VariableOp parameter);

/// The averages of `optimizer` that `parameter` has.
llvm::SmallVector<MeanSquare> meansOf(const Optimizer &optimizer, VariableOp parameter);
/// The type of one of them.
mlir::RankedTensorType meanType(VariableOp parameter, MeanOf of);

/// A direction, and the averages after the update, in the order in which they were given.
struct Direct {
  mlir::Value direction;
  llvm::SmallVector<mlir::Value> averages;
};

/// What Adafactor's direction depends on beside gradients.
struct FactoredInputs {
  mlir::Value weight, eps; ///< scalars: of squares in their averages, and what is added to them
  mlir::Value scaled;      ///< the parameter if directions are multiplied by its root mean square, or null
};

/// Adafactor's direction of `gradient`, in f32.
Direct factoredDirection(VariableOp parameter, mlir::Value gradient,
                         llvm::ArrayRef<mlir::Value> averages, const FactoredInputs &inputs,
                         mlir::OpBuilder &builder);

/// NorMuon's direction: each row of `orthogonal` over the root of the average of its mean squares, each
/// matrix with the norm that it had, times `factor`.
Direct normalizedDirection(VariableOp parameter, mlir::Value orthogonal, mlir::Value average,
                           mlir::Value decay, double factor, mlir::OpBuilder &builder);

} // namespace meshwright::train

#endif // MESHWRIGHT_LIB_TRAIN_MEANSQUARES_H
