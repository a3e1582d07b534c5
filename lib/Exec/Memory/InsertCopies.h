//===- InsertCopies.h - a value for every place in memory -------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_LIB_EXEC_INSERTCOPIES_H
#define MESHWRIGHT_LIB_EXEC_INSERTCOPIES_H

#include "Exec/Exec.h"

namespace meshwright::exec {

/// Whether the result is the operand's memory under another shape, or a part of it.
bool isView(mlir::Operation *op);
/// Whether `value` does not begin where the memory that it is a view of begins: a
/// device's own part, the place of which is known at run time, or an entry of a stack.
bool isWindow(mlir::Value value);
/// Where `value`, or what it becomes under another shape, is a part of a `dist.concat`,
/// its operand there. After `insertCopies` such a value is made in its place.
mlir::OpOperand *placedIn(mlir::Value value);
/// The value whose memory `value` is a view of.
mlir::Value viewed(mlir::Value value);
/// Whether `value`, or a view of it, is used after `point` in the block of both.
bool isUsedAfter(mlir::Value value, mlir::Operation *point);

/// For each result of a call the operand whose memory it takes, or -1; empty where
/// the callee does nothing in place.
llvm::ArrayRef<int64_t> tiesOf(mlir::func::CallOp call);

/// Puts an `exec.copy` wherever a value must arrive in given memory, so that
/// each such place has a value of its own that nothing else constrains.
void insertCopies(mlir::func::FuncOp function);

} // namespace meshwright::exec

#endif // MESHWRIGHT_LIB_EXEC_INSERTCOPIES_H
