//===- Star.cpp - ranks that are connected by way of rank 0 ---------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "cuda/Star.h"

#include "common/communication/Reduce.h"
#include "common/monitor/Error.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

using namespace meshwright;
using namespace meshwright::cuda;

Socket::Socket(int file) : file(file) {
  int on = 1;
  setsockopt(file, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

Socket::~Socket() {
  if (file >= 0)
    close(file);
}

int64_t Socket::send(const void *data, size_t bytes) const {
  ssize_t count = ::send(file, data, bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
  return count >= 0 ? count : errno == EAGAIN || errno == EINTR ? 0 : -1;
}

int64_t Socket::receive(void *data, size_t bytes) const {
  ssize_t count = recv(file, data, bytes, MSG_DONTWAIT);
  return count > 0 ? count : count < 0 && (errno == EAGAIN || errno == EINTR) ? 0 : -1;
}

int meshwright::cuda::lostOf(const Connections &connections) {
  std::vector<pollfd> entries;
  for (const Socket &socket : connections)
    entries.push_back({socket.descriptor(), POLLRDHUP, 0});
  poll(entries.data(), entries.size(), 0);
  auto lost = std::find_if(entries.begin(), entries.end(),
                           [](const pollfd &entry) { return entry.revents != 0; });
  return lost == entries.end() ? -1 : int(lost - entries.begin());
}

/// Waits until the connection with `rank` can go on. Those of the ranks up to `last` that have not
/// come either are missing too.
void Star::await(int rank, int last, short events) {
  pollfd entry = {(*connections)[size_t(rank)].descriptor(), events, 0};
  if (poll(&entry, 1, 100) > 0)
    return;
  do {
    std::vector<int> silent;
    for (int other = rank; other <= last; ++other) {
      pollfd each = {(*connections)[size_t(other)].descriptor(), events, 0};
      if (poll(&each, 1, 0) <= 0)
        silent.push_back(other);
    }
    status.setWaiting(std::move(silent));
  } while (poll(&entry, 1, 500) <= 0);
  status.clearWaiting();
}

/// Calls part(socket, from, bytes) until all of `bytes` have moved.
template <typename Move>
void Star::move(int rank, int last, short events, int64_t bytes, Move part) {
  for (int64_t done = 0; done < bytes;) {
    int64_t count = part((*connections)[size_t(rank)], done, size_t(bytes - done));
    if (count < 0)
      throw LostRank(rank);
    if (count == 0)
      await(rank, last, events);
    done += count;
  }
}

// Each message says how long it is, so that ranks that are out of step do not take other data.
void Star::put(int rank, const void *data, int64_t bytes) {
  for (auto [from, size] : {std::pair<const void *, int64_t>(&bytes, sizeof(bytes)), {data, bytes}})
    move(rank, rank, POLLOUT, size, [from = from](const Socket &socket, int64_t at, size_t left) {
      return socket.send(static_cast<const char *>(from) + at, left);
    });
}

void Star::get(int rank, void *data, int64_t bytes, int last) {
  int64_t sent = 0;
  for (auto [to, size] : {std::pair<void *, int64_t>(&sent, sizeof(sent)), {data, bytes}}) {
    move(rank, last, POLLIN, size, [to = to](const Socket &socket, int64_t at, size_t left) {
      return socket.receive(static_cast<char *>(to) + at, left);
    });
    if (sent != bytes)
      fail("rank ", rank, " sent ", sent, " bytes, but ", bytes,
           " were expected; the program is broken, please report it");
  }
}

void Star::barrier() {
  int32_t here = 1;
  std::vector<int32_t> all(members.size());
  allGather(ElementType::I32, &here, all.data(), 1);
}

void Star::send(ElementType type, const void *data, int64_t count, int to) {
  put(to, data, count * bytesOf(type));
}

void Star::receive(ElementType type, void *data, int64_t count, int from) {
  get(from, data, count * bytesOf(type));
}

void Star::broadcast(ElementType type, void *data, int64_t count, int root) {
  int64_t bytes = count * bytesOf(type);
  if (rank() != 0)
    return rank() == root ? put(0, data, bytes) : get(0, data, bytes);
  if (root != 0)
    get(root, data, bytes);
  for (int other = 1; other < size(); ++other)
    if (other != root)
      put(other, data, bytes);
}

void Star::allGather(ElementType type, const void *input, void *output, int64_t count) {
  int64_t bytes = count * bytesOf(type);
  char *all = static_cast<char *>(output);
  if (rank() != 0) {
    put(0, input, bytes);
    return get(0, all, bytes * size());
  }
  if (input != output && bytes > 0)
    std::memcpy(output, input, size_t(bytes));
  for (int other = 1; other < size(); ++other)
    get(other, all + other * bytes, bytes, size() - 1);
  for (int other = 1; other < size(); ++other)
    put(other, all, bytes * size());
}

void Star::allReduce(ElementType type, Reduction reduction, const void *input, void *output,
                     int64_t count) {
  int64_t width = bytesOf(type), bytes = count * width;
  std::vector<char> all(size_t(bytes * size()));
  allGather(type, input, all.data(), count);
  std::vector<const void *> parts(members.size());
  for (int64_t at = 0; at < count; at += reduceBlockElements) {
    for (int other = 0; other < size(); ++other)
      parts[size_t(other)] = all.data() + other * bytes + at * width;
    reduceBlock(type, reduction, parts.data(), size(), static_cast<char *>(output) + at * width,
                std::min(reduceBlockElements, count - at));
  }
}
