//===- PaddingZeros.h - where padding is known to be zero -------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_LIB_DIST_PADDINGZEROS_H
#define MESHWRIGHT_LIB_DIST_PADDINGZEROS_H

#include "Dist/Propagation/ValueBinding.h"

namespace meshwright::dist {

/// For each value with padding its logical shape.
using LogicalShapes = llvm::DenseMap<mlir::Value, llvm::SmallVector<int64_t>>;

/// Puts a `train.mask` before each sum and maximum over padding that is not known
/// to leave it out, and before padded variables are written, so that their padding
/// stays zero. Types are padded already. What is zero where follows from what is
/// zero in variables and ids: a forward analysis through calls and loops.
mlir::LogicalResult maskPadding(mlir::ModuleOp module, const LogicalShapes &logical);

} // namespace meshwright::dist

#endif // MESHWRIGHT_LIB_DIST_PADDINGZEROS_H
