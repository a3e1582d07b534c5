//===- RankStatus.h - what a rank is doing, for wait reports --------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// Each rank writes here what it is at; a watching thread (WaitMonitor.h) reads it
// when a wait takes too long or SIGUSR1 arrives. Writes on the fast path are two
// relaxed stores; the peers of a wait are written only once it has become slow.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_RUNTIME_COMMON_RANKSTATUS_H
#define MESHWRIGHT_RUNTIME_COMMON_RANKSTATUS_H

#include <atomic>
#include <chrono>
#include <mutex>
#include <vector>

namespace meshwright {

class RankStatus {
public:
  using Clock = std::chrono::steady_clock;

  explicit RankStatus(int rank) : rank(rank) {}

  const int rank; ///< in the world
  std::atomic<int64_t> step{-1};
  /// Index in the plan's collectives, or -1 outside of them.
  std::atomic<int> collective{-1};
  /// What the rank does, where it is not one of the plan's collectives: a string
  /// that lives for ever.
  std::atomic<const char *> activity{"starting"};
  /// The run is over: other ranks may end at any time.
  std::atomic<bool> ending{false};

  /// A wait that is no longer short: for which world ranks, since when.
  void setWaiting(std::vector<int> missing) {
    std::lock_guard<std::mutex> lock(mutex);
    if (!waiting)
      since = Clock::now();
    waiting = true;
    peers = std::move(missing);
  }
  void clearWaiting() {
    std::lock_guard<std::mutex> lock(mutex);
    waiting = false;
  }

  struct Wait {
    bool waiting = false;
    double seconds = 0;
    std::vector<int> peers;
  };
  Wait wait() const {
    std::lock_guard<std::mutex> lock(mutex);
    if (!waiting)
      return {};
    return {true, std::chrono::duration<double>(Clock::now() - since).count(), peers};
  }

private:
  mutable std::mutex mutex;
  bool waiting = false;
  Clock::time_point since;
  std::vector<int> peers;
};

/// Names what the rank does while the scope lasts.
class ActivityScope {
public:
  ActivityScope(RankStatus &status, const char *activity)
      : status(status), before(status.activity.exchange(activity)) {}
  ~ActivityScope() { status.activity = before; }

private:
  RankStatus &status;
  const char *before;
};

} // namespace meshwright

#endif // MESHWRIGHT_RUNTIME_COMMON_RANKSTATUS_H
