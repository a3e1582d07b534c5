//===- NarrowGradients.h - in which type gradients are sent -------*- C++ -*-===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_LIB_DIST_NARROWGRADIENTS_H
#define MESHWRIGHT_LIB_DIST_NARROWGRADIENTS_H

#include "mlir/IR/BuiltinOps.h"

namespace meshwright::dist {

/// Where the module says in which type devices send each other gradients, has the reshards that complete those of
/// parameters say it (Dist/Wire.h). Refuses another type than bf16 and fp8.
llvm::LogicalResult narrowGradients(mlir::ModuleOp module);

} // namespace meshwright::dist

#endif // MESHWRIGHT_LIB_DIST_NARROWGRADIENTS_H
