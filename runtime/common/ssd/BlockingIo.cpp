//===- BlockingIo.cpp - reads and writes by threads --------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "common/ssd/IoQueue.h"

#include <cerrno>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

using namespace meshwright;

namespace {
class BlockingIo : public IoQueue {
public:
  BlockingIo(int file, int depth) : file(file) {
    try {
      for (int i = 0; i < depth; ++i)
        threads.emplace_back([this] { work(); });
    } catch (...) {
      stop(); // No destructor runs of what is not constructed.
      throw;
    }
  }
  ~BlockingIo() override { stop(); }

  void start(int number, const IoRequest &request) override {
    {
      std::lock_guard<std::mutex> lock(mutex);
      requests.push_back({number, request});
    }
    started.notify_one();
  }
  Done next() override {
    std::unique_lock<std::mutex> lock(mutex);
    ended.wait(lock, [&] { return !results.empty(); });
    Done done = results.front();
    results.pop_front();
    return done;
  }

private:
  void work();
  void stop() {
    {
      std::lock_guard<std::mutex> lock(mutex);
      stopping = true;
    }
    started.notify_all();
    for (std::thread &thread : threads)
      thread.join();
  }

  int file;
  std::mutex mutex; ///< of what follows
  std::condition_variable started, ended;
  std::deque<std::pair<int, IoRequest>> requests;
  std::deque<Done> results;
  bool stopping = false;
  std::vector<std::thread> threads;
};
} // namespace

void BlockingIo::work() {
  std::unique_lock<std::mutex> lock(mutex);
  while (true) {
    started.wait(lock, [&] { return stopping || !requests.empty(); });
    if (requests.empty())
      return;
    auto [number, request] = requests.front();
    requests.pop_front();
    lock.unlock();
    int64_t result = request.isWrite ? pwrite(file, request.memory, size_t(request.bytes), request.offset)
                                     : pread(file, request.memory, size_t(request.bytes), request.offset);
    if (result < 0)
      result = -errno;
    lock.lock();
    results.push_back({number, result});
    ended.notify_one();
  }
}

std::unique_ptr<IoQueue> meshwright::openBlockingIo(int file, int depth) {
  return std::make_unique<BlockingIo>(file, depth);
}
