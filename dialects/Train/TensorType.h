//===- TensorType.h - types of tensors ---------------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_DIALECTS_TRAIN_TENSORTYPE_H
#define MESHWRIGHT_DIALECTS_TRAIN_TENSORTYPE_H

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Value.h"

namespace meshwright::train {

/// The type of `value`, which is a tensor.
inline mlir::RankedTensorType tensor(mlir::Value value) {
  return mlir::cast<mlir::RankedTensorType>(value.getType());
}

/// `shape` with the elements of `like`.
inline mlir::RankedTensorType withShape(mlir::RankedTensorType like, llvm::ArrayRef<int64_t> shape) {
  return mlir::RankedTensorType::get(shape, like.getElementType());
}

} // namespace meshwright::train

#endif // MESHWRIGHT_DIALECTS_TRAIN_TENSORTYPE_H
