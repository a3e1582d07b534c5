//===- WaitMonitor.h - says what ranks wait for ---------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// A thread that watches the ranks of this process. On SIGUSR1 it prints what each
// is at: which collective (index, kind, IR location), group and missing peers.
// When a wait passes the time-out it prints the same and ends every rank. SIGTERM and
// SIGINT come to it too (StopSignal.h).
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_RUNTIME_COMMON_WAITMONITOR_H
#define MESHWRIGHT_RUNTIME_COMMON_WAITMONITOR_H

#include "common/monitor/RankStatus.h"

#include <functional>
#include <string>
#include <thread>
#include <vector>

namespace meshwright {

struct Plan;

/// Blocks the signals that are for the monitor in this thread and those it starts. To be
/// called before any other thread starts.
void blockMonitorSignals();

/// Seconds a rank waits for others, or for a device that comes no further: MESHWRIGHT_TIMEOUT,
/// else 300.
double waitTimeout();

/// One line on what a rank is doing.
std::string describeStatus(const Plan &plan, const RankStatus &status);

class WaitMonitor {
public:
  /// `statuses` and `plan` outlive the monitor.
  WaitMonitor(const Plan &plan, std::vector<RankStatus *> statuses, double timeout);
  ~WaitMonitor();

  /// Sets what tells a rank that has ended, or -1: a rank that is not waiting for it
  /// ends too, a little later.
  void setLostPeer(std::function<int()> lostPeer);

private:
  void watch();
  void checkPeers();
  void checkWaits() const;
  void checkQueues();
  void report(const char *reason) const;

  const Plan &plan;
  std::vector<RankStatus *> statuses;
  /// How far each rank has come that puts work on a device's queue, and since when.
  struct Queue {
    uint64_t enqueued = 0;
    RankStatus::Clock::time_point since;
    bool waits = false;
  };
  std::vector<Queue> queues;
  double timeout;
  std::mutex mutex; ///< of lostPeer
  std::function<int()> lostPeer;
  std::atomic<bool> stopping{false};
  std::thread thread;
};

} // namespace meshwright

#endif // MESHWRIGHT_RUNTIME_COMMON_WAITMONITOR_H
