//===- FakeStreamsTest.cpp - the fake GPU notices work out of order ---------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "FakeStreams.h"

#include <chrono>
#include <gtest/gtest.h>
#include <thread>

using namespace fake;

namespace {
class Streams : public testing::Test {
protected:
  Streams() {
    cuCtxSetCurrent(CUcontext(size_t(1)));
    cuStreamCreate(&a, CU_STREAM_NON_BLOCKING);
    cuStreamCreateWithPriority(&b, CU_STREAM_NON_BLOCKING, -5);
    cuEventCreate(&event, CU_EVENT_DEFAULT);
    cuEventCreate(&back, CU_EVENT_DISABLE_TIMING);
  }
  void touch(CUstream stream, Access::Kind kind, const char *name) {
    submit(stream, {name, {{kind, memory, 64}}, [this] { return ++done, true; }});
  }
  void order(CUstream from, CUevent by, CUstream to) {
    cuEventRecord(by, from);
    cuStreamWaitEvent(to, by, 0);
  }

  CUstream a, b;
  CUevent event, back;
  int done = 0;
  /// Its own for each test: what touched memory is remembered.
  static inline CUdeviceptr last = 0;
  CUdeviceptr memory = last += 4096;
};

TEST_F(Streams, OrderByEvent) {
  touch(a, Access::Write, "write");
  order(a, event, b);
  touch(b, Access::Read, "read");
  EXPECT_EQ(done, 2);
}

TEST_F(Streams, ReadingTogether) {
  touch(a, Access::Read, "one");
  touch(b, Access::Read, "other");
  EXPECT_EQ(done, 2);
}

TEST_F(Streams, ReadTooEarly) {
  EXPECT_EXIT(
      {
        touch(a, Access::Write, "write");
        touch(b, Access::Read, "read");
      },
      testing::ExitedWithCode(99), "read does not wait for write");
}

TEST_F(Streams, OverwrittenTooEarly) {
  EXPECT_EXIT(
      {
        order(a, event, b); // Recorded before what it should be recorded after.
        touch(a, Access::Use, "kernel");
        touch(b, Access::Write, "write");
      },
      testing::ExitedWithCode(99), "write does not wait for kernel");
}

TEST_F(Streams, TheHostWaits) {
  touch(a, Access::Write, "write");
  EXPECT_EQ(cuStreamQuery(a), CUDA_SUCCESS);
  touch(b, Access::Write, "again");
  EXPECT_EQ(done, 2);
}

TEST_F(Streams, StallsReachWhatWaits) {
  submit(a, {"stall", {}, [] { return false; }});
  order(a, event, b);
  touch(b, Access::Write, "never");
  EXPECT_EQ(cuStreamQuery(b), CUDA_ERROR_NOT_READY);
  EXPECT_EQ(done, 0);
}

TEST_F(Streams, AGraphRunsWhenItIsLaunched) {
  CUgraph graph;
  CUgraphExec executable;
  cuStreamBeginCapture(a, CU_STREAM_CAPTURE_MODE_RELAXED);
  touch(a, Access::Write, "write");
  order(a, event, b);
  touch(b, Access::Read, "read");
  order(b, back, a);
  ASSERT_EQ(cuStreamEndCapture(a, &graph), CUDA_SUCCESS);
  EXPECT_EQ(done, 0);
  cuGraphInstantiate(&executable, graph, CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY);
  cuGraphLaunch(executable, a);
  cuGraphLaunch(executable, a);
  EXPECT_EQ(done, 4);
}

TEST_F(Streams, OrderInsideOfAGraph) {
  EXPECT_EXIT(
      {
        CUgraph graph;
        CUgraphExec executable;
        cuStreamBeginCapture(a, CU_STREAM_CAPTURE_MODE_RELAXED);
        order(a, event, b);
        touch(a, Access::Write, "write");
        touch(b, Access::Read, "read");
        order(b, back, a);
        cuStreamEndCapture(a, &graph);
        cuGraphInstantiate(&executable, graph, CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY);
        cuGraphLaunch(executable, a);
      },
      testing::ExitedWithCode(99), "read does not wait for write");
}

TEST_F(Streams, BranchesOfACaptureAreJoined) {
  EXPECT_EXIT(
      {
        CUgraph graph;
        cuStreamBeginCapture(a, CU_STREAM_CAPTURE_MODE_RELAXED);
        order(a, event, b);
        touch(b, Access::Read, "read");
        cuStreamEndCapture(a, &graph);
      },
      testing::ExitedWithCode(99), "is not joined");
}

TEST_F(Streams, ACaptureWaitsForNothingOutside) {
  EXPECT_EXIT(
      {
        cuEventRecord(event, b);
        cuStreamBeginCapture(a, CU_STREAM_CAPTURE_MODE_RELAXED);
        cuStreamWaitEvent(a, event, 0);
      },
      testing::ExitedWithCode(99), "waits for what is not");
}

TEST_F(Streams, AGraphKeepsPriorities) {
  EXPECT_EXIT(
      {
        CUgraph graph;
        CUgraphExec executable;
        cuStreamBeginCapture(a, CU_STREAM_CAPTURE_MODE_RELAXED);
        order(a, event, b);
        touch(b, Access::Read, "read");
        order(b, back, a);
        cuStreamEndCapture(a, &graph);
        cuGraphInstantiate(&executable, graph, 0);
      },
      testing::ExitedWithCode(99), "the priorities of streams get lost");
}

TEST_F(Streams, ThreadsHaveNoContextAtFirst) {
  EXPECT_EXIT(
      {
        cuCtxSetCurrent(nullptr);
        cuStreamQuery(a);
      },
      testing::ExitedWithCode(99), "cuStreamQuery in a thread without a context");
  EXPECT_EXIT(
      {
        cuCtxSetCurrent(CUcontext(size_t(2)));
        cuEventRecord(event, a);
      },
      testing::ExitedWithCode(99), "the event is another context's");
}

TEST_F(Streams, TimesOfEventsThatAreOver) {
  float ms = 0;
  EXPECT_EQ(cuEventElapsedTime(&ms, event, event), CUDA_ERROR_INVALID_HANDLE); // never recorded
  touch(a, Access::Write, "write");
  cuEventRecord(event, a);
  EXPECT_EQ(cuEventQuery(event), CUDA_ERROR_NOT_READY);
  EXPECT_EQ(cuEventElapsedTime(&ms, event, event), CUDA_ERROR_NOT_READY);
  EXPECT_EQ(cuStreamQuery(b), CUDA_SUCCESS); // another stream
  EXPECT_EQ(cuEventQuery(event), CUDA_ERROR_NOT_READY);
  EXPECT_EQ(cuStreamQuery(a), CUDA_SUCCESS);
  EXPECT_EQ(cuEventElapsedTime(&ms, event, event), CUDA_SUCCESS);
  cuEventRecord(back, a);
  EXPECT_EQ(cuEventElapsedTime(&ms, event, back), CUDA_ERROR_INVALID_HANDLE); // has no time
}

TEST_F(Streams, TheHostsMemoryStaysWhileItIsCopied) {
  char words[16] = "as it was";
  auto copy = [&](CUstream stream) {
    Work work{"copy", {{Access::Write, memory, 16}}, [] { return true; }};
    work.source = words;
    work.sourceBytes = sizeof(words);
    submit(stream, work);
  };
  copy(a);
  EXPECT_EQ(cuStreamQuery(a), CUDA_SUCCESS);
  words[0] = 'A';
  EXPECT_EXIT(
      {
        copy(a);
        words[0] = 'a';
        cuStreamQuery(a);
      },
      testing::ExitedWithCode(99), "written to before the copy was known to have ended");
  EXPECT_EXIT(
      {
        cuStreamBeginCapture(a, CU_STREAM_CAPTURE_MODE_RELAXED);
        copy(a);
      },
      testing::ExitedWithCode(99), "memory of the host that is not pinned");
}

TEST_F(Streams, AMessageIsSentWhenItIsTaken) {
  auto way = std::make_shared<Flag>();
  Work send{"send", {{Access::Read, memory, 64}}, [] { return true; }};
  send.sends = way;
  submit(a, send);
  EXPECT_EQ(cuStreamQuery(a), CUDA_ERROR_NOT_READY);
  touch(b, Access::Read, "beside it");
  order(a, event, b);
  EXPECT_EQ(cuStreamQuery(b), CUDA_ERROR_NOT_READY);
  std::thread other([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    **way = true;
  });
  touch(b, Access::Write, "behind it"); // Waits.
  EXPECT_TRUE((*way)->load());
  EXPECT_EQ(cuStreamQuery(a), CUDA_SUCCESS);
  other.join();
  EXPECT_EQ(done, 2);
}

TEST_F(Streams, MessagesOfAGroupGoTogether) {
  auto way = std::make_shared<Flag>();
  Work send{"send", {}, [] { return true; }};
  Work receive{"receive", {}, [way] { return (**way = true), true; }};
  send.sends = way;
  send.group = receive.group = 1;
  submit(a, send);
  submit(a, receive);
  EXPECT_EQ(cuStreamQuery(a), CUDA_SUCCESS);
}
} // namespace
