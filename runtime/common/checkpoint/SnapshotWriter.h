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
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace meshwright {

class SnapshotWriter {
public:
  /// Takes the memory of a copy, all of it, now. The thread runs on `cores`, or on those of who
  /// starts it if there are none.
  SnapshotWriter(const Plan &plan, CoreList cores);
  ~SnapshotWriter();
  SnapshotWriter(const SnapshotWriter &) = delete;
  SnapshotWriter &operator=(const SnapshotWriter &) = delete;

  float *memory() const { return reinterpret_cast<float *>(pages.data()); }
  /// Writes what `memory` holds of `files` into `folders`, one checkpoint after the other, while
  /// the caller goes on. None may be in flight.
  void start(std::vector<CheckpointFile> files, const TrainingState &state,
             std::vector<SaveFolder *> folders, int64_t keep);
  /// Waits until the checkpoint in flight is written, or its next 256 MB are. Returns whether all
  /// of it is.
  bool awaitPart();
  /// Throws the error that ended the last checkpoint, if one did. Does not wait.
  void rethrow();
  /// The folder in which the last checkpoint has failed; empty if it has not.
  std::string failedFolder();

private:
  void write();
  void writeInto(SaveFolder &folder);

  const Plan &plan;
  CoreList cores;
  Pages pages;
  std::vector<CheckpointFile> files;
  TrainingState state;
  std::vector<SaveFolder *> folders;
  int64_t keep = 0;

  std::thread thread;
  std::mutex mutex;
  std::condition_variable progress;
  int64_t parts = 0, seen = 0; ///< 256 MB each, written and waited for
  bool isDone = true;
  std::exception_ptr error;
  std::string failed; ///< the folder of `error`
};

} // namespace meshwright

#endif // MESHWRIGHT_RUNTIME_COMMON_SNAPSHOTWRITER_H
