//===- ProgramEmitter.h - programs that run on the host ---------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_CODEGEN_CPU_PROGRAMEMITTER_H
#define MESHWRIGHT_CODEGEN_CPU_PROGRAMEMITTER_H

#include "Codegen/ProgramEmitter.h"

namespace meshwright::codegen::cpu {

/// Adds to `target`, which has the kernels, the functions of the programs.
mlir::LogicalResult emitPrograms(const ModuleKernels &kernels, mlir::ModuleOp target);

} // namespace meshwright::codegen::cpu

#endif // MESHWRIGHT_CODEGEN_CPU_PROGRAMEMITTER_H
