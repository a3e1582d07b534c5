//===- ThreadCommunicator.h - ranks as threads of one process -------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// Members publish the addresses of their buffers, meet, read each other's memory
// directly, and meet again before any of it may change.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_RUNTIME_CPU_THREADCOMMUNICATOR_H
#define MESHWRIGHT_RUNTIME_CPU_THREADCOMMUNICATOR_H

#include "common/communication/Communicator.h"
#include "common/monitor/RankStatus.h"

namespace meshwright {

class ThreadGroup;

class ThreadCommunicator : public Communicator {
public:
  /// The communicators of a world of `ranks` threads; each may use
  /// `threadsPerRank` OpenMP threads on large buffers. `statuses` has an entry per
  /// rank.
  static std::vector<std::unique_ptr<Communicator>>
  createWorld(int ranks, int threadsPerRank, const std::vector<RankStatus *> &statuses);

  ThreadCommunicator(std::shared_ptr<ThreadGroup> group, int rank, int threads, RankStatus &status);
  ~ThreadCommunicator() override;

  std::unique_ptr<Communicator> split(const std::vector<int> &positions) override;
  void barrier() override;
  void post(ElementType type, const void *data, int64_t count, int to) override;
  void finishSend(int to) override;
  void receive(ElementType type, void *data, int64_t count, int from) override;
  void broadcast(ElementType type, void *data, int64_t count, int root) override;
  void reduce(ElementType type, Reduction reduction, const void *input, void *output, int64_t count,
              int root) override;
  void allReduce(ElementType type, Reduction reduction, Segments segments) override;
  void allGather(ElementType type, Segments segments) override;
  void reduceScatter(ElementType type, Reduction reduction, Segments segments) override;
  void allToAll(ElementType type, const void *input, void *output, int64_t count,
                int64_t row) override;
  void gather(ElementType type, const void *input, void *output, int64_t count, int root) override;
  void scatter(ElementType type, const void *input, void *output, int64_t count, int root) override;
  void permute(ElementType type, const void *input, void *output, int64_t count,
               const std::vector<std::pair<int, int>> &pairs) override;
  void exchange(ElementType type, ExchangeTable table, Segments segments,
                void *workspace) override;

private:
  void meet(const char *kind, Segments segments, int64_t width);
  void meet();
  void arrive();
  template <typename Ready> void waitFor(Ready ready, int peer);
  void copy(void *to, const void *from, int64_t bytes) const;
  void reduceRange(ElementType type, Reduction reduction, const std::vector<const char *> &inputs,
                   int64_t count, const std::vector<char *> &outputs) const;
  std::vector<const char *> inputsOf(size_t segment, int64_t bytes) const;

  std::shared_ptr<ThreadGroup> group;
  int threads;
  RankStatus &status;
  uint32_t phase = 0;
  uint64_t splits = 0;
};

} // namespace meshwright

#endif // MESHWRIGHT_RUNTIME_CPU_THREADCOMMUNICATOR_H
