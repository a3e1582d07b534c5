//===- Lowering.h - exec module to LLVM dialect ------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_CODEGEN_CPU_LOWERING_H
#define MESHWRIGHT_CODEGEN_CPU_LOWERING_H

#include "Exec/Target.h"
#include "meshwright/Codegen.h"

namespace meshwright::codegen::cpu {

/// Enough chunks for many cores, each long beside the start of a thread. Caches hold the
/// longest rows, and exponentials cost more than reading them.
constexpr exec::ScheduleLimits scheduleLimits{64, 16384, INT64_MAX};

/// The LLVM dialect module of an exec module for the processor `options.cpu`: kernels as
/// vector loops and one function a program.
mlir::FailureOr<mlir::OwningOpRef<mlir::ModuleOp>>
lower(mlir::ModuleOp module, const CodegenOptions &options);

} // namespace meshwright::codegen::cpu

#endif // MESHWRIGHT_CODEGEN_CPU_LOWERING_H
