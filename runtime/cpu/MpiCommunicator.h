//===- MpiCommunicator.h - collectives of MPI processes -------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// Collectives of ranks that are processes, made of MPI's messages: MPI's own collectives
// add in an order of their own and block. Reductions send each member the part it
// reduces, from every other member, so that it can add in member order whatever
// arrives first; that moves as many bytes as a ring does. Vectors are taken in
// windows, which bounds the scratch memory. Small tensors of one call are copied
// together and moved as one.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_RUNTIME_CPU_MPICOMMUNICATOR_H
#define MESHWRIGHT_RUNTIME_CPU_MPICOMMUNICATOR_H

#include "common/communication/Communicator.h"
#include "common/monitor/RankStatus.h"
#include "cpu/MpiMessages.h"

namespace meshwright {

class MpiCommunicator : public Communicator {
public:
  /// The world of `mpi`.
  MpiCommunicator(std::shared_ptr<MpiMessages> mpi, RankStatus &status);

  std::unique_ptr<Communicator> split(const std::vector<int> &positions) override;
  int64_t allocatedBytes() const override {
    return int64_t(received.capacity() + packed.capacity());
  }
  void setCalls(const Calls *known) override { mpi->setCalls(known); }
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
  void exchange(ElementType type, ExchangeTable table, Segments segments, void *workspace) override;

private:
  /// One of a set of messages that go at the same time. Null data: no message.
  struct Message {
    enum Direction { Send, Receive } direction;
    int peer;
    void *data;
    int64_t bytes;
  };

  MpiCommunicator(std::shared_ptr<MpiMessages> mpi, RankStatus &status, std::vector<int> members,
                  int rank, std::shared_ptr<int> channels);

  void allReduceOne(ElementType type, Reduction reduction, const void *input, void *output,
                    int64_t count);
  void allGatherOne(ElementType type, const void *input, void *output, int64_t count);
  void reduceScatterOne(ElementType type, Reduction reduction, const void *input, void *output,
                        int64_t count);
  template <typename Move>
  void forEachPack(ElementType type, Segments segments, int64_t inputParts, int64_t outputParts,
                   Move move);

  /// Messages under way, with the world ranks of the peers.
  using Requests = std::vector<std::pair<int, std::unique_ptr<MpiMessages::Request>>>;
  void start(const std::vector<Message> &messages, Requests &requests);
  void exchange(const std::vector<Message> &messages);
  void waitAll(Requests &requests);
  void reduceParts(ElementType type, Reduction reduction, const void *own, void *output,
                   int64_t count) const;
  void sendPart(std::vector<Message> &messages, int peer, const void *data, int64_t bytes) const;
  void receivePart(std::vector<Message> &messages, int peer, void *data, int64_t bytes) const;
  char *scratchFor(int index, int64_t bytes);

  std::shared_ptr<MpiMessages> mpi;
  RankStatus &status;
  /// The number of the next channel; shared by all communicators of the process.
  std::shared_ptr<int> nextChannel;
  int channel;
  /// What other members' parts are received in, and copies of small tensors.
  std::vector<char> received, packed;
  /// By member: the message to it that may not have been taken yet.
  std::vector<Requests> posted;
};

} // namespace meshwright

#endif // MESHWRIGHT_RUNTIME_CPU_MPICOMMUNICATOR_H
