//===- SnapshotWriter.cpp - writing checkpoints beside training -----------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "common/checkpoint/SnapshotWriter.h"

#include "common/monitor/Error.h"
#include "common/monitor/Rounds.h"

#include <algorithm>
#include <cstring>

using namespace meshwright;

SnapshotWriter::SnapshotWriter(int64_t bytes, CoreList cores) : cores(std::move(cores)), pages(bytes) {
  // A machine that lacks the memory says so now, and the first snapshot takes no page fault.
  std::memset(pages.data(), 0, size_t(bytes));
}

SnapshotWriter::~SnapshotWriter() {
  if (thread.joinable())
    thread.join();
}

void SnapshotWriter::start(std::function<void()> work) {
  if (thread.joinable())
    thread.join();
  parts = seen = 0;
  isDone = false;
  thread = std::thread([this, work = std::move(work)] {
    std::exception_ptr failure;
    try {
      if (!cores.empty())
        runOn(cores);
      work();
    } catch (const std::exception &) {
      failure = std::current_exception();
    }
    std::lock_guard<std::mutex> lock(mutex);
    error = failure;
    isDone = true;
    progress.notify_all();
  });
}

void SnapshotWriter::write(const std::vector<CheckpointFile> &files, CheckpointOutput &output) {
  constexpr int64_t block = int64_t(16) << 20; // elements
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
}

bool SnapshotWriter::isIdle() {
  std::lock_guard<std::mutex> lock(mutex);
  return isDone;
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
