//===- Sharding.h - meshes and shardings without IR -------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// The arithmetic of floor 2: which device holds which elements. Plain data, so that
// propagation and reshard planning are tested without IR. Axes are numbered by
// their position in the mesh.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_DIST_SHARDING_H
#define MESHWRIGHT_DIST_SHARDING_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"

#include <cstdint>
#include <string>

namespace meshwright::dist {

/// Mesh axes by number, major first.
using Axes = llvm::SmallVector<unsigned, 2>;

struct MeshAxis {
  std::string name;
  int64_t size = 1;
};

/// Devices in a grid. Ranks are numbered row-major: the last axis varies fastest.
struct Mesh {
  /// The most devices that a mesh may have.
  static constexpr int64_t mostDevices = int64_t(1) << 20;

  llvm::SmallVector<MeshAxis> axes;

  /// Devices in all.
  int64_t size() const;
  /// Devices that differ along `axes` only.
  int64_t size(llvm::ArrayRef<unsigned> axes) const;
  /// The axis called `name`, or -1.
  int find(llvm::StringRef name) const;
  /// The axis called `name` or, where it is made of parts (name.0, name.1), those,
  /// major first; empty if there is none.
  Axes named(llvm::StringRef name) const;
  /// "{data, tensor}".
  std::string str(llvm::ArrayRef<unsigned> axes) const;

  /// The coordinate of `rank` along one axis.
  int64_t coordinate(int64_t rank, unsigned axis) const;
  /// The rank of `rank` in its group along `axes`, major first.
  int64_t position(int64_t rank, llvm::ArrayRef<unsigned> axes) const;
  /// All ranks of the group that `rank` is in along `axes`, in order of position.
  llvm::SmallVector<int64_t> group(int64_t rank, llvm::ArrayRef<unsigned> axes) const;
};

/// Where the elements of one tensor are. Dimension d is sharded into
/// size(dims[d]) equal parts; the device at position p along dims[d] has the
/// p-th. Over `partial` axes each device has a term of the sum (or, with `max`,
/// a candidate for the maximum) instead of the value. Over `root` axes only the
/// device at coordinate 0 of each holds anything. Over all other axes the devices
/// hold copies.
struct Sharding {
  llvm::SmallVector<Axes, 4> dims;
  Axes partial;
  bool max = false;
  Axes root = {};

  static Sharding replicated(int64_t rank) {
    Sharding s;
    s.dims.resize(rank);
    return s;
  }
  bool isReplicated() const;
  /// Whether a dimension, the partial or the root list holds `axis`.
  bool uses(unsigned axis) const;
  /// The dimension sharded along `axis`, or -1.
  int dimOf(unsigned axis) const;
  bool isPartial(unsigned axis) const;
  bool isRoot(unsigned axis) const;
  /// Whether the device `rank` holds anything.
  bool isOn(int64_t rank, const Mesh &mesh) const;
  /// The same with nothing partial.
  Sharding complete() const;
  /// Partial and root axes ascending, so that equal shardings compare equal.
  void normalize();

  bool operator==(const Sharding &other) const {
    return dims == other.dims && partial == other.partial && root == other.root &&
           (partial.empty() || max == other.max);
  }
  bool operator!=(const Sharding &other) const { return !(*this == other); }

  /// "[{data}, {}] partial {tensor} root {replica}".
  std::string str(const Mesh &mesh) const;
};

/// The first dimension that does not divide evenly, or -1.
int firstUneven(llvm::ArrayRef<int64_t> shape, const Sharding &sharding, const Mesh &mesh);

/// One device's part of `shape`, all dimensions dividing.
llvm::SmallVector<int64_t> localShape(llvm::ArrayRef<int64_t> shape, const Sharding &sharding,
                                      const Mesh &mesh);

/// Where the part of `rank` begins in each dimension of the global shape.
llvm::SmallVector<int64_t> localOffset(llvm::ArrayRef<int64_t> shape, const Sharding &sharding,
                                       const Mesh &mesh, int64_t rank);

} // namespace meshwright::dist

#endif // MESHWRIGHT_DIST_SHARDING_H
