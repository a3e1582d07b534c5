//===- Communication.h - the streams and communicators of a GPU -----------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// What the program communicates runs in its order on one stream beside the one that
// computes; events tie the two together. A collective that is not only started is waited
// for by the computing stream at once. Messages have a communicator, and their sender a
// stream, for each pair of ranks and channel, so that a message on its way holds up
// nothing but the next one of its channel.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_RUNTIME_CUDA_COMMUNICATION_H
#define MESHWRIGHT_RUNTIME_CUDA_COMMUNICATION_H

#include "common/communication/RankGroup.h"
#include "common/monitor/RankStatus.h"
#include "common/plan/Plan.h"
#include "cuda/Libraries.h"
#include "cuda/MessagePairs.h"

#include <map>
#include <vector>

namespace meshwright::cuda {

/// A CUDA event without its time.
class Event {
public:
  Event() { MW_CUDA(cuEventCreate, &event, CU_EVENT_DISABLE_TIMING); }
  ~Event() { Driver::load().cuEventDestroy(event); }
  Event(const Event &) = delete;
  Event &operator=(const Event &) = delete;

  void record(CUstream stream) {
    MW_CUDA(cuEventRecord, event, stream);
    recorded = true;
  }
  /// What comes on `stream` waits for what was recorded; for nothing if nothing was.
  void holdUp(CUstream stream) const {
    if (recorded)
      MW_CUDA(cuStreamWaitEvent, stream, event, 0);
  }
  void forget() { recorded = false; }

private:
  CUevent event = nullptr;
  bool recorded = false;
};

class Communication {
public:
  /// Makes all communicators of the plan. Collective.
  Communication(const Plan &plan, RankGroup &world, RankStatus &status, CUstream compute);
  ~Communication();
  Communication(const Communication &) = delete;
  Communication &operator=(const Communication &) = delete;

  /// Null where there are only messages.
  ncclComm_t group(int32_t number) const { return groups.at(size_t(number)); }
  /// Of each pair that this rank sends messages to or receives them from.
  std::vector<ncclComm_t> pairs() const;

  /// Around each run of a program: events of the run before are forgotten, as a captured
  /// one must not wait for what was not captured, and in the end the computing stream has
  /// waited for all others.
  void beginRun();
  void endRun();

  /// The next collective is only started, as number `start`.
  void startNext(int32_t start) { next = start; }
  /// Calls `body(stream)`, which puts collective `op` on it.
  template <typename Body> void run(int32_t op, Body body) {
    begin(op);
    body(stream);
    end();
  }
  void wait(int32_t start);

  /// Halves of a message, put on a collective's `stream` in `run`. What is sent is copied
  /// to the buffer there, and sent from it on the stream of its channel.
  void send(int32_t group, int32_t peer, ncclDataType_t type, const void *input, size_t count,
            size_t bytes, void *buffer, CUstream stream);
  void receive(int32_t group, int32_t peer, ncclDataType_t type, void *output, size_t count,
               CUstream stream);
  void finishSends();

  /// An Error if NCCL has noticed one.
  void check() const;
  /// Ends all that is under way, also where peers do not answer any more. From any thread.
  void abort() const;
  /// Whether any rank sends messages to another.
  bool hasMessages() const;
  /// Tells `status` which collective the GPU is at, and for whom it waits there; false where it
  /// waits for nobody.
  bool report(RankStatus &status);

private:
  /// Messages of one channel from one rank to another; only these two have it.
  struct Edge {
    ncclComm_t comm = nullptr;
    CUstream stream = nullptr; ///< the sender's
    Event copied, sent;
  };

  void makeGroups(WaitScope &wait);
  void makeEdges(WaitScope &wait);
  /// Sends nothing of the program's from one rank of the edge to the other.
  void connect(const Edge &edge, CUdeviceptr word) const;
  Edge &edge(int32_t group, int from, int to);
  int worldRank(int32_t group, int32_t groupRank) const;
  /// The stream waits for what is computed and is at collective `op`, or no longer.
  void begin(int32_t op);
  void end();
  void note(int64_t op);

  const Plan &plan;
  int rank;
  CUstream compute, stream = nullptr;
  ncclComm_t world = nullptr;
  std::vector<ncclComm_t> groups; ///< by number; null where there are only messages
  std::map<MessagePair, Edge> edges;
  Event computed, communicated;
  bool used = false; ///< in this run
  int32_t next = -1;
  std::map<int32_t, Event> started;

  /// Memory of the host that the GPU writes to where it is: a number that grows, and
  /// the collective's plus 1, or 0 outside of them; and whether the last messages are
  /// waited for.
  volatile uint64_t *progress = nullptr;
  CUdeviceptr progressOnGpu = 0;
  uint64_t noted = 0, seen = 0;
};

} // namespace meshwright::cuda

#endif // MESHWRIGHT_RUNTIME_CUDA_COMMUNICATION_H
