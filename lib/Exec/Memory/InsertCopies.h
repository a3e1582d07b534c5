//===- InsertCopies.h - a value for every memory ----------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_LIB_EXEC_INSERTCOPIES_H
#define MESHWRIGHT_LIB_EXEC_INSERTCOPIES_H

#include "Exec/Exec.h"

namespace meshwright::exec {

/// Whether the result is the operand's memory with another shape, or a part of it.
bool isView(mlir::Operation *op);
/// Whether `value` may begin at another address than the memory that it is a view of: a
/// device's own part, whose offset is known at run time, or an entry of a stack.
bool isWindow(mlir::Value value);
/// If `value`, or a reshape of it, is a part of a `dist.concat`, the operand of the concat.
/// After `insertCopies` such a value is computed in the memory of the result.
mlir::OpOperand *writtenInto(mlir::Value value);
/// The value whose memory `value` is a view of.
mlir::Value viewed(mlir::Value value);
/// Whether `value`, or a view of it, is used after `point` in the block of both.
bool isUsedAfter(mlir::Value value, mlir::Operation *point);

/// For each result of a call the operand that it is an in-place alias of, or -1; empty if the
/// callee has no in-place aliases.
llvm::ArrayRef<int64_t> inPlaceAliasesOf(mlir::func::CallOp call);

/// Inserts an `exec.copy` wherever a value must end up in given memory, so that this memory
/// holds a value of its own that nothing else constrains.
void insertCopies(mlir::func::FuncOp function);

} // namespace meshwright::exec

#endif // MESHWRIGHT_LIB_EXEC_INSERTCOPIES_H
