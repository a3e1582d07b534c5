//===- Gradients.h - which values are gradients of parameters ---------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_LIB_EXEC_GRADIENTS_H
#define MESHWRIGHT_LIB_EXEC_GRADIENTS_H

#include "Exec/Exec.h"

namespace meshwright::exec {

/// The gradients that the updates of variables read, and the values they were before
/// devices summed them, sharded them or laid them out in parts: accumulators, for one.
/// What is only on the way from one to the other is not among them.
llvm::SmallVector<mlir::Value> gradientsOf(mlir::func::FuncOp function);

} // namespace meshwright::exec

#endif // MESHWRIGHT_LIB_EXEC_GRADIENTS_H
