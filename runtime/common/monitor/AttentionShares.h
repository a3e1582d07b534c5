//===- AttentionShares.h - attention of ranks that divide documents --------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// Where ranks divide packed sequences, how much attention each of them has follows from where
// documents begin, which is known when they are read.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_RUNTIME_COMMON_ATTENTIONSHARES_H
#define MESHWRIGHT_RUNTIME_COMMON_ATTENTIONSHARES_H

#include "common/plan/Plan.h"

#include <cstdint>
#include <vector>

namespace meshwright {

class RankGroup;

class AttentionShares {
public:
  AttentionShares(const Plan &plan, int64_t rank);

  /// Whether ranks divide packed sequences in any program.
  static bool areCounted(const Plan &plan);

  /// Floating-point operations of this rank's attention in a step, of a sequence whose tokens have
  /// these positions in their documents.
  double flops(const int32_t *positions) const;

  /// The most of a rank over the mean, in the program where that is largest, if this rank has
  /// `flops`. Collective.
  double imbalance(RankGroup &world, double flops) const;

private:
  /// Where this rank's queries and keys begin, of a share.
  struct Begin {
    const AttentionShare *share;
    int64_t query, key;
  };
  const Plan &plan;
  std::vector<Begin> begins;
};

} // namespace meshwright

#endif // MESHWRIGHT_RUNTIME_COMMON_ATTENTIONSHARES_H
