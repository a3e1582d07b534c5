//===- ReshardPlanner.h - from one sharding to another ----------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// Plans the collectives of a reshard from shardings alone, without IR. A machine
// with one state, the sharding the value has now, and one goal; each step changes
// the state by one collective. Steps, cheapest first:
//
//   slice           the next axis a dimension wants is free: keep the own part
//   reduce_scatter  the next axis a dimension wants is a partial one
//   all_to_all      the next axis a dimension wants is the last one of another
//                   dimension that does not want it
//   all_reduce      partial axes that no dimension wants, before anything grows
//   all_gather      the last axis of a dimension that does not want it
//
// Invariant: each dimension's list is changed at its minor end only, so the parts
// stay contiguous and every state is a sharding. Each all_gather removes an axis
// from a place where the goal does not have it and no step puts one there, so the
// machine ends.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_LIB_DIST_RESHARDPLANNER_H
#define MESHWRIGHT_LIB_DIST_RESHARDPLANNER_H

#include "Dist/Sharding.h"

#include <optional>

namespace meshwright::dist {

struct ReshardStep {
  enum Kind { Slice, ReduceScatter, AllToAll, AllReduce, AllGather } kind;
  /// The group, major first.
  Axes axes;
  /// The dimension that is cut (slice, reduce_scatter, all_to_all) or gathered
  /// (all_gather).
  unsigned dim = 0;
  /// Where all_to_all puts parts together.
  unsigned concat = 0;

  bool operator==(const ReshardStep &o) const {
    return kind == o.kind && axes == o.axes && dim == o.dim && concat == o.concat;
  }
  /// "all_gather dim 0 {data}".
  std::string str(const Mesh &mesh) const;
};

/// The steps from `from` to `to`, or nothing when a value would have to become
/// partial, which no step does. Axes with one device take no step.
std::optional<llvm::SmallVector<ReshardStep>> planReshard(Sharding from, Sharding to,
                                                          const Mesh &mesh);

} // namespace meshwright::dist

#endif // MESHWRIGHT_LIB_DIST_RESHARDPLANNER_H
