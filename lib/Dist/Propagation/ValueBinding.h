//===- ValueBinding.h - where values cross functions, variables and the outside ---===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// The structural half of floor 2: calls, repeats, returns and variables pass values
// on unchanged. Passes treat all of them as value bindings.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_LIB_DIST_VALUEBINDING_H
#define MESHWRIGHT_LIB_DIST_VALUEBINDING_H

#include "Dist/Dist.h"

#include "llvm/ADT/DenseMap.h"

namespace meshwright::dist {

/// A use that passes its value on unchanged.
struct ValueBinding {
  mlir::OpOperand *use;
  /// The argument or result that the value becomes; if null, the value is written to
  /// `variable`; without either all devices must have it complete: it is a result of the
  /// program, or how often a repetition runs.
  mlir::Value to;
  train::VariableOp variable;
  /// 1: `to` is a slice of the used value along its first dimension; -1: the used
  /// value is such a slice of `to`; 0: they have the same shape.
  int leading = 0;
  /// Whether it is a result of the program.
  bool isOutput() const {
    return !to && !variable && use->getOwner()->hasTrait<mlir::OpTrait::IsTerminator>();
  }
};

/// All structural facts of a module.
struct Structure {
  llvm::SmallVector<ValueBinding, 0> bindings;
  /// Values that are carried through all iterations: an argument of a repeated function
  /// and the result of the repeat.
  llvm::SmallVector<std::pair<mlir::Value, mlir::Value>> carried;
  /// Arguments without a caller's value: those of functions that nobody calls, and
  /// iteration numbers.
  llvm::SmallVector<mlir::BlockArgument> inputs;
  /// Reads of variables.
  llvm::SmallVector<std::pair<mlir::Value, train::VariableOp>> reads;
  /// Functions with a body, callees before callers.
  llvm::SmallVector<mlir::func::FuncOp> functions;
};

/// Reports calls it cannot follow: unknown functions and recursion.
mlir::FailureOr<Structure> structureOf(mlir::ModuleOp module);

/// Gives every call its own copy of the function it calls, so that each can be
/// sharded as its caller needs. The first keeps the original; `originals` gets that of each copy.
mlir::LogicalResult
separateCallees(mlir::ModuleOp module,
                llvm::DenseMap<mlir::Operation *, mlir::func::FuncOp> *originals = nullptr);

/// Undoes `separateCallees` for copies that stayed equal: equal private functions become
/// one.
mlir::LogicalResult mergeEqualCallees(mlir::ModuleOp module);

/// What diagnostics call a value: "argument 'tokens' of @step", "result 0 of
/// train.linear".
std::string describe(mlir::Value value);

} // namespace meshwright::dist

#endif // MESHWRIGHT_LIB_DIST_VALUEBINDING_H
