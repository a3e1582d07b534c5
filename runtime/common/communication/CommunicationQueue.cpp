//===- CommunicationQueue.cpp - communication beside computation ----------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "common/communication/CommunicationQueue.h"

#include "common/monitor/Trace.h"

using namespace meshwright;

CommunicationQueue::~CommunicationQueue() {
  if (!thread.joinable())
    return;
  {
    std::lock_guard<std::mutex> lock(mutex);
    stopping = true;
  }
  pushed.notify_one();
  thread.join();
}

void CommunicationQueue::work() {
  Trace::row = row;
  std::unique_lock<std::mutex> lock(mutex);
  while (true) {
    pushed.wait(lock, [&] { return stopping || !tasks.empty(); });
    if (tasks.empty())
      return;
    std::function<void()> task = std::move(tasks.front());
    tasks.pop_front();
    lock.unlock();
    task();
    lock.lock();
    ++done;
    ended.notify_all();
  }
}

void CommunicationQueue::run(std::function<void()> task) {
  int32_t start = next;
  next = -1;
  if (start < 0 && !thread.joinable())
    return task();
  uint64_t ticket;
  {
    std::lock_guard<std::mutex> lock(mutex);
    tasks.push_back(std::move(task));
    ticket = ++tickets;
  }
  if (!thread.joinable())
    thread = std::thread([this] { work(); });
  pushed.notify_one();
  if (start >= 0)
    started[start] = ticket;
  else
    waitFor(ticket);
}

void CommunicationQueue::waitFor(uint64_t ticket) {
  std::unique_lock<std::mutex> lock(mutex);
  ended.wait(lock, [&] { return done >= ticket; });
}

bool CommunicationQueue::wait(int32_t start) {
  auto found = started.find(start);
  if (found == started.end())
    return false;
  waitFor(found->second);
  started.erase(found);
  return true;
}
