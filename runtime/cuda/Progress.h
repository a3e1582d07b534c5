//===- Progress.h - which op of a program a GPU is at -----------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// The GPU writes a number to memory of the host before each op, or before every so many: a
// write between two kernels takes some microseconds. Any thread can read it, also while
// another waits in a call of the driver that does not return.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_RUNTIME_CUDA_PROGRESS_H
#define MESHWRIGHT_RUNTIME_CUDA_PROGRESS_H

#include "common/monitor/RankStatus.h"
#include "cuda/Libraries.h"

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace meshwright::cuda {

class Progress {
public:
  /// For the GPU that is current; notes one op of `interval`.
  /// While it lives it tells `status` where the GPU is.
  Progress(int interval, RankStatus &status);
  ~Progress();
  Progress(const Progress &) = delete;
  Progress &operator=(const Progress &) = delete;

  /// Before each run of a program.
  void beginRun() { ops = 0; }
  /// The op comes next on `stream`. Both texts live for ever.
  void mark(CUstream stream, const char *name, const char *location);

  /// Whether the GPU has got on since the last call.
  bool moved();
  /// Where it is, in words; from any thread.
  std::string location() const;

private:
  using Op = std::pair<const char *, const char *>;
  const int interval;
  RankStatus &status;
  /// In its upper half a number that grows, in its lower the op's number plus 1.
  volatile uint32_t *word = nullptr;
  CUdeviceptr wordOnGpu = 0;
  uint32_t marks = 0, seen = 0;
  int64_t ops = 0; ///< of this run
  mutable std::mutex mutex;
  std::vector<Op> known;
  std::map<Op, uint32_t> numbers;
};

} // namespace meshwright::cuda

#endif // MESHWRIGHT_RUNTIME_CUDA_PROGRESS_H
