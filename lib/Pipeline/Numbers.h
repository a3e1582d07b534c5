//===- Numbers.h - what changes the numbers that a program computes -----------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_PIPELINE_NUMBERS_H
#define MESHWRIGHT_PIPELINE_NUMBERS_H

#include "meshwright/Options.h"
#include "meshwright/runtime/PlanSchema.h"

#include "mlir/IR/BuiltinOps.h"

namespace meshwright {

/// The options of the program that computes the same on one rank.
CompileOptions sequentialOptions(const CompileOptions &options);

/// All that changes what an executable computes, beyond rounding: a hash of the model and its loss, as they are on one
/// rank, sizes, and the flags of the compiler but those that decide where and when it is computed. `compiled` is
/// the module that `options` make.
llvm::Expected<plan::List<plan::Setting>> numbersOf(const CompileOptions &options, mlir::ModuleOp compiled);

} // namespace meshwright

#endif // MESHWRIGHT_PIPELINE_NUMBERS_H
