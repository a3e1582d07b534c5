//===- KernelEmitter.h - loops and vectors of a kernel's loop nests ---------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_CODEGEN_CPU_KERNELEMITTER_H
#define MESHWRIGHT_CODEGEN_CPU_KERNELEMITTER_H

#include "meshwright/KernelLoops.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

namespace meshwright::codegen::cpu {

/// The name of the function that runs loop nest `index` of `kernel`.
std::string loopNestName(llvm::StringRef kernel, unsigned index);

/// What the code generator must know of a processor.
struct VectorTarget {
  unsigned lanes; ///< of f32 in the widest vectors worth using
  /// Instructions that convert vectors between f32 and f16, and from f32 to bf16.
  bool convertsF16 = false, convertsBF16 = false;
};

/// Adds to `module` one llvm.func a loop nest of `kernelLoops`: (buffers, begin, end) as
/// MwKernel in ABI.h, whose body is scf loops over vectors of `target.lanes` f32.
mlir::LogicalResult emitKernel(const KernelLoops &kernelLoops, mlir::ModuleOp module,
                               const VectorTarget &target);

} // namespace meshwright::codegen::cpu

#endif // MESHWRIGHT_CODEGEN_CPU_KERNELEMITTER_H
