//===- ProgramEmitter.h - exec programs as functions ------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_CODEGEN_CPU_PROGRAMEMITTER_H
#define MESHWRIGHT_CODEGEN_CPU_PROGRAMEMITTER_H

#include "Codegen/KernelPlan.h"

#include "llvm/ADT/StringMap.h"

#include <deque>

namespace meshwright::codegen::cpu {

/// Adds to `target` the functions of `source`, named as ABI.h says. `kernels` has the
/// kernels of each program of the module, by the names they have there.
mlir::LogicalResult emitPrograms(mlir::ModuleOp source, mlir::ModuleOp target,
                                 const std::deque<llvm::StringMap<KernelPlan>> &kernels);

/// Adds the plan's text and size, in section .meshwright.plan.
void emitPlan(mlir::ModuleOp target, llvm::StringRef plan);

} // namespace meshwright::codegen::cpu

#endif // MESHWRIGHT_CODEGEN_CPU_PROGRAMEMITTER_H
