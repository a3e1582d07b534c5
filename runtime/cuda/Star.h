//===- Star.h - ranks that are connected by way of rank 0 -----------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_RUNTIME_CUDA_STAR_H
#define MESHWRIGHT_RUNTIME_CUDA_STAR_H

#include "common/communication/RankGroup.h"
#include "common/monitor/RankStatus.h"

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace meshwright::cuda {

/// A TCP socket, closed at its end.
class Socket {
public:
  Socket() = default;
  explicit Socket(int file);
  Socket(Socket &&other) : file(std::exchange(other.file, -1)) {}
  Socket &operator=(Socket &&other) {
    std::swap(file, other.file);
    return *this;
  }
  ~Socket();
  bool isOpen() const { return file >= 0; }
  int descriptor() const { return file; }

  /// As much as goes at once: how many bytes, 0 if none, or -1 if the connection has ended.
  int64_t send(const void *data, size_t bytes) const;
  int64_t receive(void *data, size_t bytes) const;

private:
  int file = -1;
};

/// By rank: rank 0's to all others, or the others' to rank 0.
using Connections = std::vector<Socket>;

/// A rank whose connection has ended, seen also behind data that has not been read yet; or -1.
int lostOf(const Connections &connections);

/// All ranks of a job. A rank that waits says so in `status`.
class Star : public RankGroup {
public:
  Star(int rank, std::shared_ptr<Connections> connections, RankStatus &status)
      : RankGroup(firstRanks(int(connections->size())), rank), connections(std::move(connections)),
        status(status) {}

  void barrier() override;
  void send(ElementType type, const void *data, int64_t count, int to) override;
  void receive(ElementType type, void *data, int64_t count, int from) override;
  void broadcast(ElementType type, void *data, int64_t count, int root) override;
  void allGather(ElementType type, const void *input, void *output, int64_t count) override;
  void allReduce(ElementType type, Reduction reduction, const void *input, void *output,
                 int64_t count) override;

private:
  void put(int rank, const void *data, int64_t bytes);
  void get(int rank, void *data, int64_t bytes, int last);
  void get(int rank, void *data, int64_t bytes) { get(rank, data, bytes, rank); }
  template <typename Move> void move(int rank, int last, short events, int64_t bytes, Move part);
  void await(int rank, int last, short events);

  std::shared_ptr<Connections> connections;
  RankStatus &status;
};

} // namespace meshwright::cuda

#endif // MESHWRIGHT_RUNTIME_CUDA_STAR_H
