//===- ThreadCommunicator.cpp - ranks as threads of one process -----------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "cpu/ThreadCommunicator.h"

#include "common/Error.h"
#include "common/Reduce.h"
#include "common/Sharding.h"
#include "cpu/ThreadGroup.h"

#include <algorithm>
#include <chrono>
#include <sched.h>

using namespace meshwright;

// Waits first spin, then hand the core on, then sleep: with more ranks than cores
// a spinning rank would keep the one it waits for from running.
static constexpr int spins = 200, yields = 20;
static constexpr std::chrono::milliseconds sleepSlice(50);
// Below this a parallel region costs more than it gains.
static constexpr int64_t parallelBytes = 1 << 20;

void ThreadGroup::wake() {
  // Pairs with the increment of `sleepers` in waitFor: either this load sees the
  // sleeper, or the sleeper's next look sees the change.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (sleepers.load(std::memory_order_relaxed) == 0)
    return;
  {
    std::lock_guard<std::mutex> lock(mutex);
  }
  changed.notify_all();
}

std::shared_ptr<ThreadGroup> ThreadGroup::child(uint64_t sequence,
                                                const std::vector<int> &positions) {
  std::lock_guard<std::mutex> lock(mutex);
  auto &slot = children[{sequence, positions}];
  std::shared_ptr<ThreadGroup> result = slot.lock();
  if (!result) {
    std::vector<int> ranks;
    for (int position : positions)
      ranks.push_back(worldRanks[size_t(position)]);
    slot = result = std::make_shared<ThreadGroup>(std::move(ranks));
  }
  return result;
}

std::vector<std::unique_ptr<Communicator>>
ThreadCommunicator::createWorld(int ranks, int threadsPerRank,
                                const std::vector<RankStatus *> &statuses) {
  std::vector<int> all;
  for (int rank = 0; rank < ranks; ++rank)
    all.push_back(rank);
  auto group = std::make_shared<ThreadGroup>(all);
  std::vector<std::unique_ptr<Communicator>> world;
  for (int rank = 0; rank < ranks; ++rank)
    world.push_back(
        std::make_unique<ThreadCommunicator>(group, rank, threadsPerRank, *statuses[size_t(rank)]));
  return world;
}

ThreadCommunicator::ThreadCommunicator(std::shared_ptr<ThreadGroup> sharedGroup, int rank,
                                       int threads, RankStatus &status)
    : Communicator(sharedGroup->worldRanks, rank), group(std::move(sharedGroup)), threads(threads),
      status(status) {}

ThreadCommunicator::~ThreadCommunicator() = default;

std::unique_ptr<Communicator> ThreadCommunicator::split(const std::vector<int> &positions) {
  auto found = std::find(positions.begin(), positions.end(), rank());
  if (found == positions.end())
    fail("rank ", worldRank(rank()), " splits off a group that it is not in");
  auto result = std::make_unique<ThreadCommunicator>(
      group->child(splits++, positions), int(found - positions.begin()), threads, status);
  // Keeps the parent's weak reference alive until every member has taken its own.
  meet();
  return result;
}

/// Waits until ready() holds. `peer` is the member waited for, or -1 for those
/// that have not come to this meeting.
template <typename Ready> void ThreadCommunicator::waitFor(Ready ready, int peer) {
  for (int i = 0; i < spins; ++i) {
    if (ready())
      return;
    __builtin_ia32_pause();
  }
  for (int i = 0; i < yields; ++i) {
    if (ready())
      return;
    sched_yield();
  }
  group->sleepers.fetch_add(1);
  std::unique_lock<std::mutex> lock(group->mutex);
  for (bool slow = false; !ready(); slow = true) {
    if (slow) {
      std::vector<int> missing;
      for (int i = 0; i < size(); ++i)
        if (peer == i || (peer < 0 && int32_t(group->members[size_t(i)].arrived - phase) < 0))
          missing.push_back(worldRank(i));
      status.setWaiting(std::move(missing));
    }
    group->changed.wait_for(lock, sleepSlice);
  }
  lock.unlock();
  group->sleepers.fetch_sub(1);
  status.clearWaiting();
}

