//===- Residuals.h - what the backward of a function keeps ------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_LIB_TRAIN_RESIDUALS_H
#define MESHWRIGHT_LIB_TRAIN_RESIDUALS_H

#include "Train/Train.h"

#include "llvm/ADT/SetVector.h"

namespace meshwright::train {

/// How the forward values that a backward needs reach it.
struct Residuals {
  llvm::SetVector<mlir::Value> kept;         ///< stored by the forward
  llvm::SetVector<mlir::Operation *> recomputed; ///< run again in the backward, in forward order
};

/// Decides for the `needed` values of `forward`, one block. `isFree` says which
/// values the backward has without storing (parameters, shared operands). `preferred`, of
/// which views or they themselves are needed, are kept if the forward writes them to memory
/// anyway, even if they can be computed again.
Residuals chooseResiduals(mlir::Block &forward, const llvm::SetVector<mlir::Value> &needed,
                          llvm::function_ref<bool(mlir::Value)> isFree,
                          const llvm::DenseSet<mlir::Value> &preferred);

/// The `needed` values of `forward` and all that they are computed from: its ops, to run again, and
/// its arguments, as `kept`.
Residuals recomputeAll(mlir::Block &forward, const llvm::SetVector<mlir::Value> &needed);

} // namespace meshwright::train

#endif // MESHWRIGHT_LIB_TRAIN_RESIDUALS_H
