//===- RankGroup.h - what the runtime itself sends between ranks ----------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// Ranks agree on flags, find each other's devices, bring checkpoints together and stop at
// the same step. This is all that they need for it; what programs send is more
// (Communicator.h), and on GPUs it is NCCL's. Every call blocks until its result is in
// place and the input may be reused. Members call the same in the same order with the
// same counts, which are elements.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_RUNTIME_COMMON_RANKGROUP_H
#define MESHWRIGHT_RUNTIME_COMMON_RANKGROUP_H

#include "common/plan/ElementType.h"
#include "meshwright/runtime/ABI.h"

#include <numeric>
#include <utility>
#include <vector>

namespace meshwright {

enum class Reduction : int32_t { Sum = MW_SUM, Max = MW_MAX };

/// One rank's membership of an ordered group of ranks.
class RankGroup {
public:
  RankGroup(std::vector<int> members, int rank) : members(std::move(members)), self(rank) {}
  virtual ~RankGroup() = default;
  RankGroup(const RankGroup &) = delete;
  RankGroup &operator=(const RankGroup &) = delete;

  /// This rank's position in the group, and the group's size.
  int rank() const { return self; }
  int size() const { return int(members.size()); }
  /// The world rank of member `index`.
  int worldRank(int index) const { return members[size_t(index)]; }

  /// Waits until every member has come here.
  virtual void barrier() = 0;
  /// A message to, or from, one member; one of the two is member 0. Messages between two members
  /// arrive in order.
  virtual void send(ElementType type, const void *data, int64_t count, int to) = 0;
  virtual void receive(ElementType type, void *data, int64_t count, int from) = 0;
  /// Every member's `data` becomes that of `root`.
  virtual void broadcast(ElementType type, void *data, int64_t count, int root) = 0;
  /// `output` holds size() * count elements: member i's `input` at i * count.
  virtual void allGather(ElementType type, const void *input, void *output, int64_t count) = 0;
  /// `output` is the reduction of every member's `input`, in member order.
  virtual void allReduce(ElementType type, Reduction reduction, const void *input, void *output,
                         int64_t count) = 0;

protected:
  std::vector<int> members;
  int self;
};

/// The members of the world: 0, 1, ...
inline std::vector<int> firstRanks(int count) {
  std::vector<int> ranks(static_cast<size_t>(count));
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

} // namespace meshwright

#endif // MESHWRIGHT_RUNTIME_COMMON_RANKGROUP_H
