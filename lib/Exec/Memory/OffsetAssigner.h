//===- OffsetAssigner.h - offsets for buffers with lifetimes ----------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_LIB_EXEC_OFFSETASSIGNER_H
#define MESHWRIGHT_LIB_EXEC_OFFSETASSIGNER_H

#include "Lifetime.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"

#include <cstdint>

namespace meshwright::exec {

struct OffsetAssignment {
  llvm::SmallVector<int64_t> offsets; ///< by buffer
  int64_t size = 0;                   ///< of all
};

/// The largest sum of bytes that are live at once, which is a lower bound of all buffers' memory.
struct LiveSum {
  int64_t bytes = 0;
  /// The first moment when so many are live, and in which iterations of the loops that run then.
  int64_t time = 0;
  Iterations iterations;
};
LiveSum largestLiveSum(llvm::ArrayRef<Lifetime> buffers, int64_t alignment);

/// Offsets, multiples of `alignment`, such that no bytes are two buffers' at once: stacks
/// that one loop fills and empties may share memory slot by slot. Dynamic storage allocation is
/// NP-hard; this tries several orders of best fit, then repeatedly moves the buffers on top to the
/// front of the order, less often where that takes long. The same input always gives the same offsets.
OffsetAssignment computeOffsets(llvm::ArrayRef<Lifetime> buffers, int64_t alignment);

} // namespace meshwright::exec

#endif // MESHWRIGHT_LIB_EXEC_OFFSETASSIGNER_H
