//===- HandOver.h - where values cross functions, variables and the outside -===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// The structural half of floor 2: calls, repetitions, returns and variables pass
// values on without computing. Passes see all of them as hand-overs.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_LIB_DIST_HANDOVER_H
#define MESHWRIGHT_LIB_DIST_HANDOVER_H

#include "Dist/Dist.h"

#include "llvm/ADT/DenseMap.h"

namespace meshwright::dist {

/// One use that hands its value on.
struct HandOver {
  mlir::OpOperand *use;
  /// What it becomes: an argument or a result, or, where null, `variable`; with
  /// neither it leaves the program as result `use->getOperandNumber()`.
  mlir::Value to;
  train::VariableOp variable;
  /// 1: `to` is a slice of the used value along its first dimension; -1: the used
  /// value is such a slice of `to`; 0: they have the same shape.
  int leading = 0;
};

/// All structural facts of a module.
struct Structure {
  llvm::SmallVector<HandOver, 0> handOvers;
  /// Values that are one through all iterations: an argument of a repeated
  /// function and the repetition's result.
  llvm::SmallVector<std::pair<mlir::Value, mlir::Value>> carried;
  /// Arguments that no caller hands anything: of functions that nobody calls,
  /// and iteration numbers.
  llvm::SmallVector<mlir::BlockArgument> inputs;
  /// Reads of variables.
  llvm::SmallVector<std::pair<mlir::Value, train::VariableOp>> reads;
  /// Functions with a body, callees before callers.
  llvm::SmallVector<mlir::func::FuncOp> functions;
};

/// Reports calls it cannot follow: unknown functions and recursion.
mlir::FailureOr<Structure> structureOf(mlir::ModuleOp module);

/// Gives every call its own copy of the function it calls, so that each can be
/// sharded as its caller needs. The first keeps the original.
mlir::LogicalResult separateCallees(mlir::ModuleOp module);

/// Undoes `separateCallees` where copies are equal: equal private functions become
/// one.
mlir::LogicalResult mergeEqualCallees(mlir::ModuleOp module);

/// What diagnostics call a value: "argument 'tokens' of @step", "result 0 of
/// train.linear".
std::string describe(mlir::Value value);

} // namespace meshwright::dist

#endif // MESHWRIGHT_LIB_DIST_HANDOVER_H
