//===- FailureHookTest.cpp - what a failure stops before it ends the process ===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "common/monitor/Failure.h"
#include "common/monitor/WaitMonitor.h"
#include "common/plan/Plan.h"

#include <atomic>
#include <chrono>
#include <gtest/gtest.h>
#include <optional>
#include <thread>
#include <unistd.h>

using namespace meshwright;

static void failTogether() {
  std::atomic<bool> ready{false}, stopping{false}, there{true};
  std::thread second([&] {
    std::optional<FailureHook> hook;
    hook.emplace([&] {
      stopping = true;
      std::this_thread::sleep_for(std::chrono::milliseconds(200));
      if (!there)
        _exit(99);
    });
    ready = true;
    while (!stopping)
      std::this_thread::yield();
    hook.reset();
    there = false;
    endAllRanks("two");
  });
  while (!ready)
    std::this_thread::yield();
  endAllRanks("one");
}

/// Two ranks of a process fail: what the first one's failure stops must not be torn down by the
/// second one meanwhile.
TEST(FailureHook, WhatItStopsStaysThere) {
  EXPECT_EXIT(failTogether(), testing::ExitedWithCode(exitFailure), "^error: one\n$");
}

static void failAfterwards() {
  { FailureHook hook([] { _exit(99); }); }
  endAllRanks("one");
}

TEST(FailureHook, DestroyedBeforeIsNotCalled) {
  EXPECT_EXIT(failAfterwards(), testing::ExitedWithCode(exitFailure), "^error: one\n$");
}

static void losePeer(bool ending, int seconds) {
  Plan plan;
  RankStatus status(0);
  status.ending = ending;
  WaitMonitor monitor(plan, {&status}, 300);
  monitor.setLostPeer([] { return 1; });
  std::this_thread::sleep_for(std::chrono::seconds(seconds));
  _exit(0);
}

/// At the end of a run other ranks may go; before, one that has gone ends this one.
TEST(WaitMonitor, OthersMayGoWhereTheRunEnds) {
  EXPECT_EXIT(losePeer(true, 2), testing::ExitedWithCode(0), "^$");
  EXPECT_EXIT(losePeer(false, 20), testing::ExitedWithCode(exitFailure), "error: rank 1 has ended");
}
