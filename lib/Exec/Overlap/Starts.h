//===- Starts.h - what is started, and waits for it --------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_LIB_EXEC_STARTS_H
#define MESHWRIGHT_LIB_EXEC_STARTS_H

#include "Exec/Exec.h"

#include "llvm/ADT/DenseSet.h"

namespace meshwright::exec {

/// Whether `op` takes time of the processors that compute.
bool computes(mlir::Operation *op);

/// Gives a collective or a copy the number under which it is started.
void setStart(mlir::Operation *op, int64_t number);

/// The first number that nothing in `program` is started under.
int64_t freeStart(ProgramOp program);

/// Puts a wait before each op that has to wait for what is started, and at the
/// program's end. Returns the numbers of collectives during which nothing is computed.
llvm::DenseSet<int64_t> placeWaits(ProgramOp program);

} // namespace meshwright::exec

#endif // MESHWRIGHT_LIB_EXEC_STARTS_H
