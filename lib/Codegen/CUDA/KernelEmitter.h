//===- KernelEmitter.h - a kernel's loop nests as GPU functions -------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_CODEGEN_CUDA_KERNELEMITTER_H
#define MESHWRIGHT_CODEGEN_CUDA_KERNELEMITTER_H

#include "meshwright/KernelLoops.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"

namespace meshwright::codegen::cuda {

/// The address space of kernels' memory.
constexpr unsigned globalSpace = 1;

/// `type`, a number or a vector, with other elements.
inline mlir::Type withElement(mlir::Type type, mlir::Type element) {
  auto vector = mlir::dyn_cast<mlir::VectorType>(type);
  return vector ? mlir::Type(vector.clone(element)) : element;
}

/// A gpu.func's attribute: bytes of shared memory that its launches ask for, beside those
/// it declares.
constexpr llvm::StringLiteral sharedBytesAttr = "meshwright.shared_bytes";

/// The name of the function of launch `index` of `kernel`, as PTX has it.
/// Of a function that does nothing where two of its pointers, by their numbers, are the same.
constexpr llvm::StringLiteral inPlaceAttr = "meshwright.in_place";

std::string loopNestName(llvm::StringRef kernel, unsigned index);

/// Adds to `module` one kernel gpu.func for each launch of `kernelLoops`, numbered in their order:
/// a loop nest, or several that do the same (LoopNestGroups.h). Its arguments are the
/// addresses of the kernel's arguments and results, and of its workspace if it has
/// one; its attributes known_grid_size and known_block_size are how it must be
/// launched. `alignment` says for each argument and result to how many bytes its
/// address is aligned; 16 is all that matters.
mlir::LogicalResult emitKernel(const KernelLoops &kernelLoops, mlir::gpu::GPUModuleOp module,
                               llvm::ArrayRef<int64_t> alignment);

} // namespace meshwright::codegen::cuda

#endif // MESHWRIGHT_CODEGEN_CUDA_KERNELEMITTER_H
