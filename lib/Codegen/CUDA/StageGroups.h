//===- StageGroups.h - stages that are launched together --------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// Stages of one level do not wait for each other. Those that do the same to tensors of
// other sizes are one GPU function and one launch, in which each block works for one of
// them: the updates of all parameters of an optimizer for example.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_CODEGEN_CUDA_STAGEGROUPS_H
#define MESHWRIGHT_CODEGEN_CUDA_STAGEGROUPS_H

#include "Codegen/CUDA/LaunchShape.h"

namespace meshwright::codegen::cuda {

struct StageGroup {
  llvm::SmallVector<const Stage *> stages;
  LaunchShape shape;
};

/// The launches of a kernel, in their order. `alignment` is as emitKernel's.
std::vector<StageGroup> groupStages(const KernelPlan &plan, llvm::ArrayRef<int64_t> alignment);

} // namespace meshwright::codegen::cuda

#endif // MESHWRIGHT_CODEGEN_CUDA_STAGEGROUPS_H
