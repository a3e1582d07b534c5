//===- DelayedScaling.h - scales of products by what earlier steps observed --===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_LIB_TRAIN_DELAYEDSCALING_H
#define MESHWRIGHT_LIB_TRAIN_DELAYEDSCALING_H

#include "Train/Quantize.h"

namespace meshwright::train {

/// The states of weights by which layers' products are scaled, and how they come into the layers.
class DelayedScaling {
public:
  DelayedScaling(mlir::ModuleOp module, mlir::SymbolTable &symbols);

  /// Whether the weight of `product` can have states of its own: it is a parameter, with a slice for each layer, that
  /// nothing else reads.
  bool take(mlir::Operation *product);
  /// The largest magnitude that the scale of `product` for `role` is made of: a new argument of its layer.
  mlir::Value amax(mlir::Operation *product, llvm::StringRef role);

  llvm::SmallVector<std::string> left; ///< sizes of weights that have no states

private:
  /// What a layer is given for an argument in one of its repetitions.
  struct Passed {
    RepeatOp repeat;
    mlir::Value operand;
    bool isSlice; ///< of `operand`, one for each layer
  };

  mlir::SymbolTable &symbols;
  llvm::DenseMap<mlir::Value, llvm::SmallVector<Passed>> passed; ///< by argument
  llvm::DenseMap<mlir::Operation *, int64_t> uses;               ///< of variables
};

} // namespace meshwright::train

#endif // MESHWRIGHT_LIB_TRAIN_DELAYEDSCALING_H
