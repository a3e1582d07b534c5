//===- Torus.h - devices linked to their neighbours along dimensions --------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_COST_TORUS_H
#define MESHWRIGHT_COST_TORUS_H

#include "meshwright/Cost/Device.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"

#include <optional>

namespace meshwright::cost {

/// How the members of a group lie along one dimension of a torus: at so many coordinates, each
/// `stride` after the one before. Groups of the coordinates between share their links.
struct TorusExtent {
  int64_t count = 1, stride = 1;
  /// Whether the last is the neighbour of the first, so that data can go round in both directions.
  bool isRing = false;

  bool operator==(const TorusExtent &other) const {
    return std::tie(count, stride, isRing) == std::tie(other.count, other.stride, other.isRing);
  }
};

/// Devices with a link to the next one in both directions of each dimension. Messages take the shorter way
/// round, one dimension after the other, the last one first; those to a device just opposite go up.
class Torus {
public:
  /// Devices along each dimension. Numbers of devices count along the last one first, as ranks do along
  /// the axes of a mesh.
  llvm::SmallVector<int64_t> dimensions;

  int64_t size() const;

  /// Messages that are sent at once: how many links the longest passes, and how many messages pass the link
  /// that most pass. Pairs of sender and receiver; those to the sender itself take no time.
  struct Load {
    int64_t hops = 0, sharing = 0;
  };
  Load loadOf(llvm::ArrayRef<std::pair<int64_t, int64_t>> messages) const;

  /// How the members of a group lie, where they are all devices at certain coordinates in each dimension; else nothing.
  std::optional<llvm::SmallVector<TorusExtent>> boxOf(llvm::ArrayRef<int64_t> ranks) const;

  /// Seconds in which each member of a box sends `bytes`, its part of what all gather, so that all have
  /// it: along one dimension after the other, in both directions, in as many parts as
  /// there are dimensions, each of which begins with another one (the bucket algorithm of Sack and Gropp 2015).
  static double gatherSeconds(llvm::ArrayRef<TorusExtent> box, double bytes, const Link &link);
  /// Seconds in which each member sends `bytes`, an equal part to each other, all at once.
  double exchangeSeconds(llvm::ArrayRef<TorusExtent> box, double bytes, const Link &link) const;
};

} // namespace meshwright::cost

#endif // MESHWRIGHT_COST_TORUS_H
