//===- TensorCopy.h - strided copies with conversion ----------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_RUNTIME_COMMON_TENSORCOPY_H
#define MESHWRIGHT_RUNTIME_COMMON_TENSORCOPY_H

#include "common/plan/ElementType.h"

#include <vector>

namespace meshwright {

/// Memory that holds a box of elements; strides are in elements.
struct TensorView {
  ElementType type;
  void *data;
  std::vector<int64_t> strides;
};

/// Copies `extent` elements of `from` to `to`, converting between f32, f64, bf16
/// and f16, and to and from i16, the lower halves of numbers in f32. Both views have
/// extent.size() strides.
void copyTensor(const std::vector<int64_t> &extent, const TensorView &from, const TensorView &to);

/// As copyTensor to bf16: the upper halves of the numbers, of which `copyTensor` to i16 makes the
/// lower ones.
void copyUpperHalves(const std::vector<int64_t> &extent, const TensorView &from,
                     const TensorView &to);

/// Adds lower halves, of type i16 or as whole numbers in f32, to upper ones in f32.
void addLowerHalves(const std::vector<int64_t> &extent, const TensorView &lower,
                    const TensorView &to);

} // namespace meshwright

#endif // MESHWRIGHT_RUNTIME_COMMON_TENSORCOPY_H
