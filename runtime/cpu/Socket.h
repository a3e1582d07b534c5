//===- Socket.h - TCP connections -----------------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_RUNTIME_CPU_SOCKET_H
#define MESHWRIGHT_RUNTIME_CPU_SOCKET_H

#include "common/monitor/Error.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <sys/socket.h>
#include <vector>

namespace meshwright {

using Deadline = std::chrono::steady_clock::time_point;

/// An address to connect to or to listen at.
struct SocketAddress {
  sockaddr_storage storage = {};
  socklen_t length = 0;

  /// Whether it is this machine's own name for itself.
  bool isLoopback() const;
  int port() const;
  void setPort(int port);
  /// All addresses of the family, at the same port.
  SocketAddress any() const;
  /// "10.0.0.7:29500".
  std::string text() const;
  bool operator==(const SocketAddress &other) const;
};

/// A socket, closed at its end. None of its operations blocks, except those with a deadline: they
/// give up then, with an Error that starts with `what`.
class Socket {
public:
  /// The other end has closed the connection.
  class Closed : public Error {
  public:
    using Error::Error;
  };

  Socket() = default;
  explicit Socket(int file) : file(file) {}
  Socket(Socket &&other) : file(other.file) { other.file = -1; }
  Socket &operator=(Socket &&other);
  ~Socket();

  /// Looks up `host`: all of its addresses, each once.
  static std::vector<SocketAddress> resolve(const std::string &host, int port);
  /// Listens at `address`; its port 0: at any port. Otherwise an Error, or a socket that is not
  /// open if `error` takes its errno.
  static Socket listen(const SocketAddress &address, int *error = nullptr);
  /// Begins to connect; one that is not open, with its errno in `error`, where that fails at once.
  /// The socket can be written to when it has ended, well or not: see `error()`.
  static Socket connect(const SocketAddress &address, int &error);

  /// The next connection of one that listens; one that is not open, with errno, if there is none.
  Socket accept();
  /// The errno that ended a connection, or 0.
  int error() const;
  /// Where this end is, and where the other.
  SocketAddress local() const;
  SocketAddress peer() const;

  /// Sends or receives as much as goes at once: how many bytes, or -1 if the connection has ended.
  int64_t send(const void *data, size_t bytes);
  int64_t receive(void *data, size_t bytes);
  void sendAll(const void *data, size_t bytes, Deadline deadline, const std::string &what);
  void receiveAll(void *data, size_t bytes, Deadline deadline, const std::string &what);

  bool isOpen() const { return file >= 0; }
  int descriptor() const { return file; }

private:
  void await(short events, Deadline deadline, const std::string &what) const;

  int file = -1;
};

} // namespace meshwright

#endif // MESHWRIGHT_RUNTIME_CPU_SOCKET_H
