//===- Failure.cpp - one rank's failure ends all --------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "common/Failure.h"

#include <atomic>
#include <cstdio>
#include <filesystem>
#include <mutex>
#include <unistd.h>

using namespace meshwright;

namespace {
struct FailureState {
  std::mutex mutex;
  std::atomic<bool> failing{false};
  int rank = 0;
  int processes = 1;
  std::function<void(int)> abort;
  std::string cleanup;
};
} // namespace

// Never destroyed: threads may still fail while static objects are torn down.
static FailureState &state() {
  static FailureState *instance = new FailureState;
  return *instance;
}

void meshwright::setFailureProcess(int rank, int processes) {
  state().rank = rank;
  state().processes = processes;
}

void meshwright::setFailureAbort(std::function<void(int)> abort) {
  state().abort = std::move(abort);
}

void meshwright::setFailureCleanup(const std::string &path) {
  std::lock_guard<std::mutex> lock(state().mutex);
  state().cleanup = path;
}

void meshwright::endAllRanks(const std::string &message, int code) {
  FailureState &failure = state();
  if (failure.failing.exchange(true))
    while (true) // Another thread is ending the process.
      pause();
  if (failure.rank != 0 && failure.processes > 1)
    usleep(3000000);

  std::string line = "error: " + message + "\n";
  fflush(stdout);
  fwrite(line.data(), 1, line.size(), stderr);
  fflush(stderr);
  {
    std::lock_guard<std::mutex> lock(failure.mutex);
    if (!failure.cleanup.empty()) {
      std::error_code ignored;
      std::filesystem::remove_all(failure.cleanup, ignored);
    }
  }
  if (failure.abort)
    failure.abort(code);
  _exit(code);
}
