//===- OffsetAssigner.h - offsets for buffers with lifetimes ----------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_LIB_EXEC_OFFSETASSIGNER_H
#define MESHWRIGHT_LIB_EXEC_OFFSETASSIGNER_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"

#include <cstdint>

namespace meshwright::exec {

/// A buffer of `size` bytes that is live in [begin, end).
struct Lifetime {
  int64_t size, begin, end;
  bool overlaps(const Lifetime &other) const { return begin < other.end && other.begin < end; }
};

struct OffsetAssignment {
  llvm::SmallVector<int64_t> offsets; ///< by buffer
  int64_t size = 0;                   ///< of all
};

/// The largest sum of sizes, rounded up to `alignment`, of buffers that are live at once,
/// which is a lower bound, and the first moment when they are.
std::pair<int64_t, int64_t> largestLiveSum(llvm::ArrayRef<Lifetime> buffers, int64_t alignment);

/// Offsets, multiples of `alignment`, such that no two buffers that are live at
/// once overlap. Dynamic storage allocation is NP-hard; this tries several orders of
/// best fit, then repeatedly moves the buffers on top to the front of the order.
/// The same input always gives the same offsets.
OffsetAssignment computeOffsets(llvm::ArrayRef<Lifetime> buffers, int64_t alignment);

} // namespace meshwright::exec

#endif // MESHWRIGHT_LIB_EXEC_OFFSETASSIGNER_H
