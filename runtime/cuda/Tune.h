//===- Tune.h - which algorithms of libraries are fastest -----------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_RUNTIME_CUDA_TUNE_H
#define MESHWRIGHT_RUNTIME_CUDA_TUNE_H

#include "common/communication/RankGroup.h"
#include "common/monitor/RankStatus.h"
#include "cuda/Attention.h"
#include "cuda/Matmul.h"
#include "cuda/Operands.h"

#include <string>

namespace meshwright::cuda {

/// Gives each product the algorithm, and each call of attention that cuDNN makes the plan,
/// that `file` says, if it is of these versions of the libraries, this kind of GPU and these
/// products and calls; else rank 0 times what the heuristics offer, on operands in `space`,
/// which it leaves zeroed, and writes the file. All ranks take rank 0's choice, so that what
/// they compute alike has the same bits. The file `cache` is one in the user's cache, to which
/// executables add what they miss. Collective over `world`.
void tune(Matmuls &matmuls, Attentions &attentions, const std::string &file, Space space,
          CUdevice device, CUstream stream, RankGroup &world, RankStatus &status);

} // namespace meshwright::cuda

#endif // MESHWRIGHT_RUNTIME_CUDA_TUNE_H
