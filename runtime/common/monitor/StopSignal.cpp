//===- StopSignal.cpp - SIGTERM and SIGINT --------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "common/monitor/StopSignal.h"

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <unistd.h>

using namespace meshwright;

using Clock = std::chrono::steady_clock;
constexpr auto sameRequest = std::chrono::seconds(1);

static std::atomic<int> listeners{0}, request{0};
static std::atomic<const char *> answer{nullptr};
static Clock::time_point requested; ///< of the wait monitor's thread alone

StopRequests::StopRequests(const char *text) {
  if (text)
    answer = text;
  ++listeners;
}
StopRequests::~StopRequests() { --listeners; }

int meshwright::stopRequest() { return request; }

void meshwright::receiveStopSignal(int number) {
  int none = 0;
  if (listeners > 0 && request.compare_exchange_strong(none, number)) {
    requested = Clock::now();
    // A line that shows progress is not ended.
    if (const char *text = answer)
      fprintf(stderr, "%s%s\n", isatty(STDOUT_FILENO) ? "\n" : "", text);
    return;
  }
  if (request && Clock::now() - requested < sameRequest)
    return; // Also where the run has ended meanwhile.
  // As if it had never been blocked.
  signal(number, SIG_DFL);
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, number);
  pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
  raise(number);
}
