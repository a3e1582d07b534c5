//===- Socket.h - TCP connections -----------------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_RUNTIME_CPU_SOCKET_H
#define MESHWRIGHT_RUNTIME_CPU_SOCKET_H

#include <chrono>
#include <cstddef>
#include <string>
#include <sys/socket.h>

namespace meshwright {

using Deadline = std::chrono::steady_clock::time_point;

/// An address to connect to.
struct SocketAddress {
  sockaddr_storage storage;
  socklen_t length;

  /// Whether it is this machine's own name for itself.
  bool isLoopback() const;
  void setPort(int port);
};

/// A socket, closed at its end. All operations give up at their deadline, with an
/// Error that starts with `what`.
class Socket {
public:
  Socket() = default;
  explicit Socket(int file) : file(file) {}
  Socket(Socket &&other) : file(other.file) { other.file = -1; }
  Socket &operator=(Socket &&other);
  ~Socket();

  /// Looks up `host`.
  static SocketAddress resolve(const std::string &host, int port);
  /// Listens on `port` of all addresses of the family of `like`; 0: any port.
  static Socket listen(const SocketAddress &like, int port);
  /// Connects, again and again until something listens there.
  static Socket connect(const SocketAddress &address, Deadline deadline, const std::string &what);

  Socket accept(Deadline deadline, const std::string &what);
  int port() const;
  SocketAddress peer() const;
  void sendAll(const void *data, size_t bytes, Deadline deadline, const std::string &what);
  void receiveAll(void *data, size_t bytes, Deadline deadline, const std::string &what);

  int descriptor() const { return file; }

private:
  void await(short events, Deadline deadline, const std::string &what) const;

  int file = -1;
};

} // namespace meshwright

#endif // MESHWRIGHT_RUNTIME_CPU_SOCKET_H
