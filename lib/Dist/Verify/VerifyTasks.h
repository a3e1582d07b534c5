//===- VerifyTasks.h - whether pipeline stages keep to their schedule --------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_LIB_DIST_VERIFYTASKS_H
#define MESHWRIGHT_LIB_DIST_VERIFYTASKS_H

#include "Dist/Dist.h"

namespace meshwright::dist {

/// Checks `entries`, the entry function of each program, if their calls are tasks of a
/// pipeline's schedule:
///
/// - a stage never keeps the results of more forward tasks for later backward and weight
///   tasks than its program's `dist.held` says;
/// - each value that a task makes for a task of another stage is sent once for every
///   microbatch, to tasks of that microbatch;
/// - between any two consecutive chunks on different stages a value is sent forward and, if
///   there are backward tasks, one backward.
///
/// Messages are matched in their order, which the simulator has proved to be right.
mlir::LogicalResult verifyTasks(llvm::ArrayRef<mlir::func::FuncOp> entries);

} // namespace meshwright::dist

#endif // MESHWRIGHT_LIB_DIST_VERIFYTASKS_H
