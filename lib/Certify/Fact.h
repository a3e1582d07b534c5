//===- Fact.h - which part of which global value a device has ----------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_CERTIFY_FACT_H
#define MESHWRIGHT_CERTIFY_FACT_H

#include "Certify/Expression.h"
#include "Dist/Sharding.h"

#include <optional>

namespace meshwright::certify {

using dist::Axes;
using dist::Mesh;

/// How the devices of a mesh hold a global tensor of a shape. Along each mesh axis it is
///   sharded, if the axis is in dims[d]: dimension d is divided into equal contiguous parts, and
///   the
///     device at position p along dims[d], its first axis major, has part p;
///   partial by sum, if the axis is in `sum`: the global tensor is the sum of the devices' tensors;
///   partial by maximum, if it is in `max`;
///   replicated otherwise.
struct Distribution {
  Shape shape;
  llvm::SmallVector<Axes, 4> dims;
  Axes sum, max; ///< ascending

  static Distribution replicated(llvm::ArrayRef<int64_t> shape);
  int64_t rank() const { return shape.size(); }
  bool isAny(int64_t dim) const { return shape[dim] == anyExtent; }
  /// Whether all devices along the axis have the same tensor.
  bool isReplicated(unsigned axis) const;
  /// What a device has of dimension `dim`; anyExtent if the dimension is that.
  int64_t localExtent(int64_t dim, const Mesh &mesh) const;
  bool operator==(const Distribution &other) const {
    return shape == other.shape && dims == other.dims && sum == other.sum && max == other.max;
  }
  bool operator!=(const Distribution &other) const { return !(*this == other); }
  /// "64x32 sharded [{data}, {}] partial by sum over {tensor}".
  std::string str(const Mesh &mesh) const;
};

/// A number that differs between devices: the sum over axes of a factor times the device's
/// coordinate. Ascending in axes, without factors of 0.
struct Offset {
  llvm::SmallVector<std::pair<unsigned, int64_t>, 2> terms;

  /// Where the parts of `size` begin along a dimension that `axes` divide.
  static Offset ofParts(llvm::ArrayRef<unsigned> axes, int64_t size, const Mesh &mesh);
  Offset negated() const;
  Offset plus(const Offset &other) const;
  /// The axes, major first, if this is where parts of `size` begin along them.
  std::optional<Axes> axesOfParts(int64_t size, const Mesh &mesh) const;
  bool operator==(const Offset &other) const { return terms == other.terms; }
  bool operator!=(const Offset &other) const { return terms != other.terms; }
  explicit operator bool() const { return !terms.empty(); }
};

/// What is known about a value of a rank's program: it is a part of `expression`, held as `type`
/// says. If there is an offset, integers are those of the expression plus it.
struct Fact {
  const Expression *expression = nullptr;
  Distribution type;
  Offset offset = {};
};

using FactList = llvm::SmallVector<Fact, 4>;
using Distributions = llvm::SmallVector<Distribution, 2>;

} // namespace meshwright::certify

#endif // MESHWRIGHT_CERTIFY_FACT_H
