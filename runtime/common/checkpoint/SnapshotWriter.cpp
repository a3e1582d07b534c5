//===- SnapshotWriter.cpp - writing checkpoints beside training -----------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "common/checkpoint/SnapshotWriter.h"

#include "common/checkpoint/SaveFolder.h"
#include "common/monitor/Error.h"
#include "common/monitor/Rounds.h"

#include <algorithm>
#include <cstring>

using namespace meshwright;

SnapshotWriter::SnapshotWriter(const Plan &plan, CoreList cores)
    : plan(plan), cores(std::move(cores)), pages(checkpointBytes(plan)) {
  // A machine that lacks the memory says so now, and the first snapshot takes no page fault.
  std::memset(pages.data(), 0, size_t(checkpointBytes(plan)));
}

SnapshotWriter::~SnapshotWriter() {
  if (thread.joinable())
    thread.join();
}

void SnapshotWriter::start(std::vector<CheckpointFile> newFiles, const TrainingState &newState,
                           std::vector<SaveFolder *> newFolders, int64_t newKeep) {
  if (thread.joinable())
    thread.join();
  files = std::move(newFiles);
  state = newState;
  folders = std::move(newFolders);
  keep = newKeep;
  parts = seen = 0;
  isDone = false;
  thread = std::thread([this] { write(); });
}

void SnapshotWriter::write() {
  std::exception_ptr failure;
  std::string current;
  try {
    if (!cores.empty())
      runOn(cores);
    for (SaveFolder *folder : folders) {
      current = folder->path();
      writeInto(*folder);
    }
  } catch (const std::exception &) {
    failure = std::current_exception();
  }
  std::lock_guard<std::mutex> lock(mutex);
  error = failure;
  failed = failure ? current : "";
  isDone = true;
  progress.notify_all();
}

void SnapshotWriter::writeInto(SaveFolder &folder) {
  constexpr int64_t block = int64_t(16) << 20; // elements
  try {
    CheckpointOutput output(plan, folder, state);
    const float *next = memory();
    int64_t open = 0;
    for (const CheckpointFile &file : files) {
      output.beginFile(file);
      // A call of `write` holds elements of one tensor.
      for (const FileTensor &tensor : file.tensors)
        for (int64_t left = tensor.bytes() / 4; left > 0;) {
          int64_t count = std::min(left, block);
          output.write(next, count);
          next += count;
          left -= count;
          if (open += count * 4; open < Rounds::part)
            continue;
          open = 0;
          std::lock_guard<std::mutex> lock(mutex);
          ++parts;
          progress.notify_all();
        }
      output.endFile();
    }
    output.publish(keep);
  } catch (const std::exception &error) {
    fail("saving the checkpoint of step ", state.step, ": ", error.what());
  }
}

bool SnapshotWriter::awaitPart() {
  std::unique_lock<std::mutex> lock(mutex);
  progress.wait(lock, [&] { return isDone || parts > seen; });
  seen = parts;
  return isDone;
}

void SnapshotWriter::rethrow() {
  std::lock_guard<std::mutex> lock(mutex);
  if (error)
    std::rethrow_exception(error);
}

std::string SnapshotWriter::failedFolder() {
  std::lock_guard<std::mutex> lock(mutex);
  return failed;
}
