//===- NarrowReductions.h - sums whose terms are sent narrow -------*- C++ -*-===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_LIB_EXEC_NARROWREDUCTIONS_H
#define MESHWRIGHT_LIB_EXEC_NARROWREDUCTIONS_H

#include "mlir/IR/BuiltinOps.h"

namespace meshwright::exec {

/// Has sums over devices that say in which type terms are sent (Dist/Wire.h) send that and add in f32: an all_to_all
/// brings each device the terms of its part, which it adds in the order of ranks, and an all_gather the parts to all.
llvm::LogicalResult narrowReductions(mlir::ModuleOp module);

} // namespace meshwright::exec

#endif // MESHWRIGHT_LIB_EXEC_NARROWREDUCTIONS_H
