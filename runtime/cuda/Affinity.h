//===- Affinity.h - the cores near a GPU --------------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_RUNTIME_CUDA_AFFINITY_H
#define MESHWRIGHT_RUNTIME_CUDA_AFFINITY_H

#include <cuda.h>

#include <string>

namespace meshwright::cuda {

/// The calling thread, and those that it starts from now on, run on the cores that NVML says are
/// near the GPU called `name`, as far as they may run on them: masks of launchers and control groups
/// only get narrower. Returns what it found, in words; nothing where there is nothing to say.
std::string runNear(const CUuuid &name);

} // namespace meshwright::cuda

#endif // MESHWRIGHT_RUNTIME_CUDA_AFFINITY_H
