//===- Rendezvous.cpp - any bytes to rank 0, which waits for rank 1 ---------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// The first byte says how many visitors send parts of the others; then rank 1 comes, unless one of them was taken for it.
//
//===----------------------------------------------------------------------===//
#include "common/monitor/Error.h"
#include "common/monitor/RankStatus.h"
#include "cuda/Rendezvous.h"

#include <algorithm>
#include <arpa/inet.h>
#include <cstdlib>
#include <netinet/in.h>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>

using namespace meshwright;

static const std::string plan = "0123456789abcdef0123456789abcdef";

/// A port of this machine that nothing listens at.
static int freePort() {
  int file = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof(address);
  if (bind(file, reinterpret_cast<sockaddr *>(&address), length) != 0 ||
      getsockname(file, reinterpret_cast<sockaddr *>(&address), &length) != 0)
    abort();
  close(file);
  return ntohs(address.sin_port);
}

/// Connects to `port`, sends `bytes`, and stays connected until this is closed.
static int visit(int port, const char *bytes, size_t size) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(uint16_t(port));
  for (int tries = 0; tries < 5000; ++tries) {
    int file = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(file, reinterpret_cast<sockaddr *>(&address), sizeof(address)) == 0) {
      (void)!send(file, bytes, size, MSG_NOSIGNAL);
      return file;
    }
    close(file);
    usleep(200);
  }
  return -1;
}

extern "C" int LLVMFuzzerInitialize(int *, char ***) {
  // What rank 0 says of each visitor.
  (void)!freopen("/dev/null", "w", stdout);
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size == 0)
    return 0;
  static int port = freePort();
  RankStatus zero(0), one(1);
  std::thread listener([&] {
    try {
      cuda::meetAt({"127.0.0.1", port}, plan, 0, 2, zero);
    } catch (const Error &) { // A visitor that was taken for rank 1 has left.
    }
  });
  size_t visitors = size_t(1 + data[0] % 3), part = (size - 1) / visitors + 1;
  std::vector<int> files;
  for (size_t i = 0; i < visitors; ++i) {
    size_t begin = std::min(size, 1 + i * part);
    files.push_back(visit(port, reinterpret_cast<const char *>(data) + begin, std::min(part, size - begin)));
  }
  // Some leave at once.
  for (int &file : files)
    if (data[0] & 4 && file >= 0) {
      close(file);
      file = -1;
    }
  cuda::Hello hello;
  hello.rank = 1;
  hello.size = 2;
  plan.copy(hello.plan, sizeof(hello.plan));
  int last = visit(port, reinterpret_cast<const char *>(&hello), sizeof(hello));
  listener.join();
  for (int file : files)
    if (file >= 0)
      close(file);
  close(last);
  return 0;
}
