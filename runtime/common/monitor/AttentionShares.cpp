//===- AttentionShares.cpp - attention of ranks that divide documents ------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "common/monitor/AttentionShares.h"

#include "common/communication/RankGroup.h"
#include "meshwright/runtime/AttentionMask.h"

#include <algorithm>

using namespace meshwright;

AttentionShares::AttentionShares(const Plan &plan, int64_t rank) : plan(plan) {
  std::vector<int64_t> coordinates = plan.coordinates(rank);
  for (const AttentionShare &share : plan.programs[plan.program].attentionShares) {
    auto number = size_t(plan.axesIndex(share.group, coordinates));
    begins.push_back({&share, share.firstQueries[number],
                      share.firstKeys ? (*share.firstKeys)[number] : 0});
  }
}

bool AttentionShares::areCounted(const Plan &plan) {
  return std::any_of(plan.programs.begin(), plan.programs.end(),
                     [](const Program &program) { return !program.attentionShares.empty(); });
}

double AttentionShares::flops(const int32_t *positions) const {
  double sum = 0;
  for (const auto &[share, firstQuery, firstKey] : begins) {
    int64_t pairs = 0, length = plan.sequence; // What is behind it is padding.
    int64_t pastQuery = std::min(length, firstQuery + share->queries * share->queryStride);
    int64_t pastKey = std::min(length, firstKey + share->keys * share->keyStride);
    AttentionMask mask = share->read(/*causal=*/true);
    for (int64_t query = firstQuery; query < pastQuery; query += share->queryStride)
      pairs += mask.visibleKeys(query, pastKey, firstKey, share->keyStride, query - positions[query]);
    sum += share->flops * double(pairs);
  }
  return sum;
}

double AttentionShares::imbalance(RankGroup &world, double flops) const {
  size_t count = plan.programs.size();
  std::vector<double> mine(2 * count), most(count), sums(2 * count);
  mine[plan.program] = flops;
  mine[count + plan.program] = 1; // rank
  world.allReduce(ElementType::F64, Reduction::Max, mine.data(), most.data(), int64_t(count));
  world.allReduce(ElementType::F64, Reduction::Sum, mine.data(), sums.data(), int64_t(2 * count));
  double largest = 1;
  for (size_t program = 0; program < count; ++program)
    if (sums[program] > 0)
      largest = std::max(largest, most[program] * sums[count + program] / sums[program]);
  return largest;
}
