//===- Lowering.h - from kernels to PTX -------------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_CODEGEN_CUDA_LOWERING_H
#define MESHWRIGHT_CODEGEN_CUDA_LOWERING_H

#include "Codegen/CUDA/Attention.h"
#include "Codegen/CUDA/Experts.h"
#include "Codegen/ModuleKernels.h"
#include "meshwright/Codegen.h"

namespace meshwright::codegen::cuda {

/// The gpu.module that all GPU functions are in.
constexpr llvm::StringLiteral kernelModule = "kernels";

/// A chunk is a block of threads: about four on each multiprocessor of a large GPU. Threads
/// hold rows of up to 8192 elements in registers.
constexpr exec::ScheduleLimits scheduleLimits{512, 8192, 8192};

mlir::FailureOr<ModuleKernels> buildKernels(mlir::ModuleOp module);

/// The functions of calls that are no loop nests.
struct CallKernels {
  AttentionKernels attention;
  ExpertKernels experts;
};

/// All kernels, and those of calls, as gpu.funcs of one gpu.module.
mlir::FailureOr<mlir::OwningOpRef<mlir::ModuleOp>> emitKernels(ModuleKernels &kernels,
                                                               CallKernels &ofCalls);

/// ... in the LLVM and NVVM dialects, in place.
mlir::LogicalResult convertKernels(mlir::ModuleOp kernels);

/// ... as PTX for `arch`.
mlir::FailureOr<std::string> writePTX(mlir::ModuleOp converted, llvm::StringRef arch);

/// The kernels of an exec module as gpu.funcs in one gpu.module.
mlir::FailureOr<mlir::OwningOpRef<mlir::ModuleOp>> emitKernels(mlir::ModuleOp module);

/// ... as PTX for `arch`, e.g. sm_90.
mlir::FailureOr<std::string> emitPTX(mlir::ModuleOp module, llvm::StringRef arch);

/// The LLVM dialect module of an exec module: one function a program, the images of its
/// kernels for each of `archs` and their table. What the user should know of these goes to
/// `log`.
mlir::FailureOr<mlir::OwningOpRef<mlir::ModuleOp>> lower(mlir::ModuleOp module,
                                                         llvm::ArrayRef<std::string> archs,
                                                         const CodegenOptions &options,
                                                         llvm::raw_ostream &log);

/// 90 of sm_90, if code can be written for it.
mlir::FailureOr<unsigned> archNumber(mlir::ModuleOp module, llvm::StringRef arch);

} // namespace meshwright::codegen::cuda

#endif // MESHWRIGHT_CODEGEN_CUDA_LOWERING_H
