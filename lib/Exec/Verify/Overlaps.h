//===- Overlaps.h - buffers that are live in the same bytes -----------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_LIB_EXEC_OVERLAPS_H
#define MESHWRIGHT_LIB_EXEC_OVERLAPS_H

#include "llvm/ADT/ArrayRef.h"

#include <cstdint>
#include <optional>
#include <utility>

namespace meshwright::exec {

/// The bytes [offset, offset + size) in the time [begin, end).
struct PlacedBuffer {
  int64_t offset, size, begin, end;

  bool sharesBytes(const PlacedBuffer &other) const {
    return offset < other.offset + other.size && other.offset < offset + size;
  }
};

/// Two of the buffers, in ascending order, that are live at once and share bytes; nothing if there
/// are none. Takes n log n steps.
std::optional<std::pair<size_t, size_t>> findOverlap(llvm::ArrayRef<PlacedBuffer> buffers);

} // namespace meshwright::exec

#endif // MESHWRIGHT_LIB_EXEC_OVERLAPS_H
