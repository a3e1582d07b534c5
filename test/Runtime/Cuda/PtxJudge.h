//===- PtxJudge.h - who touched which memory since when --------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// The machine runs threads in one order of many. The judge keeps for every two bytes who
// touched them since when, and throws std::runtime_error at
//   - races: two threads touch the same memory, one writes, and no barrier of the block (or,
//     in one warp, of the warp) lies between them; blocks never wait for each other
//   - reads of memory that nobody wrote
// Neither the order of a warp's instructions nor a shuffle orders what lanes do.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_TEST_RUNTIME_CUDA_PTXJUDGE_H
#define MESHWRIGHT_TEST_RUNTIME_CUDA_PTXJUDGE_H

#include "Ptx.h"

#include <memory>
#include <unordered_map>

namespace ptx {

class Judge {
public:
  /// Nobody has written this global memory yet. Other memory counts as written.
  void addUnwritten(uint64_t begin, uint64_t bytes);

  // What the machine says. A launch ends all races with earlier ones.
  void beginLaunch(int threads);
  void beginBlock(int block, uint64_t sharedBytes);
  void passBarrier() { barrier = ++clock; }
  void passWarpBarrier(int thread) { warpBarriers[size_t(thread / width)] = ++clock; }
  /// A thread of the block touches memory; an address in shared memory counts from its beginning.
  void touch(bool isShared, bool writes, uint64_t address, int bytes, int thread);

private:
  /// A thread of the launch, where each block begins with a whole warp, and the time.
  struct Access {
    uint32_t thread = 0, time = 0;
  };
  /// Two bytes of memory; of reads those since the last write.
  struct Cell {
    Access writer;
    Access reader;      ///< the last one
    uint32_t lanes = 0; ///< of the reader's warp that read since its last barrier
    Access stranger;    ///< the last reader of another warp, or one of an earlier block
    bool isWritten = true;
  };
  static constexpr uint64_t pageBytes = 4096;
  struct Page {
    Cell cells[pageBytes / 2];
  };

  Cell &global(uint64_t address);
  void read(Cell &cell, uint32_t thread);
  void write(Cell &cell, uint32_t thread);
  /// When all accesses of the thread's warp ended that it waited for.
  uint32_t waited(uint32_t thread) const;
  bool isPast(const Access &before) const { return before.time < launch; }
  bool isOrdered(const Access &before, uint32_t thread) const;
  void needOrder(const Access &before, uint32_t thread, const char *now, const char *then) const;
  std::string nameOf(uint32_t thread) const;

  uint32_t clock = 1; ///< goes on at barriers
  uint32_t launch = 1, barrier = 1;
  std::vector<uint32_t> warpBarriers;
  uint32_t first = 0, perBlock = 0; ///< the block's first thread, threads of a block
  std::vector<Cell> shared;
  std::unordered_map<uint64_t, std::unique_ptr<Page>> pages;
  uint64_t lastNumber = ~uint64_t(0);
  Page *lastPage = nullptr;
};

} // namespace ptx

#endif // MESHWRIGHT_TEST_RUNTIME_CUDA_PTXJUDGE_H
