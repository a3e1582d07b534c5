//===- PtxMachine.h - what instructions work on ----------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_TEST_RUNTIME_CUDA_PTXMACHINE_H
#define MESHWRIGHT_TEST_RUNTIME_CUDA_PTXMACHINE_H

#include "PtxJudge.h"

namespace ptx {

/// An allocation, with a bit for every two bytes that were read, and written.
struct Region {
  uint64_t begin, end;
  std::vector<uint8_t> read, written;

  Region(uint64_t begin, uint64_t end)
      : begin(begin), end(end), read((end - begin) / 16 + 1), written(read.size()) {}
  /// `bytes` is a power of two up to 16 that divides the address, as it does `begin`.
  void note(std::vector<uint8_t> &bits, uint64_t address, int bytes) const {
    uint64_t bit = (address - begin) / 2;
    bits[bit / 8] |= uint8_t(((1 << bytes / 2) - 1) << bit % 8);
  }
};

/// What cp.async copies to shared memory: 16 bytes, which arrive when they are waited for.
struct Copy {
  uint64_t to; ///< from the beginning of shared memory
  char bytes[16];
};
/// Those of a thread: of each group that it committed, and since.
struct Copies {
  std::vector<std::vector<Copy>> groups;
  std::vector<Copy> open;
};

/// The warp that runs, and where.
struct Machine {
  Machine(Memories &memories, const std::vector<uint64_t> &parameters, Judge *judge)
      : memories(memories), parameters(parameters), judge(judge) {}

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
  Judge *judge; ///< or null
  std::map<uint64_t, std::unique_ptr<Region>> regions;
  Region *region = nullptr; ///< the one used last
  std::map<int, Copies> copies; ///< of the block's threads
  std::map<uint64_t, int> arriving; ///< copies on their way to each 16 bytes of shared memory

  void setMask(uint32_t lanes, uint32_t living) {
    mask = lanes;
    alive = living;
    for (int lane = 0; lane < width; ++lane) {
      on[lane] = lanes >> lane & 1 ? ~0u : 0;
      on64[lane] = lanes >> lane & 1 ? ~uint64_t(0) : 0;
    }
  }
};

/// Memory at an address that a lane touches; what there is to say against it is thrown.
template <bool isShared, bool writes>
char *place(Machine &m, int lane, uint64_t address, int total);

} // namespace ptx

#endif // MESHWRIGHT_TEST_RUNTIME_CUDA_PTXMACHINE_H
