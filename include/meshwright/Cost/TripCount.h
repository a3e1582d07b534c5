//===- TripCount.h - how often ops run --------------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_COST_TRIPCOUNT_H
#define MESHWRIGHT_COST_TRIPCOUNT_H

#include "Train/Train.h"

namespace meshwright::cost {

using train::Rounds;

/// How often the code runs that `op` runs, its region or a function, in one run of `op`: the
/// iterations of loops and repeats, and the share of its loop's iterations that a condition takes.
/// 1 for calls and all other ops.
double tripCount(mlir::Operation *op, Rounds rounds = Rounds::Expected);

/// How often `op` runs in one run of the program or function that it is a part of.
int64_t runsOf(mlir::Operation *op, Rounds rounds = Rounds::Most);

/// The function or program that `op` runs by its name; null for other ops.
mlir::Operation *calleeOf(mlir::Operation *op, mlir::SymbolTableCollection &symbols);

/// Calls `visit(op, runs)` for each op that a run of `block` comes to, in callees too, but for
/// those that run others. Ops that do not run are left out.
void forEachRun(mlir::Block &block, Rounds rounds, mlir::SymbolTableCollection &symbols,
                llvm::function_ref<void(mlir::Operation *, double)> visit);

} // namespace meshwright::cost

#endif // MESHWRIGHT_COST_TRIPCOUNT_H
