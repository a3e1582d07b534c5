//===- AsyncTokens.h - asynchronous ops and waits for them -------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_LIB_EXEC_ASYNCTOKENS_H
#define MESHWRIGHT_LIB_EXEC_ASYNCTOKENS_H

#include "Exec/Exec.h"

#include "llvm/ADT/DenseSet.h"

namespace meshwright::exec {

/// Whether `op` uses the processors that compute.
bool computes(mlir::Operation *op);

/// Makes a collective or a copy asynchronous, with `number` as its async token.
void setAsyncToken(mlir::Operation *op, int64_t number);

/// The first async token that no op of `program` has.
int64_t freeAsyncToken(ProgramOp program);

/// Inserts a wait before each op that has to wait for an asynchronous one, and at the
/// program's end. Returns the tokens of collectives during which no op computes.
llvm::DenseSet<int64_t> insertWaits(ProgramOp program);

} // namespace meshwright::exec

#endif // MESHWRIGHT_LIB_EXEC_ASYNCTOKENS_H
