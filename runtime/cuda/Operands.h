//===- Operands.h - memory for calls that are made to try them ------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_RUNTIME_CUDA_OPERANDS_H
#define MESHWRIGHT_RUNTIME_CUDA_OPERANDS_H

#include "common/plan/ElementType.h"
#include "common/plan/Plan.h"
#include "cuda/Libraries.h"
#include "meshwright/runtime/cuda/ABI.h"

#include <vector>

namespace meshwright::cuda {

/// Memory that nothing is in yet.
struct Space {
  CUdeviceptr begin;
  int64_t bytes;
};

/// A call's operands, one after the other in memory.
struct BoundOperands {
  std::vector<void *> operands;
  int64_t bytes; ///< that they take together
};
/// As mw_product has them.
BoundOperands bindOperands(const MwProduct &product, CUdeviceptr begin);
/// As mw_cudnn_attention has them.
BoundOperands bindOperands(const AttentionEntry &call, CUdeviceptr begin);

/// Fills memory with numbers of both signs between 1/2 and 2, over 2 to the `shift`, of the type;
/// for a `shift` of 0 those of bf16 are such of the other types too. Waits for `stream`.
void fill(Space space, CUstream stream, ElementType type = ElementType::BF16, int shift = 0);

} // namespace meshwright::cuda

#endif // MESHWRIGHT_RUNTIME_CUDA_OPERANDS_H
