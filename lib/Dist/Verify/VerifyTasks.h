//===- VerifyTasks.h - whether pipeline stages keep to their schedule --------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_LIB_DIST_VERIFYTASKS_H
#define MESHWRIGHT_LIB_DIST_VERIFYTASKS_H

#include "Dist/Dist.h"

namespace meshwright::dist {

/// The attribute of a stage's program: of how many forward tasks it keeps results at most.
inline constexpr llvm::StringLiteral heldAttr = "dist.held";

/// Looks at `entries`, the function of each program that runs it, where their calls are
/// tasks of a pipeline's schedule:
///
/// - a stage never keeps the results of more forward tasks for later backward and weight
///   tasks than its program's `dist.held` says;
/// - what a task makes for a task of another stage goes there once for every microbatch,
///   and to tasks of that microbatch;
/// - between any two chunks in a row on different stages something goes forward and, if
///   there are backward tasks, backward.
///
/// Messages are matched in their order, which the simulator has found to be right.
mlir::LogicalResult verifyTasks(llvm::ArrayRef<mlir::func::FuncOp> entries);

} // namespace meshwright::dist

#endif // MESHWRIGHT_LIB_DIST_VERIFYTASKS_H
