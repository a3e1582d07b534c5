//===- ArenaMemory.h - memory of a GPU that others may read and write -------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// Mapped by the driver's virtual memory: other than what cuMemAlloc gives, it can be handed
// to other processes' GPUs and to network cards, as NCCL does with what is registered. It is
// one allocation, because NCCL's windows are.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_RUNTIME_CUDA_ARENAMEMORY_H
#define MESHWRIGHT_RUNTIME_CUDA_ARENAMEMORY_H

#include "cuda/Libraries.h"

#include <cstdint>
#include <string>

namespace meshwright::cuda {

class ArenaMemory {
public:
  /// Of `device`, which is current. An Error where there are not so many bytes.
  ArenaMemory(CUdevice device, int64_t bytes);
  /// The GPU must have done everything that touches it. While an error unwinds the stack nobody
  /// knows whether it has, and the memory stays until the process ends.
  ~ArenaMemory();
  ArenaMemory(const ArenaMemory &) = delete;
  ArenaMemory &operator=(const ArenaMemory &) = delete;

  CUdeviceptr begin() const { return address; }
  /// With the rest of the last page.
  int64_t mappedBytes() const { return int64_t(mapped); }
  /// Why the driver cannot map it, so that it is cuMemAlloc's; empty where it is mapped.
  const std::string &refusal() const { return refused; }

private:
  /// False, with `refused`, where the driver says that it cannot.
  bool map(CUdevice device, size_t bytes);

  CUdeviceptr address = 0;
  size_t mapped = 0;
  std::string refused;
};

} // namespace meshwright::cuda

#endif // MESHWRIGHT_RUNTIME_CUDA_ARENAMEMORY_H
