//===- PtxMachine.h - what instructions work on ----------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_TEST_RUNTIME_CUDA_PTXMACHINE_H
#define MESHWRIGHT_TEST_RUNTIME_CUDA_PTXMACHINE_H

#include "Ptx.h"

namespace ptx {

/// The warp that runs, and where.
struct Machine {
  Machine(Memories &memories, const std::vector<uint64_t> &parameters)
      : memories(memories), parameters(parameters) {}

  uint32_t (*r32)[width] = nullptr;
  uint64_t (*r64)[width] = nullptr;
  uint32_t mask = 0; ///< lanes that run
  uint32_t alive = 0; ///< lanes that have not ended
  uint32_t on[width];  ///< of each lane all bits, or none
  uint64_t on64[width];
  int block = 0, blocks = 0, threads = 0, firstThread = 0, line = 0;
  char *shared = nullptr;
  uint64_t sharedBytes = 0;
  Memories &memories;
  const std::vector<uint64_t> &parameters;
  uint64_t begin = 1, end = 0; ///< of the memory used last

  void setMask(uint32_t lanes, uint32_t living) {
    mask = lanes;
    alive = living;
    for (int lane = 0; lane < width; ++lane) {
      on[lane] = lanes >> lane & 1 ? ~0u : 0;
      on64[lane] = lanes >> lane & 1 ? ~uint64_t(0) : 0;
    }
  }
};

} // namespace ptx

#endif // MESHWRIGHT_TEST_RUNTIME_CUDA_PTXMACHINE_H
