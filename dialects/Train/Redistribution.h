//===- Redistribution.h - where a dimension may be divided otherwise --------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// A recurrence needs a sequence whole and has channels to divide instead. Where it begins and ends, the frontend
// writes a slice of all rows, marked by an attribute. Its rule says what is meant: the dimension is
// needed whole, and those of operand and result are two indices. No pass folds it until dist-apply-strategy
// replaces it by shardings of both sides.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_TRAIN_REDISTRIBUTION_H
#define MESHWRIGHT_TRAIN_REDISTRIBUTION_H

#include "Train/Train.h"

namespace meshwright::train {

inline constexpr llvm::StringLiteral redistributesAttr = "train.redistributes";

inline bool redistributes(SliceOp op) { return op->hasAttr(redistributesAttr); }

/// A slice of all rows of dimension `dim` that may be divided along others than x.
inline SliceOp createRedistribution(mlir::OpBuilder &b, mlir::Location loc, mlir::Value x, int64_t dim) {
  auto op = SliceOp::create(b, loc, x, llvm::cast<mlir::RankedTensorType>(x.getType()).getDimSize(dim), dim);
  op->setAttr(redistributesAttr, b.getUnitAttr());
  return op;
}

} // namespace meshwright::train

#endif // MESHWRIGHT_TRAIN_REDISTRIBUTION_H
