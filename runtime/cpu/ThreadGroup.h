//===- ThreadGroup.h - what the threads of a group share ------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_RUNTIME_CPU_THREADGROUP_H
#define MESHWRIGHT_RUNTIME_CPU_THREADGROUP_H

#include "meshwright/runtime/ABI.h"

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

namespace meshwright {

/// What one member shows the others. A cache line each, so that members do not
/// disturb one another.
struct alignas(64) ThreadMember {
  /// The number of meetings this member has come to.
  std::atomic<uint32_t> arrived{0};
  /// Of the current collective; read by others between two meetings.
  const char *kind = "";
  int call = -1;
  const MwSegment *segments = nullptr;
  int64_t bytes = 0;
};

/// A message from one member to another: posted when `sent` > `taken`.
struct alignas(64) ThreadMailbox {
  std::atomic<uint32_t> sent{0}, taken{0};
  const void *data = nullptr;
  int64_t bytes = 0;
  int call = -1; ///< of the sender
};

class ThreadGroup {
public:
  ThreadGroup(std::vector<int> worldRanks)
      : worldRanks(std::move(worldRanks)), members(this->worldRanks.size()),
        mailboxes(members.size() * members.size()) {}

  int size() const { return int(members.size()); }
  ThreadMailbox &mailbox(int from, int to) {
    return mailboxes[size_t(from) * members.size() + size_t(to)];
  }
  /// Wakes members that sleep, after something they may wait for has changed.
  void wake();
  /// The group that members at `positions` make at their `sequence`-th split.
  std::shared_ptr<ThreadGroup> child(uint64_t sequence, const std::vector<int> &positions);

  const std::vector<int> worldRanks;
  std::vector<ThreadMember> members;
  std::vector<ThreadMailbox> mailboxes;

  std::mutex mutex;
  std::condition_variable changed;
  std::atomic<int> sleepers{0};

private:
  std::map<std::pair<uint64_t, std::vector<int>>, std::weak_ptr<ThreadGroup>> children;
};

} // namespace meshwright

#endif // MESHWRIGHT_RUNTIME_CPU_THREADGROUP_H
