//===- RankStatus.h - what a rank is doing, for wait reports --------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// Each rank writes here what it is at; a watching thread (WaitMonitor.h) reads it
// when a wait takes too long or SIGUSR1 arrives. Writes on the fast path are
// relaxed; the peers of a wait are written only once it has become slow.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_RUNTIME_COMMON_RANKSTATUS_H
#define MESHWRIGHT_RUNTIME_COMMON_RANKSTATUS_H

#include <atomic>
#include <chrono>
#include <functional>
#include <mutex>
#include <string>
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
  /// Grows with each call that puts work on a device's queue, which may be full; 0 outside of
  /// those.
  std::atomic<uint64_t> enqueued{0};

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

  /// What says in words where the rank's device is, from any thread; null where there is none.
  void setDevice(std::function<std::string()> function) {
    std::lock_guard<std::mutex> lock(mutex);
    device = std::move(function);
  }
  bool hasDevice() const {
    std::lock_guard<std::mutex> lock(mutex);
    return bool(device);
  }
  /// Empty where it is not known.
  std::string deviceLocation() const {
    std::lock_guard<std::mutex> lock(mutex);
    return device ? device() : "";
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
  std::function<std::string()> device;
};

/// Puts work on a device's queue while the scope lasts.
class EnqueueScope {
public:
  explicit EnqueueScope(RankStatus &status) : status(status) { status.enqueued = 1; }
  ~EnqueueScope() { status.enqueued = 0; }
  EnqueueScope(const EnqueueScope &) = delete;
  EnqueueScope &operator=(const EnqueueScope &) = delete;

private:
  RankStatus &status;
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

/// Waits for other ranks while the scope lasts, in calls that say nothing until they return. Which
/// ranks of `peers` are missing is not known here: those are that print no wait report.
class WaitScope {
public:
  WaitScope(RankStatus &status, const char *activity, std::vector<int> peers = {})
      : activity(status, activity), status(status), peers(std::move(peers)) {
    progress();
  }
  ~WaitScope() { status.clearWaiting(); }
  WaitScope(const WaitScope &) = delete;
  WaitScope &operator=(const WaitScope &) = delete;

  /// A call has returned: the deadline counts anew.
  void progress() {
    status.clearWaiting();
    status.setWaiting(peers);
  }

private:
  ActivityScope activity;
  RankStatus &status;
  std::vector<int> peers;
};

} // namespace meshwright

#endif // MESHWRIGHT_RUNTIME_COMMON_RANKSTATUS_H
