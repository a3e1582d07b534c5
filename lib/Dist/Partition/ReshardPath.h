//===- ReshardPath.h - from one sharding to another -------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// Finds the collectives of a reshard from shardings alone, without IR: the
// cheapest path in a graph whose nodes are shardings and whose edges are steps.
//
//   slice           keep the own part along axes the value has copies over
//   reduce_scatter  complete partial axes, each device keeping its part
//   all_reduce      complete partial axes
//   all_to_all      the last axes of one dimension become the last of another
//   permute         devices exchange whole parts: axes swap their roles
//   all_gather      the last axes of a dimension go
//   reduce, gather  all_reduce and all_gather for the root alone
//   broadcast       the root gives its value to all
//   scatter         ... or to each its part
//
// To become the root's alone, a value that all have copies of takes no step.
//
// Each step changes the minor end of a dimension's list, or permutes whole parts,
// so that every node is a sharding with contiguous parts. A path is cheaper than
// another when each device sends fewer elements on it; then when it has fewer
// collectives, then fewer steps. No step makes a part larger than both ends have
// it where a path without such a step exists, which permutations nearly always
// allow (Rink et al. 2021, "Memory-efficient array redistribution through
// portable collective communication").
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_LIB_DIST_RESHARDPATH_H
#define MESHWRIGHT_LIB_DIST_RESHARDPATH_H

#include "Dist/Sharding.h"

#include "llvm/Support/Error.h"

namespace meshwright::dist {

struct ReshardStep {
  /// The rows of Collectives.def, and what takes no communication.
  enum Kind {
#define MW_COLLECTIVE(Op, ...) Op,
#include "meshwright/runtime/Collectives.def"
    Slice,
    /// Never on a path: what devices other than the root have is of no more use.
    Forget
  } kind;
  /// The group, major first.
  Axes axes;
  /// The dimension that is sharded (slice, reduce_scatter, all_to_all, scatter) or
  /// gathered (all_gather, gather).
  unsigned dim = 0;
  /// Where all_to_all puts parts together.
  unsigned concat = 0;
  /// Of permute: the rank in the group whose part each rank gets.
  llvm::SmallVector<int64_t> source = {};

  bool operator==(const ReshardStep &o) const {
    return kind == o.kind && axes == o.axes && dim == o.dim && concat == o.concat &&
           source == o.source;
  }
  /// "all_gather dim 0 {data}".
  std::string str(const Mesh &mesh) const;
  /// Elements one device sends on average for a step that finds `elements` on each.
  double sent(double elements, const Mesh &mesh) const;
  /// Makes the shape of a device's part before the step the one after it.
  void resize(llvm::MutableArrayRef<int64_t> shape, const Mesh &mesh) const;
};

/// The steps from `from` to `to` for a tensor of global shape `shape`, which both
/// divide evenly. An error when a value would have to become partial, which no
/// step does, or when more than six axes change their roles. Axes with one device
/// take no step.
llvm::Expected<llvm::SmallVector<ReshardStep>>
findReshardPath(Sharding from, Sharding to, llvm::ArrayRef<int64_t> shape, const Mesh &mesh);

} // namespace meshwright::dist

#endif // MESHWRIGHT_LIB_DIST_RESHARDPATH_H