void ThreadCommunicator::arrive() {
  ++phase;
  group->members[size_t(rank())].arrived.store(phase, std::memory_order_release);
  group->wake();
}

/// Waits until every member has come to this meeting.
void ThreadCommunicator::meet() {
  arrive();
  // Each member that was once seen to have arrived need not be looked at again.
  int seen = 0;
  waitFor(
      [&] {
        while (seen < size() &&
               int32_t(group->members[size_t(seen)].arrived.load(std::memory_order_acquire) -
                       phase) >= 0)
          ++seen;
        return seen == size();
      },
      -1);
}

/// Shows the others this member's buffers and waits for theirs.
void ThreadCommunicator::meet(const char *kind, const void *input, void *output, int64_t bytes) {
  ThreadMember &mine = group->members[size_t(rank())];
  mine.kind = kind;
  mine.input = input;
  mine.output = output;
  mine.bytes = bytes;
  meet();
  const ThreadMember &first = group->members[0];
  if (first.kind != kind || first.bytes != bytes)
    fail("ranks ", worldRank(0), " and ", worldRank(rank()), " disagree: one calls ", first.kind,
         " of ", first.bytes, " bytes, the other ", kind, " of ", bytes,
         " bytes on the same group; the program is broken, please report it");
}

void ThreadCommunicator::copy(void *to, const void *from, int64_t bytes) const {
  if (to == from || bytes == 0)
    return;
  if (threads == 1 || bytes < parallelBytes) {
    std::memcpy(to, from, size_t(bytes));
    return;
  }
  int64_t part = ceilDivide(bytes, threads);
#pragma omp parallel for num_threads(threads)
  for (int i = 0; i < threads; ++i) {
    int64_t begin = std::min(bytes, i * part), end = std::min(bytes, begin + part);
    std::memcpy(static_cast<char *>(to) + begin, static_cast<const char *>(from) + begin,
                size_t(end - begin));
  }
}

/// Reduces elements [begin, end) of every member's input into each of `outputs`,
/// from element `outputBegin` on. One pass: a block is reduced in cache and then
/// written to all outputs. No other member may read or write these elements.
void ThreadCommunicator::reduceRange(ElementType type, Reduction reduction, int64_t begin,
                                     int64_t end, const std::vector<char *> &outputs,
                                     int64_t outputBegin) const {
  int64_t width = bytesOf(type);
  int64_t blocks = ceilDivide(end - begin, reduceBlockElements);
  bool parallel = threads > 1 && (end - begin) * width * size() >= parallelBytes;
#pragma omp parallel num_threads(threads) if (parallel)
  {
    std::vector<const void *> inputs(static_cast<size_t>(size()));
    char result[reduceBlockElements * 8];
#pragma omp for schedule(static)
    for (int64_t block = 0; block < blocks; ++block) {
      int64_t at = begin + block * reduceBlockElements;
      int64_t count = std::min(reduceBlockElements, end - at);
      for (int i = 0; i < size(); ++i)
        inputs[size_t(i)] = static_cast<const char *>(group->members[size_t(i)].input) + at * width;
      reduceBlock(type, reduction, inputs.data(), size(), result, count);
      for (char *output : outputs)
        std::memcpy(output + (outputBegin + at - begin) * width, result, size_t(count * width));
    }
  }
}

void ThreadCommunicator::barrier() { meet(); }

void ThreadCommunicator::send(ElementType type, const void *data, int64_t count, int to) {
  ThreadMailbox &box = group->mailbox(rank(), to);
  box.data = data;
  box.bytes = count * bytesOf(type);
  uint32_t sent = box.sent.load(std::memory_order_relaxed) + 1;
  box.sent.store(sent, std::memory_order_release);
  group->wake();
  waitFor([&] { return box.taken.load(std::memory_order_acquire) == sent; }, to);
}

