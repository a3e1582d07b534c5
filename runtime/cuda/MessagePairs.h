//===- MessagePairs.h - which ranks send to which, and when they are connected -===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// A communicator of two is split off the world's, in which all ranks take part. So all pairs
// that have no rank in common are split off at once: the pairs are the edges of a graph of
// ranks, and a round has those of one colour of it. A rank then takes part in as many splits as
// one rank has pairs, or a few more, whether there are 16 ranks or 4,096.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_RUNTIME_CUDA_MESSAGEPAIRS_H
#define MESHWRIGHT_RUNTIME_CUDA_MESSAGEPAIRS_H

#include "common/plan/Plan.h"

#include <tuple>
#include <vector>

namespace meshwright::cuda {

/// Messages of one channel, which is a group's, from one rank to another.
struct MessagePair {
  int64_t group;
  int from, to; ///< world ranks
  bool operator<(const MessagePair &other) const {
    return std::tie(group, from, to) < std::tie(other.group, other.from, other.to);
  }
};

/// Whether a call is one end of a message.
bool isMessage(const CollectiveEntry &entry);

/// All pairs of the plan, in the same order on every rank.
std::vector<MessagePair> messagePairs(const Plan &plan);

/// The pairs in rounds: in each a rank is in one pair at most. A rank of d pairs whose partners
/// have as many finds a round among the first 2 d - 1.
std::vector<std::vector<MessagePair>> roundsOf(const std::vector<MessagePair> &pairs);

} // namespace meshwright::cuda

#endif // MESHWRIGHT_RUNTIME_CUDA_MESSAGEPAIRS_H
