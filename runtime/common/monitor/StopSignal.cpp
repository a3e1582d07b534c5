//===- StopSignal.cpp - SIGTERM and SIGINT --------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "common/monitor/StopSignal.h"

#include <atomic>
#include <csignal>

using namespace meshwright;

static std::atomic<int> listeners{0}, request{0};

StopRequests::StopRequests() { ++listeners; }
StopRequests::~StopRequests() { --listeners; }

int meshwright::stopRequest() { return request; }

void meshwright::receiveStopSignal(int number) {
  int none = 0;
  if (listeners > 0 && request.compare_exchange_strong(none, number))
    return;
  // As if it had never been blocked.
  signal(number, SIG_DFL);
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, number);
  pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
  raise(number);
}
