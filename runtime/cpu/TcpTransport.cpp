//===- TcpTransport.cpp - messages by TCP ---------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "cpu/TcpTransport.h"

#include "common/monitor/Error.h"

#include <cerrno>
#include <cstring>
#include <deque>
#include <map>
#include <poll.h>
#include <vector>

using namespace meshwright;

namespace {
/// Goes before every message.
struct Header {
  int32_t channel, call;
  int64_t bytes;
};

struct TcpRequest final : Transport::Request {
  int peer = 0;
  char *data = nullptr;
  int64_t bytes = 0;
  bool done = false;
  Header header = {}; ///< of a message that is sent
  int call = -1, theirs = -1; ///< of a message that is received: the two ends' calls
};

/// One connection: what is being sent and received on it.
struct Peer {
  Socket socket;
  bool closed = false;
  std::deque<TcpRequest *> sending;
  int64_t sent = 0; ///< of the first one's header and data
  Header header = {};
  int64_t received = 0; ///< of the current message's header and data
  TcpRequest *target = nullptr;
  std::vector<char> early; ///< a message nobody has asked for yet
  std::map<int64_t, std::deque<TcpRequest *>> waiting;
  std::map<int64_t, std::deque<std::pair<Header, std::vector<char>>>> arrived;
};

class TcpTransport final : public Transport {
public:
  TcpTransport(int rank, int processes, const TcpAddress &master);

  int rank() const override { return self; }
  int size() const override { return int(peers.size()); }
  std::unique_ptr<Request> startSend(int peer, int channel, int call, const void *data,
                                     int64_t bytes) override;
  std::unique_ptr<Request> startReceive(int peer, int channel, int call, void *data,
                                        int64_t bytes) override;
  bool test(Request &request) override;
  void idle(std::chrono::nanoseconds) override { pollSockets(1); }
  uint64_t moved() const override { return movedBytes; }
  int lostPeer() const override;
  // The connections close with the process, which the others notice.
  void abort(int) override {}
  void finish() override {}

private:
  std::vector<pollfd> pollSockets(int milliseconds);
  void progress();
  void pumpOut(Peer &peer);
  void pumpIn(Peer &peer);
  void check(const TcpRequest &request, const Header &header) const {
    checkCall(request.call, request.peer, header.call);
    checkLength(request.peer, header.bytes, request.bytes);
  }
  void beginMessage(Peer &peer);
  void endMessage(Peer &peer);

  int self;
  std::vector<Peer> peers;
  uint64_t movedBytes = 0;
};
} // namespace

TcpTransport::TcpTransport(int rank, int processes, const TcpAddress &master)
    : self(rank), peers(size_t(processes)) {
  if (processes == 1)
    return;
  std::vector<Socket> sockets = meetRanks(rank, processes, master);
  for (size_t i = 0; i < sockets.size(); ++i)
    peers[i].socket = std::move(sockets[i]);
}

std::unique_ptr<Transport::Request> TcpTransport::startSend(int peer, int channel, int call,
                                                            const void *data, int64_t bytes) {
  auto request = std::make_unique<TcpRequest>();
  request->peer = peer;
  request->data = static_cast<char *>(const_cast<void *>(data));
  request->bytes = bytes;
  request->header = {channel, call, bytes};
  peers[size_t(peer)].sending.push_back(request.get());
  return request;
}

std::unique_ptr<Transport::Request> TcpTransport::startReceive(int peer, int channel, int call,
                                                               void *data, int64_t bytes) {
  auto request = std::make_unique<TcpRequest>();
  request->peer = peer;
  request->data = static_cast<char *>(data);
  request->bytes = bytes;
  request->call = call;
  Peer &from = peers[size_t(peer)];
  auto &early = from.arrived[channel];
  if (early.empty()) {
    from.waiting[channel].push_back(request.get());
    return request;
  }
  auto [header, message] = std::move(early.front());
  early.pop_front();
  check(*request, header);
  std::memcpy(data, message.data(), size_t(bytes));
  request->done = true;
  return request;
}

bool TcpTransport::test(Request &base) {
  auto &request = static_cast<TcpRequest &>(base);
  if (!request.done)
    progress();
  if (!request.done && peers[size_t(request.peer)].closed)
    throw LostRank(request.peer);
  if (request.done)
    checkCall(request.call, request.peer, request.theirs);
  return request.done;
}

// Sees the end of a connection behind data that has not been read yet.
int TcpTransport::lostPeer() const {
  std::vector<pollfd> entries(peers.size());
  for (size_t i = 0; i < peers.size(); ++i)
    entries[i] = {peers[i].socket.descriptor(), POLLRDHUP, 0};
  poll(entries.data(), entries.size(), 0);
  for (size_t i = 0; i < peers.size(); ++i)
    if (entries[i].revents)
      return int(i);
  return -1;
}

