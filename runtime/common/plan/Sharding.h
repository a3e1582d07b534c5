//===- Sharding.h - which part of a tensor a rank holds -------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// A dimension divided by mesh axes of total size n has n parts of as many rows as
// the variable's local shape says, at least ceil(size/n); the last parts may hold
// fewer rows or none and are padded with zeros.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_RUNTIME_COMMON_SHARDING_H
#define MESHWRIGHT_RUNTIME_COMMON_SHARDING_H

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace meshwright {

struct Plan;
struct Variable;

inline int64_t ceilDivide(int64_t numerator, int64_t denominator) {
  return (numerator + denominator - 1) / denominator;
}

/// The rows [begin, begin + extent) of each dimension.
struct Box {
  std::vector<int64_t> begin, extent;
  int64_t elements() const;
};

/// The part of `variable` that lies on `rank`, without padding, in global
/// coordinates (of all layers where it is stacked).
Box shardOf(const Plan &plan, const Variable &variable, int64_t rank);

/// Whether `rank` is the first of the ranks that hold the same part of `variable`:
/// the one that speaks for it in checkpoints.
bool ownsShard(const Plan &plan, const Variable &variable, int64_t rank);

/// The tensors of `variable` of which `box` holds a part, or all the padding, by number: layer
/// times experts plus expert.
std::vector<int64_t> tensorsIn(const Variable &variable, const Box &box);

/// Where a variable's tensor `number` begins in a rank's memory, of which `box` is not padding, in
/// elements.
int64_t tensorOffset(const Variable &variable, const Box &box, int64_t number);

/// Where a variable's layer lies within its file tensor: element (i, j, ...) of the
/// layer is at `offset + i * strides[0] + j * strides[1] + ...`.
struct StorageLayout {
  std::vector<int64_t> fileShape, strides;
  int64_t offset = 0;
};
StorageLayout storageLayout(const Variable &variable);

/// A part of a box of a variable's layer that lies evenly in its file tensor.
struct StoredPart {
  std::vector<int64_t> first; ///< its beginning within the box
  std::vector<int64_t> extent;
  int64_t fileOffset; ///< of its first element in the file tensor
  std::vector<int64_t> fileStrides;
};

/// How many rows of its file tensor lie above those of tensor `number` of a variable.
int64_t rowsAbove(const Variable &variable, int64_t number);

/// The parts of the box at `begin` of size `extent`, in coordinates of tensor `number`.
std::vector<StoredPart> storedParts(const Variable &variable, const std::vector<int64_t> &begin,
                                    const std::vector<int64_t> &extent, int64_t number = 0);

/// The dimension of `part` that lies along a dimension of its file tensor with this size and this stride; the number of
/// dimensions if the part has one index there.
size_t dimensionAlong(const StoredPart &part, int64_t stride, int64_t size);

/// What of `part` lies in `window`, a box of the file tensor of shape `fileShape`; nothing if
/// no element does.
std::optional<StoredPart> partWithin(StoredPart part, const std::vector<int64_t> &fileShape,
                                     const Box &window);

/// `part`, all of which lies in `box` of the file tensor of shape `fileShape`, with its place and strides in memory that
/// holds the box alone.
StoredPart partOfBox(StoredPart part, const std::vector<int64_t> &fileShape, const Box &box);

/// The name of the file tensor that holds tensor `number` of `variable`.
std::string storageName(const Variable &variable, int64_t number);

/// Elements from one row of `strides` to the next, for a dense tensor.
std::vector<int64_t> denseStrides(const std::vector<int64_t> &shape);

} // namespace meshwright

#endif // MESHWRIGHT_RUNTIME_COMMON_SHARDING_H
