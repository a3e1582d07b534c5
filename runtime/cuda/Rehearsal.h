//===- Rehearsal.h - calls of libraries before the first step -------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// A library loads a kernel with its first launch, and the driver may then wait for all that the
// GPU is doing: among it sends whose receiver waits for this very rank. So every product and
// call of attention is made once before ranks communicate, and again where other algorithms
// were chosen. To load all that libraries have (CUDA_MODULE_LOADING=EAGER) would take seconds
// and hundreds of MB of the GPU's memory.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_RUNTIME_CUDA_REHEARSAL_H
#define MESHWRIGHT_RUNTIME_CUDA_REHEARSAL_H

#include "common/monitor/RankStatus.h"
#include "cuda/Attention.h"
#include "cuda/Matmul.h"
#include "cuda/Operands.h"

namespace meshwright::cuda {

/// Makes each call in `space`, whose location in the model `status` has, and says on standard error
/// which epilogues of products are left to kernels. What has no room there is other ranks'.
void rehearse(Matmuls &matmuls, const Attentions &attentions, Space space, RankStatus &status,
              CUstream stream);

/// The same in memory of its own, of `most` bytes at most.
void rehearse(Matmuls &matmuls, const Attentions &attentions, int64_t most, RankStatus &status,
              CUstream stream);

} // namespace meshwright::cuda

#endif // MESHWRIGHT_RUNTIME_CUDA_REHEARSAL_H
