//===- Socket.cpp - TCP connections ---------------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "cpu/Socket.h"

#include "common/Error.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <thread>
#include <unistd.h>

using namespace meshwright;
using Clock = std::chrono::steady_clock;

Socket &Socket::operator=(Socket &&other) {
  std::swap(file, other.file);
  return *this;
}

Socket::~Socket() {
  if (file >= 0)
    close(file);
}

static void configure(int file) {
  int on = 1;
  setsockopt(file, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  fcntl(file, F_SETFL, fcntl(file, F_GETFL) | O_NONBLOCK);
}

bool SocketAddress::isLoopback() const {
  if (storage.ss_family == AF_INET)
    return ntohl(reinterpret_cast<const sockaddr_in &>(storage).sin_addr.s_addr) >> 24 == 127;
  const in6_addr &address = reinterpret_cast<const sockaddr_in6 &>(storage).sin6_addr;
  return IN6_IS_ADDR_LOOPBACK(&address) ||
         (IN6_IS_ADDR_V4MAPPED(&address) && address.s6_addr[12] == 127);
}

void SocketAddress::setPort(int port) {
  if (storage.ss_family == AF_INET6)
    reinterpret_cast<sockaddr_in6 &>(storage).sin6_port = htons(uint16_t(port));
  else
    reinterpret_cast<sockaddr_in &>(storage).sin_port = htons(uint16_t(port));
}

SocketAddress Socket::resolve(const std::string &host, int port) {
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo *list = nullptr;
  int code = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &list);
  if (code != 0)
    fail("MASTER_ADDR ", host, ": ", gai_strerror(code), ": name a host that every rank can find");
  SocketAddress address;
  std::memcpy(&address.storage, list->ai_addr, list->ai_addrlen);
  address.length = list->ai_addrlen;
  freeaddrinfo(list);
  return address;
}

Socket Socket::listen(const SocketAddress &like, int port) {
  SocketAddress any = {};
  any.storage.ss_family = like.storage.ss_family;
  any.setPort(port);
  Socket result(socket(any.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  int on = 1;
  setsockopt(result.file, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  if (bind(result.file, reinterpret_cast<sockaddr *>(&any.storage), like.length) != 0 ||
      ::listen(result.file, 1024) != 0)
    fail("cannot listen on port ", port, ": ", errnoText(errno),
         ": set MASTER_PORT to a free port on every rank");
  configure(result.file);
  return result;
}

Socket Socket::connect(const SocketAddress &address, Deadline deadline, const std::string &what) {
  while (true) {
    Socket result(socket(address.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (::connect(result.file, reinterpret_cast<const sockaddr *>(&address.storage),
                  address.length) == 0) {
      configure(result.file);
      return result;
    }
    if (Clock::now() > deadline)
      fail(what, ": ", errnoText(errno),
           ": start all ranks, with the same MASTER_ADDR and "
           "MASTER_PORT, which every rank must be able to reach");
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

void Socket::await(short events, Deadline deadline, const std::string &what) const {
  pollfd entry = {file, events, 0};
  auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
  if (poll(&entry, 1, int(std::max<int64_t>(0, left.count()))) == 0)
    fail(what, ": nothing came in time: check that all ranks have been started");
}

Socket Socket::accept(Deadline deadline, const std::string &what) {
  while (true) {
    await(POLLIN, deadline, what);
    int peer = accept4(file, nullptr, nullptr, SOCK_CLOEXEC);
    if (peer < 0)
      continue; // The other side has gone again.
    configure(peer);
    return Socket(peer);
  }
}

int Socket::port() const {
  sockaddr_storage name = {};
  socklen_t length = sizeof(name);
  getsockname(file, reinterpret_cast<sockaddr *>(&name), &length);
  return ntohs(name.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6 &>(name).sin6_port
                                          : reinterpret_cast<sockaddr_in &>(name).sin_port);
}

SocketAddress Socket::peer() const {
  SocketAddress address;
  address.length = sizeof(address.storage);
  getpeername(file, reinterpret_cast<sockaddr *>(&address.storage), &address.length);
  return address;
}

void Socket::sendAll(const void *data, size_t bytes, Deadline deadline, const std::string &what) {
  const char *next = static_cast<const char *>(data);
  while (bytes > 0) {
    ssize_t count = ::send(file, next, bytes, MSG_NOSIGNAL);
    if (count > 0) {
      next += count;
      bytes -= size_t(count);
    } else if (errno == EAGAIN || errno == EINTR) {
      await(POLLOUT, deadline, what);
    } else {
      fail(what, ": ", errnoText(errno), ": see the other ranks' messages");
    }
  }
}

void Socket::receiveAll(void *data, size_t bytes, Deadline deadline, const std::string &what) {
  char *next = static_cast<char *>(data);
  while (bytes > 0) {
    ssize_t count = recv(file, next, bytes, 0);
    if (count > 0) {
      next += count;
      bytes -= size_t(count);
    } else if (count < 0 && (errno == EAGAIN || errno == EINTR)) {
      await(POLLIN, deadline, what);
    } else {
      fail(what, ": the connection was closed: see the other ranks' messages");
    }
  }
}
