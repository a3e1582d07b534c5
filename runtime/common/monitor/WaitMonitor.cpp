//===- WaitMonitor.cpp - says what ranks wait for -------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "common/monitor/WaitMonitor.h"

#include "common/monitor/Error.h"
#include "common/monitor/Failure.h"
#include "common/monitor/StopSignal.h"
#include "common/plan/Plan.h"

#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>

using namespace meshwright;

/// SIGTERM and SIGINT too, unless whoever started the process has them ignored, as shells do
/// with what they start in the background.
static sigset_t monitorSignals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGUSR1);
  for (int number : {SIGTERM, SIGINT}) {
    struct sigaction action;
    if (sigaction(number, nullptr, &action) == 0 && action.sa_handler != SIG_IGN)
      sigaddset(&set, number);
  }
  return set;
}

void meshwright::blockMonitorSignals() {
  sigset_t set = monitorSignals();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
}

double meshwright::waitTimeout() {
  const char *value = getenv("MESHWRIGHT_TIMEOUT");
  if (!value)
    return 300;
  char *end;
  double seconds = strtod(value, &end);
  if (end == value || *end || !(seconds > 0) || std::isinf(seconds))
    fail("MESHWRIGHT_TIMEOUT is \"", value, "\": it must be a positive number of seconds");
  return std::min(seconds, 1e6); // Twelve days; clocks count nanoseconds in 64 bits.
}

std::string meshwright::describeStatus(const Plan &plan, const RankStatus &status) {
  std::string line = text("rank ", status.rank);
  if (int64_t step = status.step; step >= 0)
    line += text(" (step ", step, ")");
  RankStatus::Wait wait = status.wait();
  line += wait.waiting ? text(": waiting for ", int64_t(wait.seconds), " s in ") : ": busy with ";
  std::string location = status.deviceLocation();
  int index = status.collective;
  if (index < 0 || index >= int(plan.collectives.size())) {
    line += status.activity.load() + (location.empty() ? "" : "; " + location);
  } else {
    line += plan.describeCollective(index);
  }
  if (wait.waiting && !wait.peers.empty()) {
    line += wait.peers.size() == 1 ? " for rank" : " for ranks";
    for (int peer : wait.peers)
      line += " " + std::to_string(peer);
  }
  return line;
}

WaitMonitor::WaitMonitor(const Plan &plan, std::vector<RankStatus *> statuses, double timeout)
    : plan(plan), statuses(std::move(statuses)), queues(this->statuses.size()), timeout(timeout),
      thread([this] { watch(); }) {}

WaitMonitor::~WaitMonitor() {
  stopping = true;
  thread.join();
}

void WaitMonitor::report(const char *reason) const {
  std::string lines = text("wait report (", reason, "):\n");
  for (const RankStatus *status : statuses)
    lines += "  " + describeStatus(plan, *status) + "\n";
  fwrite(lines.data(), 1, lines.size(), stderr);
  fflush(stderr);
}

void WaitMonitor::setLostPeer(std::function<int()> function) {
  std::lock_guard<std::mutex> lock(mutex);
  lostPeer = std::move(function);
}

void WaitMonitor::checkWaits() const {
  for (const RankStatus *status : statuses) {
    RankStatus::Wait wait = status->wait();
    if (!wait.waiting || wait.seconds <= timeout)
      continue;
    report("time-out");
    // Other processes' monitors reach the same point; let them report too.
    std::this_thread::sleep_for(std::chrono::seconds(1));
    if (wait.peers.empty() && status->hasDevice())
      endAllRanks(text("the device of rank ", status->rank, " made no progress for ", timeout,
                       " s: see the wait report above for where it is; MESHWRIGHT_TIMEOUT sets the "
                       "limit"));
    endAllRanks(text("rank ", status->rank, " waited longer than ", timeout,
                     " s for others: see the wait report above for whom, and look at these "
                     "ranks; MESHWRIGHT_TIMEOUT sets the limit"));
  }
}

/// Where a device hangs, the calls that give it work wait sooner or later, and say nothing.
void WaitMonitor::checkQueues() {
  constexpr auto slow = std::chrono::seconds(1);
  for (size_t i = 0; i < statuses.size(); ++i) {
    uint64_t now = statuses[i]->enqueued;
    Queue &queue = queues[i];
    if (now != queue.enqueued) {
      if (queue.waits)
        statuses[i]->clearWaiting();
      queue = {now, RankStatus::Clock::now(), false};
    } else if (now && !queue.waits && RankStatus::Clock::now() - queue.since > slow) {
      queue.waits = true;
      statuses[i]->setWaiting({});
    }
  }
}

/// A rank that communicates notices the end of another by itself; this is for one
/// that does not, be it busy or stuck. At the end of a run ranks may go.
void WaitMonitor::checkPeers() {
  std::lock_guard<std::mutex> lock(mutex);
  auto lost = [&] { return lostPeer && !statuses[0]->ending ? lostPeer() : -1; };
  if (lost() < 0)
    return;
  std::this_thread::sleep_for(std::chrono::milliseconds(250));
  int peer = lost();
  if (peer < 0)
    return;
  std::string doing;
  for (const RankStatus *status : statuses)
    doing += "\n  " + describeStatus(plan, *status);
  endAllRanks(LostRank(peer, doing));
}

void WaitMonitor::watch() {
  sigset_t set = monitorSignals();
  const timespec slice = {0, 50000000};
  while (!stopping) {
    int signal = sigtimedwait(&set, nullptr, &slice);
    if (signal == SIGUSR1)
      report("SIGUSR1");
    else if (signal > 0)
      receiveStopSignal(signal);
    checkQueues();
    checkWaits();
    checkPeers();
  }
}
