//===- TraceTest.cpp - what traces keep and drop ------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "common/monitor/Trace.h"
#include "Process.h"
#include "common/checkpoint/OutputFile.h"
#include "cpu/ThreadCommunicator.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <fstream>
#include <thread>

using namespace meshwright;

namespace {
/// The file that one rank's trace becomes.
nlohmann::json written(const Trace &trace) {
  RankStatus status(0);
  auto world = ThreadCommunicator::createWorld(1, 1, {&status});
  std::string path = testing::TempDir() + "/trace.json";
  {
    OutputFile output(path);
    Trace::write(trace, *world[0], &output);
  }
  std::ifstream file(path);
  return nlohmann::json::parse(file)["traceEvents"];
}
} // namespace

TEST(Trace, KeepsWhatIsNestedAndEscapesNames) {
  Trace trace;
  trace.open("outer \"a\\b\"", "task", "layers", 3, -1);
  trace.open("inner", "compute", nullptr, -1, 40);
  trace.close();
  trace.close();
  auto events = written(trace);
  ASSERT_EQ(events.size(), 4u); // process, thread, and two spans
  const auto &inner = events[2], &outer = events[3];
  EXPECT_EQ(outer["name"], "outer \"a\\b\"");
  EXPECT_EQ(outer["args"]["location"], "layers");
  EXPECT_EQ(outer["args"]["index"], 3);
  EXPECT_FALSE(outer["args"].contains("bytes"));
  EXPECT_EQ(inner["args"]["bytes"], 40);
  EXPECT_LE(double(outer["ts"]), double(inner["ts"]));
  EXPECT_GE(double(outer["ts"]) + double(outer["dur"]),
            double(inner["ts"]) + double(inner["dur"]));
}

TEST(Trace, SaysHowManyItDropped) {
  Trace trace;
  for (size_t i = 0; i < Trace::limit + 5; ++i)
    trace.add("op", "compute", 0, 1);
  EXPECT_EQ(trace.droppedSpans(), 5u);
}

TEST(Trace, SaysInTheFileWhatItDropped) {
  Trace trace;
  trace.recording = false;
  trace.add("op", "compute", 0, 1); // of a step that nobody asked for: not dropped
  trace.recording = true;
  trace.add("op", "compute", 0, 1);
  auto events = written(trace);
  EXPECT_EQ(events[0]["args"]["dropped_spans"], 0);
  EXPECT_EQ(events.size(), 3u);
}

TEST(Trace, HasARowForCommunicationBesideComputation) {
  Trace trace;
  trace.add("mine", "compute", 0, 1);
  std::thread([&] {
    Trace::row = 1;
    trace.add("other", "collective", 0, 1);
  }).join();
  auto events = written(trace);
  ASSERT_EQ(events.size(), 5u);
  EXPECT_EQ(events[3]["tid"], 0);
  EXPECT_EQ(events[4]["tid"], 1);
}