void ThreadCommunicator::receive(ElementType type, void *data, int64_t count, int from) {
  ThreadMailbox &box = group->mailbox(from, rank());
  uint32_t taken = box.taken.load(std::memory_order_relaxed);
  waitFor([&] { return box.sent.load(std::memory_order_acquire) != taken; }, from);
  if (box.bytes != count * bytesOf(type))
    fail("rank ", worldRank(rank()), " expects ", count * bytesOf(type), " bytes from rank ",
         worldRank(from), ", which sends ", box.bytes, "; the program is broken, please report it");
  copy(data, box.data, box.bytes);
  box.taken.store(taken + 1, std::memory_order_release);
  group->wake();
}

void ThreadCommunicator::broadcast(ElementType type, void *data, int64_t count, int root) {
  int64_t bytes = count * bytesOf(type);
  meet("broadcast", data, data, bytes);
  copy(data, group->members[size_t(root)].input, bytes);
  meet();
}

void ThreadCommunicator::reduce(ElementType type, Reduction reduction, const void *input,
                                void *output, int64_t count, int root) {
  meet("reduce", input, output, count * bytesOf(type));
  int64_t part = ceilDivide(count, size());
  int64_t begin = std::min(count, rank() * part), end = std::min(count, begin + part);
  reduceRange(type, reduction, begin, end,
              {static_cast<char *>(group->members[size_t(root)].output)}, begin);
  meet();
}

void ThreadCommunicator::allReduce(ElementType type, Reduction reduction, const void *input,
                                   void *output, int64_t count) {
  meet("all_reduce", input, output, count * bytesOf(type));
  int64_t part = ceilDivide(count, size());
  int64_t begin = std::min(count, rank() * part), end = std::min(count, begin + part);
  std::vector<char *> outputs;
  for (const ThreadMember &member : group->members)
    outputs.push_back(static_cast<char *>(member.output));
  reduceRange(type, reduction, begin, end, outputs, begin);
  meet();
}

void ThreadCommunicator::allGather(ElementType type, const void *input, void *output,
                                   int64_t count) {
  int64_t bytes = count * bytesOf(type);
  meet("all_gather", input, output, bytes);
  for (int step = 0; step < size(); ++step) {
    int from = (rank() + step) % size(); // Spreads the readers over the inputs.
    copy(static_cast<char *>(output) + from * bytes, group->members[size_t(from)].input, bytes);
  }
  meet();
}

void ThreadCommunicator::reduceScatter(ElementType type, Reduction reduction, const void *input,
                                       void *output, int64_t count) {
  meet("reduce_scatter", input, output, count * bytesOf(type));
  reduceRange(type, reduction, rank() * count, (rank() + 1) * count, {static_cast<char *>(output)},
              0);
  meet();
}

void ThreadCommunicator::allToAll(ElementType type, const void *input, void *output,
                                  int64_t count) {
  int64_t bytes = count * bytesOf(type);
  meet("all_to_all", input, output, bytes);
  for (int step = 0; step < size(); ++step) {
    int from = (rank() + step) % size();
    copy(static_cast<char *>(output) + from * bytes,
         static_cast<const char *>(group->members[size_t(from)].input) + rank() * bytes, bytes);
  }
  meet();
}

void ThreadCommunicator::gather(ElementType type, const void *input, void *output, int64_t count,
                                int root) {
  int64_t bytes = count * bytesOf(type);
  meet("gather", input, output, bytes);
  copy(static_cast<char *>(group->members[size_t(root)].output) + rank() * bytes, input, bytes);
  meet();
}

void ThreadCommunicator::scatter(ElementType type, const void *input, void *output, int64_t count,
                                 int root) {
  int64_t bytes = count * bytesOf(type);
  meet("scatter", input, output, bytes);
  copy(output, static_cast<const char *>(group->members[size_t(root)].input) + rank() * bytes,
       bytes);
  meet();
}

void ThreadCommunicator::permute(ElementType type, const void *input, void *output, int64_t count,
                                 const std::vector<std::pair<int, int>> &pairs) {
  int64_t bytes = count * bytesOf(type);
  meet("permute", input, output, bytes);
  auto pair = std::find_if(pairs.begin(), pairs.end(),
                           [&](const auto &candidate) { return candidate.second == rank(); });
  if (pair != pairs.end())
    copy(output, group->members[size_t(pair->first)].input, bytes);
  else if (bytes)
    std::memset(output, 0, size_t(bytes));
  meet();
}