/// Waits at most so long until a socket can be read, or written where something is
/// to be sent.
std::vector<pollfd> TcpTransport::pollSockets(int milliseconds) {
  std::vector<pollfd> entries(peers.size());
  for (size_t i = 0; i < peers.size(); ++i) {
    bool open = int(i) != self && !peers[i].closed;
    entries[i] = {open ? peers[i].socket.descriptor() : -1,
                  short(POLLIN | (peers[i].sending.empty() ? 0 : POLLOUT)), 0};
  }
  poll(entries.data(), entries.size(), milliseconds);
  return entries;
}

void TcpTransport::progress() {
  std::vector<pollfd> entries = pollSockets(0);
  for (size_t i = 0; i < peers.size(); ++i) {
    if (entries[i].revents & POLLOUT)
      pumpOut(peers[i]);
    if (entries[i].revents & (POLLIN | POLLHUP | POLLERR))
      pumpIn(peers[i]);
  }
}

void TcpTransport::pumpOut(Peer &peer) {
  while (!peer.sending.empty()) {
    TcpRequest &request = *peer.sending.front();
    auto headerBytes = int64_t(sizeof(Header));
    bool inHeader = peer.sent < headerBytes;
    const char *next = inHeader ? reinterpret_cast<const char *>(&request.header) + peer.sent
                                : request.data + (peer.sent - headerBytes);
    int64_t left = inHeader ? headerBytes - peer.sent : headerBytes + request.bytes - peer.sent;
    ssize_t count = ::send(peer.socket.descriptor(), next, size_t(left),
                           MSG_NOSIGNAL | (inHeader ? MSG_MORE : 0));
    // An error shows when reading too, after what still came in.
    if (count < 0)
      return;
    peer.sent += count;
    movedBytes += uint64_t(count);
    if (peer.sent < headerBytes + request.bytes)
      continue;
    request.done = true;
    peer.sent = 0;
    peer.sending.pop_front();
  }
}

/// A header is complete: finds the place its message goes to.
void TcpTransport::beginMessage(Peer &peer) {
  if (peer.header.bytes < 0 || peer.header.bytes > maxMessageBytes)
    fail("rank ", &peer - peers.data(), " announces a message of ", peer.header.bytes,
         " bytes, but none has more than ", maxMessageBytes,
         ": what has come as that rank is none, or its executable is another");
  auto &waiting = peer.waiting[peer.header.channel];
  if (waiting.empty()) {
    peer.early.resize(size_t(peer.header.bytes));
    return;
  }
  // What fits is taken in first, so that the connection stays in order.
  if (peer.header.bytes != waiting.front()->bytes)
    check(*waiting.front(), peer.header);
  peer.target = waiting.front();
  peer.target->theirs = peer.header.call;
  waiting.pop_front();
}

void TcpTransport::endMessage(Peer &peer) {
  if (peer.target) {
    peer.target->done = true;
    peer.target = nullptr;
  } else {
    // The receive may have been started while the message came in.
    auto &waiting = peer.waiting[peer.header.channel];
    if (waiting.empty()) {
      peer.arrived[peer.header.channel].push_back({peer.header, std::move(peer.early)});
    } else {
      TcpRequest &request = *waiting.front();
      if (peer.header.bytes != request.bytes)
        check(request, peer.header);
      std::memcpy(request.data, peer.early.data(), peer.early.size());
      request.theirs = peer.header.call;
      request.done = true;
      waiting.pop_front();
    }
    peer.early.clear();
  }
  peer.received = 0;
}

void TcpTransport::pumpIn(Peer &peer) {
  auto headerBytes = int64_t(sizeof(Header));
  while (true) {
    bool inHeader = peer.received < headerBytes;
    char *base = peer.target ? peer.target->data : peer.early.data();
    char *next = inHeader ? reinterpret_cast<char *>(&peer.header) + peer.received
                          : base + (peer.received - headerBytes);
    int64_t left =
        inHeader ? headerBytes - peer.received : headerBytes + peer.header.bytes - peer.received;
    ssize_t count = recv(peer.socket.descriptor(), next, size_t(left), 0);
    if (count <= 0) {
      peer.closed |= count == 0 || (errno != EAGAIN && errno != EINTR);
      return;
    }
    peer.received += count;
    movedBytes += uint64_t(count);
    if (inHeader && peer.received == headerBytes)
      beginMessage(peer);
    if (!inHeader && peer.received == headerBytes + peer.header.bytes)
      endMessage(peer);
  }
}

std::shared_ptr<Transport> meshwright::openTcpTransport(int rank, int processes,
                                                        const TcpAddress &master) {
  return std::make_shared<TcpTransport>(rank, processes, master);
}
