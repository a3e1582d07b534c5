//===- NarrowGradients.h - in which type gradients are sent -------*- C++ -*-===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_LIB_DIST_NARROWGRADIENTS_H
#define MESHWRIGHT_LIB_DIST_NARROWGRADIENTS_H

#include "mlir/IR/BuiltinOps.h"

namespace meshwright::dist {

/// If the module says in which type devices send each other gradients (Dist/Wire.h), marks with it the reshards that
/// complete gradients of parameters. Refuses types other than bf16 and fp8.
llvm::LogicalResult narrowGradients(mlir::ModuleOp module);

} // namespace meshwright::dist

#endif // MESHWRIGHT_LIB_DIST_NARROWGRADIENTS_H
