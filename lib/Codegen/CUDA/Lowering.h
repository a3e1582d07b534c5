//===- Lowering.h - from kernels to PTX -------------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_CODEGEN_CUDA_LOWERING_H
#define MESHWRIGHT_CODEGEN_CUDA_LOWERING_H

#include "Codegen/CUDA/Attention.h"
#include "Codegen/ModuleKernels.h"

namespace meshwright::codegen::cuda {

/// The gpu.module that all GPU functions are in.
constexpr llvm::StringLiteral kernelModule = "kernels";

mlir::FailureOr<ModuleKernels> planKernels(mlir::ModuleOp module);

/// All kernels, and those of `attention`, as gpu.funcs of one gpu.module.
mlir::FailureOr<mlir::OwningOpRef<mlir::ModuleOp>> emitKernels(ModuleKernels &kernels,
                                                               AttentionKernels &attention);

/// ... in the LLVM and NVVM dialects, in place.
mlir::LogicalResult convertKernels(mlir::ModuleOp kernels);

/// ... as PTX for `arch`.
mlir::FailureOr<std::string> writePTX(mlir::ModuleOp converted, llvm::StringRef arch);

/// 90 of sm_90, if code can be written for it.
mlir::FailureOr<unsigned> archNumber(mlir::ModuleOp module, llvm::StringRef arch);

} // namespace meshwright::codegen::cuda

#endif // MESHWRIGHT_CODEGEN_CUDA_LOWERING_H
