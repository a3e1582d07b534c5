//===- Facts.h - what attributes say of kernels and calls -------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// Passes write down what they found out, and later ones read it: the workspace of a kernel, which
// operands it may write over, the pairs of queries and keys that a device has. Here it is found out
// again from the op itself.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_LIB_EXEC_VERIFY_FACTS_H
#define MESHWRIGHT_LIB_EXEC_VERIFY_FACTS_H

#include "Exec/Exec.h"

namespace meshwright::exec {

/// Checks what a kernel's attributes say of its loop nests, its workspace and its operands.
mlir::LogicalResult verifyKernelFacts(mlir::func::FuncOp kernel, const ScheduleLimits &limits);

/// Checks what a call of attention says of the devices that divide it; nothing of other ops.
mlir::LogicalResult verifyAttentionFacts(mlir::Operation *op);

/// Checks that a library call has as much scratch memory as its target needs for its shape.
mlir::LogicalResult verifyScratchMemory(mlir::Operation *op);

} // namespace meshwright::exec

#endif // MESHWRIGHT_LIB_EXEC_VERIFY_FACTS_H
