//===- Parallel.h - compiles several layouts at once ------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_LIB_PIPELINE_PLANNER_PARALLEL_H
#define MESHWRIGHT_LIB_PIPELINE_PLANNER_PARALLEL_H

#include "llvm/ADT/STLFunctionalExtras.h"

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

namespace meshwright::planner {

/// Calls `work` with each number below `count`, on so many threads; 0: one for each processor.
inline void forEachAtOnce(size_t count, unsigned threads, llvm::function_ref<void(size_t)> work) {
  std::atomic<size_t> next = 0;
  auto run = [&] {
    for (size_t i; (i = next++) < count;)
      work(i);
  };
  size_t most = threads ? threads : std::max(1u, std::thread::hardware_concurrency());
  std::vector<std::thread> others;
  for (size_t i = 1; i < std::min(most, count); ++i)
    others.emplace_back(run);
  run();
  for (std::thread &thread : others)
    thread.join();
}

} // namespace meshwright::planner

#endif // MESHWRIGHT_LIB_PIPELINE_PLANNER_PARALLEL_H
