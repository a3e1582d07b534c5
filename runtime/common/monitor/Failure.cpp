//===- Failure.cpp - one rank's failure ends all --------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "common/monitor/Failure.h"

#include "common/monitor/Error.h"
#include "meshwright/runtime/ShortMessage.h"

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <mutex>
#include <new>
#include <set>
#include <thread>
#include <unistd.h>

using namespace meshwright;

namespace {
struct FailureState {
  std::mutex mutex;
  std::atomic<bool> failing{false};
  int rank = 0;
  int processes = 1;
  std::function<void(int)> abort;
  std::set<std::string> cleanup;
  std::map<const FailureHook *, std::function<void()>> hooks;
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

/// Another thread ends the process.
[[noreturn]] static void waitForTheEnd() {
  while (true)
    pause();
}

void meshwright::addFailureCleanup(const std::string &path) {
  std::lock_guard<std::mutex> lock(state().mutex);
  state().cleanup.insert(path);
}

void meshwright::dropFailureCleanup(const std::string &path) {
  std::unique_lock<std::mutex> lock(state().mutex);
  if (!state().failing) {
    state().cleanup.erase(path);
    return;
  }
  lock.unlock();
  waitForTheEnd();
}

FailureHook::FailureHook(std::function<void()> stop) {
  std::lock_guard<std::mutex> lock(state().mutex);
  state().hooks[this] = std::move(stop);
}

FailureHook::~FailureHook() {
  std::unique_lock<std::mutex> lock(state().mutex);
  if (!state().failing) {
    state().hooks.erase(this);
    return;
  }
  // The hook may be running, on what would be destroyed next.
  lock.unlock();
  waitForTheEnd();
}

/// Calls the hooks, which may hang, as what they stop does.
static void stopAll() {
  std::map<const FailureHook *, std::function<void()>> hooks;
  {
    std::lock_guard<std::mutex> lock(state().mutex);
    hooks = state().hooks;
  }
  if (hooks.empty())
    return;
  static std::atomic<bool> done{false};
  std::thread([hooks] {
    for (const auto &[hook, stop] : hooks)
      stop();
    done = true;
  }).detach();
  for (int waited = 0; waited < 200 && !done; ++waited)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
}

/// Whether this thread ends the ranks. What fails on the way ends its process at once.
static thread_local bool isEnding = false;

void meshwright::endAllRanks(const std::string &message, int code, Failed which) {
  FailureState &failure = state();
  if (isEnding)
    _exit(exitFailure);
  if (failure.failing.exchange(true))
    waitForTheEnd();
  isEnding = true;
  if (failure.rank != 0 && failure.processes > 1 && which == Failed::PerhapsAll)
    usleep(3000000);
  if (which == Failed::AnotherRank)
    usleep(500000);

  std::string line = "error: " + shortMessage(message) + "\n";
  fflush(stdout);
  fwrite(line.data(), 1, line.size(), stderr);
  fflush(stderr);
  {
    std::lock_guard<std::mutex> lock(failure.mutex);
    std::error_code ignored;
    for (const std::string &path : failure.cleanup)
      std::filesystem::remove_all(path, ignored);
  }
  stopAll();
  if (failure.abort)
    failure.abort(code);
  _exit(code);
}

void meshwright::endAllRanks(const std::exception &error, const std::string &where) {
  if (dynamic_cast<const LostRank *>(&error))
    endAllRanks(where + error.what(), exitFailure, Failed::AnotherRank);
  if (dynamic_cast<const std::bad_alloc *>(&error) == nullptr)
    endAllRanks(where + error.what());
  std::string rank = "rank " + std::to_string(state().rank) + ": ";
  endAllRanks((where.empty() && state().processes > 1 ? rank : where) + error.what(), exitFailure,
              Failed::ThisRank);
}

void meshwright::endAllRanksOnTerminate() {
  std::set_terminate([] {
    try {
      if (std::exception_ptr current = std::current_exception())
        std::rethrow_exception(current);
    } catch (const std::exception &error) {
      endAllRanks(error);
    } catch (...) {
    }
    // Of what a function throws that must not, as of std::filesystem's iterators without memory, nothing is known.
    if (std::uncaught_exceptions() > 0)
      endAllRanks("a function of the C++ library has failed that cannot report it, most likely as there is no memory left: "
                  "leave the process more memory, or start fewer ranks on the machine");
    abort();
  });
}
