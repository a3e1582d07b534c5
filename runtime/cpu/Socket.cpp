//===- Socket.cpp - TCP connections ---------------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "cpu/Socket.h"

#include "common/monitor/Error.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
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

static sockaddr *raw(SocketAddress &address) {
  return reinterpret_cast<sockaddr *>(&address.storage);
}

static const sockaddr *raw(const SocketAddress &address) {
  return reinterpret_cast<const sockaddr *>(&address.storage);
}

bool SocketAddress::isLoopback() const {
  if (storage.ss_family == AF_INET)
    return ntohl(reinterpret_cast<const sockaddr_in &>(storage).sin_addr.s_addr) >> 24 == 127;
  const in6_addr &address = reinterpret_cast<const sockaddr_in6 &>(storage).sin6_addr;
  return IN6_IS_ADDR_LOOPBACK(&address) ||
         (IN6_IS_ADDR_V4MAPPED(&address) && address.s6_addr[12] == 127);
}

int SocketAddress::port() const {
  return ntohs(storage.ss_family == AF_INET6
                   ? reinterpret_cast<const sockaddr_in6 &>(storage).sin6_port
                   : reinterpret_cast<const sockaddr_in &>(storage).sin_port);
}

void SocketAddress::setPort(int port) {
  if (storage.ss_family == AF_INET6)
    reinterpret_cast<sockaddr_in6 &>(storage).sin6_port = htons(uint16_t(port));
  else
    reinterpret_cast<sockaddr_in &>(storage).sin_port = htons(uint16_t(port));
}

SocketAddress SocketAddress::any() const {
  SocketAddress result;
  result.storage.ss_family = storage.ss_family;
  result.length = length;
  result.setPort(port());
  return result;
}

std::string SocketAddress::text() const {
  char host[NI_MAXHOST] = "?", service[NI_MAXSERV] = "?";
  getnameinfo(raw(*this), length, host, sizeof(host), service, sizeof(service),
              NI_NUMERICHOST | NI_NUMERICSERV);
  bool isV6 = storage.ss_family == AF_INET6;
  return (isV6 ? "[" : "") + std::string(host) + (isV6 ? "]:" : ":") + service;
}

bool SocketAddress::operator==(const SocketAddress &other) const {
  return length == other.length && std::memcmp(&storage, &other.storage, length) == 0;
}

std::vector<SocketAddress> Socket::resolve(const std::string &host, int port) {
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo *list = nullptr;
  int code = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &list);
  if (code != 0)
    fail("MASTER_ADDR ", host, ": ", gai_strerror(code), ": name a host that every rank can find");
  std::vector<SocketAddress> result;
  for (addrinfo *entry = list; entry; entry = entry->ai_next) {
    SocketAddress address;
    if (entry->ai_family != AF_INET && entry->ai_family != AF_INET6)
      continue;
    std::memcpy(&address.storage, entry->ai_addr, entry->ai_addrlen);
    address.length = entry->ai_addrlen;
    if (std::find(result.begin(), result.end(), address) == result.end())
      result.push_back(address);
  }
  freeaddrinfo(list);
  if (result.empty())
    fail("MASTER_ADDR ", host, ": has no IP address: name a host that every rank can find");
  return result;
}

Socket Socket::listen(const SocketAddress &address, int *error) {
  Socket result(socket(address.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  int on = 1;
  if (result.isOpen() &&
      setsockopt(result.file, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) == 0 &&
      bind(result.file, raw(address), address.length) == 0 && ::listen(result.file, 1024) == 0) {
    configure(result.file);
    return result;
  }
  if (!error)
    fail("cannot listen at ", address.text(), ": ", errnoText(errno),
         ": set MASTER_PORT to a free port on every rank");
  *error = errno;
  return Socket();
}

Socket Socket::connect(const SocketAddress &address, int &error) {
  Socket result(socket(address.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  error = result.isOpen() ? 0 : errno;
  if (!result.isOpen())
    return result;
  configure(result.file);
  if (::connect(result.file, raw(address), address.length) == 0 || errno == EINPROGRESS)
    return result;
  error = errno;
  return Socket();
}

Socket Socket::accept() {
  Socket result(accept4(file, nullptr, nullptr, SOCK_CLOEXEC));
  if (result.isOpen())
    configure(result.file);
  return result;
}

int Socket::error() const {
  int code = 0;
  socklen_t length = sizeof(code);
  getsockopt(file, SOL_SOCKET, SO_ERROR, &code, &length);
  return code;
}

SocketAddress Socket::local() const {
  SocketAddress address;
  address.length = sizeof(address.storage);
  getsockname(file, raw(address), &address.length);
  return address;
}

SocketAddress Socket::peer() const {
  SocketAddress address;
  address.length = sizeof(address.storage);
  getpeername(file, raw(address), &address.length);
  return address;
}

void Socket::await(short events, Deadline deadline, const std::string &what) const {
  pollfd entry = {file, events, 0};
  auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
  if (poll(&entry, 1, int(std::max<int64_t>(0, left.count()))) == 0)
    fail(what, ": nothing came in time: check that all ranks have been started");
}

int64_t Socket::send(const void *data, size_t bytes) {
  ssize_t count = ::send(file, data, bytes, MSG_NOSIGNAL);
  return count >= 0 ? count : errno == EAGAIN || errno == EINTR ? 0 : -1;
}

int64_t Socket::receive(void *data, size_t bytes) {
  ssize_t count = recv(file, data, bytes, 0);
  return count > 0 ? count : count < 0 && (errno == EAGAIN || errno == EINTR) ? 0 : -1;
}

void Socket::sendAll(const void *data, size_t bytes, Deadline deadline, const std::string &what) {
  const char *next = static_cast<const char *>(data);
  while (bytes > 0) {
    int64_t count = send(next, bytes);
    if (count < 0)
      throw Closed(what + ": " + errnoText(errno) + ": see the other ranks' messages");
    if (count == 0)
      await(POLLOUT, deadline, what);
    next += count;
    bytes -= size_t(count);
  }
}

void Socket::receiveAll(void *data, size_t bytes, Deadline deadline, const std::string &what) {
  char *next = static_cast<char *>(data);
  while (bytes > 0) {
    int64_t count = receive(next, bytes);
    if (count < 0)
      throw Closed(what + ": the connection was closed: see the other ranks' messages");
    if (count == 0)
      await(POLLIN, deadline, what);
    next += count;
    bytes -= size_t(count);
  }
}
