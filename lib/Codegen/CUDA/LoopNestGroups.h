//===- LoopNestGroups.h - loop nests that are launched together -------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// Loop nests of one level do not wait for each other. Those that do the same to tensors of
// other sizes are one GPU function and one launch, in which each block works for one of
// them: the updates of all parameters of an optimizer for example.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_CODEGEN_CUDA_LOOPNESTGROUPS_H
#define MESHWRIGHT_CODEGEN_CUDA_LOOPNESTGROUPS_H

#include "Codegen/CUDA/LaunchShape.h"

namespace meshwright::codegen::cuda {

struct LoopNestGroup {
  llvm::SmallVector<const LoopNest *> nests;
  LaunchShape shape;
};

/// The launches of a kernel, in their order. `alignment` is as emitKernel's.
std::vector<LoopNestGroup> groupLoopNests(const KernelLoops &kernelLoops,
                                          llvm::ArrayRef<int64_t> alignment);

} // namespace meshwright::codegen::cuda

#endif // MESHWRIGHT_CODEGEN_CUDA_LOOPNESTGROUPS_H
