//===- ObservedTraining.h - what a model computes while it is trained --------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_OBSERVEDTRAINING_H
#define MESHWRIGHT_OBSERVEDTRAINING_H

#include "meshwright/Interpreter.h"

#include "llvm/Support/Error.h"

namespace meshwright::interp {

/// Trains `step`, a module of phase step on one rank, in float64, with the `arguments` of an executable. Before each step and after
/// the last, `observe(t, ..)` sees every op of `forward`, the same model at phase train, with the parameters that t
/// steps have made.
llvm::Error observeTraining(mlir::ModuleOp forward, mlir::ModuleOp step,
                            llvm::ArrayRef<std::string> arguments,
                            llvm::function_ref<void(int64_t, mlir::Operation *, llvm::ArrayRef<Tensor>)> observe);

} // namespace meshwright::interp

#endif // MESHWRIGHT_OBSERVEDTRAINING_H
