//===- CommunicationQueue.h - communication beside computation ------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// A program without started collectives communicates in the thread that computes.
// From the first start on, all that the program sends and receives goes through one
// thread, in the order of the calls: so communicators are used by one thread at a time,
// and ranks meet in the order that was proved to end. A program ends with nothing
// started, so between programs the communicators are the rank's own thread's again.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_RUNTIME_COMMON_COMMUNICATIONQUEUE_H
#define MESHWRIGHT_RUNTIME_COMMON_COMMUNICATIONQUEUE_H

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <thread>

namespace meshwright {

class CommunicationQueue {
public:
  /// Spans of its thread are shown in row `row` of a trace.
  explicit CommunicationQueue(int row = 1) : row(row) {}
  ~CommunicationQueue();
  CommunicationQueue(const CommunicationQueue &) = delete;
  CommunicationQueue &operator=(const CommunicationQueue &) = delete;

  /// The next call of `run` only starts its task, as number `start`.
  void startNext(int32_t start) { next = start; }
  /// Runs `task`, which does not throw, after those before it. Returns when it has
  /// ended, or at once if it is to be started only.
  void run(std::function<void()> task);
  /// Waits for the latest task that was started as `start`; whether there was one.
  bool wait(int32_t start);

private:
  void work();
  void waitFor(uint64_t ticket);

  const int row;
  int32_t next = -1;
  std::map<int32_t, uint64_t> started; ///< tickets of tasks not waited for, by number
  std::mutex mutex;                    ///< of what follows
  std::condition_variable pushed, ended;
  std::deque<std::function<void()>> tasks;
  uint64_t tickets = 0, done = 0; ///< of how many tasks, and how many have ended
  bool stopping = false;
  std::thread thread;
};

} // namespace meshwright

#endif // MESHWRIGHT_RUNTIME_COMMON_COMMUNICATIONQUEUE_H
