//===- CollectiveAlgorithms.h - all_reduce as messages ----------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// Known ways to sum a vector over n ranks by messages between pairs of them, as
// plain data: dist-decompose-collectives writes them as IR, tests run them and
// count what they send.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_LIB_DIST_COLLECTIVEALGORITHMS_H
#define MESHWRIGHT_LIB_DIST_COLLECTIVEALGORITHMS_H

#include "meshwright/Cost/Device.h"
#include "meshwright/OptionValues.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"

#include <cstdint>

namespace meshwright::dist {

/// Those that messages are written for.
llvm::ArrayRef<CollectiveAlgorithm> collectiveAlgorithms();

/// One message for each rank that takes part: rank p sends the `length` pieces
/// of its vector from sendBegin[p] on to to[p], and what arrives from from[p] is
/// added to (or replaces) those from receiveBegin[p] on. -1: nothing.
struct Exchange {
  llvm::SmallVector<int64_t> to, from, sendBegin, receiveBegin;
  int64_t length = 0;
  bool add = false;
  /// Exchanges of one round do not wait for each other.
  unsigned round = 0;
};

/// An all_reduce over `ranks` ranks, all of which end with the same bits. The
/// working vector has `pieces` equal pieces, of the vector to be summed or, if
/// `stacked`, of one such vector for each rank: then rank p begins with its own
/// as piece p, and the pieces are added in order at the end.
struct AllReduceMessages {
  int64_t ranks = 1, pieces = 1;
  bool stacked = false;
  llvm::SmallVector<Exchange, 0> exchanges;

  unsigned rounds() const;
  /// Vectors that the busiest rank sends, or receives if that is more.
  double busiest() const;
  /// Vectors that all ranks send together.
  double total() const;
};

/// For numbers of ranks that are not powers of two the doubling algorithms first
/// fold the ranks beyond the last power of two onto others.
AllReduceMessages allReduceMessages(CollectiveAlgorithm algorithm, int64_t ranks);

/// Seconds by the alpha-beta model (Hockney 1994): each round costs a message's latency, and all
/// bytes of the busiest rank go through one link.
double secondsOf(const AllReduceMessages &messages, double bytes, const cost::Link &link);

} // namespace meshwright::dist

#endif // MESHWRIGHT_LIB_DIST_COLLECTIVEALGORITHMS_H
