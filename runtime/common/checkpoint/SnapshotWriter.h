//===- SnapshotWriter.h - writing checkpoints beside training -------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// With --async-save the state is copied between two steps, and a thread writes the copy while
// training goes on. One copy is in flight at most: the next waits for it, so that the memory is
// bounded and a disk that is too slow slows the run down instead of running behind it.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_RUNTIME_COMMON_SNAPSHOTWRITER_H
#define MESHWRIGHT_RUNTIME_COMMON_SNAPSHOTWRITER_H

#include "common/checkpoint/CheckpointOutput.h"
#include "common/launch/Cores.h"
#include "common/plan/Arena.h"

#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace meshwright {

class SnapshotWriter {
public:
  /// Takes `bytes` of memory for a copy, all of it, now. The thread runs on `cores`, or on those of who
  /// starts it if there are none.
  SnapshotWriter(int64_t bytes, CoreList cores);
  ~SnapshotWriter();
  SnapshotWriter(const SnapshotWriter &) = delete;
  SnapshotWriter &operator=(const SnapshotWriter &) = delete;

  float *memory() const { return reinterpret_cast<float *>(pages.data()); }
  /// Calls `work` while the caller goes on. Nothing may be under way.
  void start(std::function<void()> work);
  /// Writes the tensors of `files`, which `memory` holds one after the other, into `output`. For `work`.
  void write(const std::vector<CheckpointFile> &files, CheckpointOutput &output);
  /// Whether nothing is under way.
  bool isIdle();
  /// Waits until all is written, or its next 256 MB are. Returns whether all of it is.
  bool awaitPart();
  /// Throws the error that ended the last work, if one did. Does not wait.
  void rethrow();

private:
  CoreList cores;
  Pages pages;

  std::thread thread;
  std::mutex mutex;
  std::condition_variable progress;
  int64_t parts = 0, seen = 0; ///< 256 MB each, written and waited for
  bool isDone = true;
  std::exception_ptr error;
};

} // namespace meshwright

#endif // MESHWRIGHT_RUNTIME_COMMON_SNAPSHOTWRITER_H
