//===- Ties.h - results computed in the place of arguments ------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_LIB_EXEC_TIES_H
#define MESHWRIGHT_LIB_EXEC_TIES_H

#include "Exec/Exec.h"

namespace meshwright::exec {

/// For each result of `callee`, the argument in whose memory it could be computed, or
/// -1: a gradient's accumulator, for example. Such an argument leads to the result
/// through ops that work in place, and no caller needs what it passed there after the
/// call. Each argument occurs once at most.
llvm::SmallVector<int64_t> findTies(mlir::func::FuncOp callee,
                                    llvm::ArrayRef<mlir::func::CallOp> calls);

} // namespace meshwright::exec

#endif // MESHWRIGHT_LIB_EXEC_TIES_H
