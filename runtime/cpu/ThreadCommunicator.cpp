//===- ThreadCommunicator.cpp - ranks as threads of one process -----------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "cpu/ThreadCommunicator.h"

#include "common/communication/Reduce.h"
#include "common/monitor/Error.h"
#include "common/plan/Sharding.h"
#include "cpu/ThreadGroup.h"
#include "meshwright/runtime/Traffic.h"

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
void ThreadCommunicator::meet(const char *kind, Segments segments, int64_t width) {
  ThreadMember &mine = group->members[size_t(rank())];
  mine.kind = kind;
  mine.call = call;
  mine.segments = segments.data;
  mine.bytes = 0;
  for (const MwSegment &segment : segments)
    mine.bytes += segment.count * width;
  meet();
  for (int i = 0; i < size(); ++i)
    Calls::check(calls, worldRank(rank()), call, worldRank(i), group->members[size_t(i)].call);
  const ThreadMember &first = group->members[0];
  if (first.kind != kind || first.bytes != mine.bytes)
    fail("ranks ", worldRank(0), " and ", worldRank(rank()), " disagree: one calls ", first.kind,
         " of ", first.bytes, " bytes, the other ", kind, " of ", mine.bytes,
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

/// Every member's input of a segment, from byte `bytes` on.
std::vector<const char *> ThreadCommunicator::inputsOf(size_t segment, int64_t bytes) const {
  std::vector<const char *> inputs;
  for (const ThreadMember &member : group->members)
    inputs.push_back(static_cast<const char *>(member.segments[segment].input) + bytes);
  return inputs;
}

/// Reduces `count` elements of `inputs` into each of `outputs`. One pass: a block is
/// reduced in cache and then written to all outputs. No other member may read or
/// write these elements.
void ThreadCommunicator::reduceRange(ElementType type, Reduction reduction,
                                     const std::vector<const char *> &inputs, int64_t count,
                                     const std::vector<char *> &outputs) const {
  int64_t width = bytesOf(type);
  int64_t blocks = ceilDivide(count, reduceBlockElements);
  bool parallel = threads > 1 && count * width * int64_t(inputs.size()) >= parallelBytes;
#pragma omp parallel num_threads(threads) if (parallel)
  {
    std::vector<const void *> from(inputs.size());
    char result[reduceBlockElements * 8];
#pragma omp for schedule(static)
    for (int64_t block = 0; block < blocks; ++block) {
      int64_t at = block * reduceBlockElements;
      int64_t length = std::min(reduceBlockElements, count - at);
      for (size_t i = 0; i < from.size(); ++i)
        from[i] = inputs[i] + at * width;
      reduceBlock(type, reduction, from.data(), int(from.size()), result, length);
      for (char *output : outputs)
        std::memcpy(output + at * width, result, size_t(length * width));
    }
  }
}

void ThreadCommunicator::barrier() { meet(); }

void ThreadCommunicator::post(ElementType type, const void *data, int64_t count, int to) {
  finishSend(to);
  ThreadMailbox &box = group->mailbox(rank(), to);
  sent += count * bytesOf(type);
  box.data = data;
  box.bytes = count * bytesOf(type);
  box.call = call;
  box.sent.fetch_add(1, std::memory_order_release);
  group->wake();
}

void ThreadCommunicator::finishSend(int to) {
  ThreadMailbox &box = group->mailbox(rank(), to);
  uint32_t number = box.sent.load(std::memory_order_relaxed);
  waitFor([&] { return box.taken.load(std::memory_order_acquire) == number; }, to);
}

void ThreadCommunicator::receive(ElementType type, void *data, int64_t count, int from) {
  ThreadMailbox &box = group->mailbox(from, rank());
  uint32_t taken = box.taken.load(std::memory_order_relaxed);
  waitFor([&] { return box.sent.load(std::memory_order_acquire) != taken; }, from);
  int theirs = box.call;
  int64_t bytes = box.bytes, expected = count * bytesOf(type);
  if (bytes == expected)
    copy(data, box.data, bytes);
  box.taken.store(taken + 1, std::memory_order_release);
  group->wake();
  Calls::check(calls, worldRank(rank()), call, worldRank(from), theirs);
  if (bytes != expected)
    fail("rank ", worldRank(rank()), " expects ", expected, " bytes from rank ", worldRank(from),
         ", which sends ", bytes, "; the program is broken, please report it");
}

void ThreadCommunicator::broadcast(ElementType type, void *data, int64_t count, int root) {
  MwSegment mine{data, data, count};
  int64_t bytes = count * bytesOf(type);
  meet("broadcast", {&mine, 1}, bytesOf(type));
  if (rank() != root) {
    copy(data, group->members[size_t(root)].segments->input, bytes);
    sent += bytes;
  }
  meet();
}

void ThreadCommunicator::reduce(ElementType type, Reduction reduction, const void *input,
                                void *output, int64_t count, int root) {
  MwSegment mine{input, output, count};
  int64_t width = bytesOf(type);
  meet("reduce", {&mine, 1}, width);
  int64_t begin = partOffset(count, size(), rank()), end = partOffset(count, size(), rank() + 1);
  char *result = static_cast<char *>(group->members[size_t(root)].segments->output);
  reduceRange(type, reduction, inputsOf(0, begin * width), end - begin, {result + begin * width});
  sent += (end - begin) * width * (size() - 1 + (rank() != root));
  meet();
}

void ThreadCommunicator::allReduce(ElementType type, Reduction reduction, Segments segments) {
  int64_t width = bytesOf(type), n = size();
  meet("all_reduce", segments, width);
  // What is small, everyone reduces for himself, aside until all have read it.
  std::vector<std::pair<size_t, std::vector<char>>> results;
  for (Pack pack : packsOf(segments.counts(), width))
    for (size_t i = pack.begin; i < pack.end; ++i) {
      int64_t count = segments[i].count;
      if (isDirect(pack.count, width, n)) {
        results.push_back({i, std::vector<char>(size_t(count * width))});
        reduceRange(type, reduction, inputsOf(i, 0), count, {results.back().second.data()});
        sent += count * width * (n - 1);
        continue;
      }
      int64_t begin = partOffset(count, n, rank()), end = partOffset(count, n, rank() + 1);
      std::vector<char *> outputs;
      for (const ThreadMember &member : group->members)
        outputs.push_back(static_cast<char *>(member.segments[i].output) + begin * width);
      reduceRange(type, reduction, inputsOf(i, begin * width), end - begin, outputs);
      sent += 2 * (end - begin) * width * (n - 1);
    }
  meet();
  for (const auto &[i, result] : results)
    copy(segments[i].output, result.data(), int64_t(result.size()));
}

void ThreadCommunicator::allGather(ElementType type, Segments segments) {
  meet("all_gather", segments, bytesOf(type));
  for (size_t i = 0; i < segments.size; ++i) {
    int64_t bytes = segments[i].count * bytesOf(type);
    for (int step = 0; step < size(); ++step) {
      int from = (rank() + step) % size(); // Spreads the readers over the inputs.
      copy(static_cast<char *>(segments[i].output) + from * bytes,
           group->members[size_t(from)].segments[i].input, bytes);
    }
    sent += bytes * (size() - 1);
  }
  meet();
}

void ThreadCommunicator::reduceScatter(ElementType type, Reduction reduction, Segments segments) {
  int64_t width = bytesOf(type);
  meet("reduce_scatter", segments, width);
  for (size_t i = 0; i < segments.size; ++i) {
    int64_t count = segments[i].count;
    reduceRange(type, reduction, inputsOf(i, rank() * count * width), count,
                {static_cast<char *>(segments[i].output)});
    sent += count * width * (size() - 1);
  }
  meet();
}

void ThreadCommunicator::allToAll(ElementType type, const void *input, void *output,
                                  int64_t count, int64_t row) {
  MwSegment mine{input, output, count};
  int64_t bytes = count * bytesOf(type);
  meet("all_to_all", {&mine, 1}, bytesOf(type));
  std::vector<const char *> inputs = inputsOf(0, rank() * bytes);
  for (int step = 0; step < size(); ++step) {
    int from = (rank() + step) % size();
    char *target = static_cast<char *>(output) + from * bytes;
    int64_t filled = filledBytes(inputs[size_t(from)], bytes, row * bytesOf(type));
    copy(target, inputs[size_t(from)], filled);
    std::memset(target + filled, 0, size_t(bytes - filled));
    if (from != rank())
      sent += filled; // what the others have sent here
  }
  meet();
}

void ThreadCommunicator::gather(ElementType type, const void *input, void *output, int64_t count,
                                int root) {
  MwSegment mine{input, output, count};
  int64_t bytes = count * bytesOf(type);
  meet("gather", {&mine, 1}, bytesOf(type));
  copy(static_cast<char *>(group->members[size_t(root)].segments->output) + rank() * bytes, input,
       bytes);
  sent += rank() == root ? 0 : bytes;
  meet();
}

void ThreadCommunicator::scatter(ElementType type, const void *input, void *output, int64_t count,
                                 int root) {
  MwSegment mine{input, output, count};
  int64_t bytes = count * bytesOf(type);
  meet("scatter", {&mine, 1}, bytesOf(type));
  copy(output, inputsOf(0, rank() * bytes)[size_t(root)], bytes);
  sent += rank() == root ? 0 : bytes;
  meet();
}

void ThreadCommunicator::permute(ElementType type, const void *input, void *output, int64_t count,
                                 const std::vector<std::pair<int, int>> &pairs) {
  MwSegment mine{input, output, count};
  int64_t bytes = count * bytesOf(type);
  meet("permute", {&mine, 1}, bytesOf(type));
  auto pair = std::find_if(pairs.begin(), pairs.end(),
                           [&](const auto &candidate) { return candidate.second == rank(); });
  if (pair != pairs.end()) {
    copy(output, group->members[size_t(pair->first)].segments->input, bytes);
    sent += pair->first == rank() ? 0 : bytes;
  } else if (bytes) {
    std::memset(output, 0, size_t(bytes));
  }
  meet();
}

// The receiver takes what it needs from the sender's own tensors. Where it adds to
// elements that it also sends, its sum waits until they have been taken.
void ThreadCommunicator::exchange(ElementType type, ExchangeTable table, Segments segments,
                                  void *workspace) {
  int64_t width = bytesOf(type);
  int to = table.to(rank()), from = table.from(rank());
  if (to >= 0) {
    finishSend(to);
    ThreadMailbox &box = group->mailbox(rank(), to);
    box.data = segments.data;
    box.bytes = 0;
    for (const MwSegment &segment : segments)
      box.bytes += table.pieces(segment.count, table.send(rank())).length() * width;
    sent += box.bytes;
    box.call = call;
    box.sent.fetch_add(1, std::memory_order_release);
    group->wake();
  }
  struct Late {
    char *target;
    const char *got;
    int64_t count;
  };
  std::vector<Late> late;
  auto add = [&](char *target, const char *got, int64_t count) {
    reduceRange(type, Reduction(table.reduction()), {target, got}, count, {target});
  };
  if (from >= 0) {
    ThreadMailbox &box = group->mailbox(from, rank());
    uint32_t taken = box.taken.load(std::memory_order_relaxed);
    waitFor([&] { return box.sent.load(std::memory_order_acquire) != taken; }, from);
    Calls::check(calls, worldRank(rank()), call, worldRank(from), box.call);
    auto *theirs = static_cast<const MwSegment *>(box.data);
    char *scratch = static_cast<char *>(workspace);
    int64_t expected = 0;
    for (const MwSegment &segment : segments)
      expected += table.pieces(segment.count, table.receive(rank())).length() * width;
    if (box.bytes != expected)
      fail("rank ", worldRank(rank()), " expects ", expected, " bytes from rank ", worldRank(from),
           ", which sends ", box.bytes, "; the program is broken, please report it");
    for (size_t i = 0; i < segments.size; ++i) {
      int64_t count = segments[i].count;
      ExchangeTable::Range mine = table.pieces(count, table.receive(rank()));
      auto *got = static_cast<const char *>(theirs[i].input) +
                  table.pieces(count, table.send(from)).begin * width;
      char *target = static_cast<char *>(segments[i].output) + mine.begin * width;
      if (table.reduction() < 0) {
        copy(target, got, mine.length() * width);
      } else if (to < 0 || !mine.overlaps(table.pieces(count, table.send(rank())))) {
        add(target, got, mine.length());
      } else {
        copy(scratch, got, mine.length() * width);
        late.push_back({target, scratch, mine.length()});
        scratch += mine.length() * width;
      }
    }
    box.taken.store(taken + 1, std::memory_order_release);
    group->wake();
  }
  if (to >= 0)
    finishSend(to);
  for (const Late &sum : late)
    add(sum.target, sum.got, sum.count);
}
