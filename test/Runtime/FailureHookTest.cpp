//===- FailureHookTest.cpp - what a failure stops before it ends the process ===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "common/monitor/Failure.h"
#include "common/monitor/WaitMonitor.h"
#include "common/plan/Plan.h"
#include "meshwright/runtime/ShortMessage.h"

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

TEST(ShortMessage, QuotesEightyBytesOfAValue) {
  std::string x(200, 'x'), cut = std::string(80, 'x') + "...";
  EXPECT_EQ(shortMessage("--zero: '" + x + "' is \"" + x + "\", no number"),
            "--zero: '" + cut + "' (200 bytes) is \"" + cut + "\" (200 bytes), no number");
  // Blanks and quotes of the other kind belong to the value.
  EXPECT_EQ(shortMessage("key '\"" + x + " " + x + "'"), "key '\"" + cut.substr(1) + "' (402 bytes)");
  EXPECT_EQ(shortMessage("'" + std::string(79, 'x') + "ä" + x + "'"),
            "'" + std::string(79, 'x') + "...' (281 bytes)");
  // Paths, apostrophes, and what is short or not quoted.
  for (const std::string &whole :
       {"cannot read '/tmp/" + x + "'", "the rank's file " + x + " is another rank's",
        "the ranks' files " + x + " are others'", "'" + std::string(80, 'x') + "'", "'" + x,
        "'" + x + "\n" + x + "'", std::string("''"), std::string("'")})
    EXPECT_EQ(shortMessage(whole), whole);
}

TEST(ShortMessage, IsShortWhateverIsInIt) {
  for (const char *part : {"x", "'", "x'", "'x ", "ä", "\"'\n"}) {
    std::string text;
    while (text.size() < 1000000)
      text += part;
    std::string message = shortMessage("begin " + text + " end");
    EXPECT_LE(message.size(), mostOfMessage) << part;
    EXPECT_EQ(message.substr(0, 6), "begin ");
    EXPECT_EQ(message.substr(message.size() - 4), " end");
  }
}
