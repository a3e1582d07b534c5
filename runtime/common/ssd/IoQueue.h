//===- IoQueue.h - reads and writes of a file, several at once --------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_RUNTIME_COMMON_IOQUEUE_H
#define MESHWRIGHT_RUNTIME_COMMON_IOQUEUE_H

#include <cstdint>
#include <memory>

namespace meshwright {

struct IoRequest {
  bool isWrite;
  char *memory;
  int64_t bytes, offset;
};

/// Requests to one file that are under way at once. One thread uses it.
class IoQueue {
public:
  virtual ~IoQueue() = default;
  /// Starts a request as `number`, from 0 on and below the queue's depth, which no other one under way has.
  virtual void start(int number, const IoRequest &request) = 0;
  struct Done {
    int number;
    int64_t result; ///< bytes, perhaps fewer than were asked for, or a negative errno
  };
  /// Waits until some request has ended.
  virtual Done next() = 0;
};

/// A queue of io_uring; null where the kernel refuses one, with `error` its errno.
std::unique_ptr<IoQueue> openUring(int file, int depth, int &error);

/// One of `depth` threads that call pread and pwrite.
std::unique_ptr<IoQueue> openBlockingIo(int file, int depth);

} // namespace meshwright

#endif // MESHWRIGHT_RUNTIME_COMMON_IOQUEUE_H
