//===- InPlaceAliases.h - results computed in the memory of arguments -------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_LIB_EXEC_INPLACEALIASES_H
#define MESHWRIGHT_LIB_EXEC_INPLACEALIASES_H

#include "Exec/Exec.h"

namespace meshwright::exec {

/// For each result of `callee` the argument of which it can be an in-place alias, or -1: a
/// gradient's accumulator, for example. Ops that work in place lead from such an argument to
/// the result, and no caller needs the argument's value after the call. Each argument occurs
/// at most once.
llvm::SmallVector<int64_t> findInPlaceAliases(mlir::func::FuncOp callee,
                                              llvm::ArrayRef<mlir::func::CallOp> calls);

} // namespace meshwright::exec

#endif // MESHWRIGHT_LIB_EXEC_INPLACEALIASES_H
