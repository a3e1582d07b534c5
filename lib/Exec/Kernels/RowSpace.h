//===- RowSpace.h - the loops of a memory-bound op --------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_LIB_EXEC_ROWSPACE_H
#define MESHWRIGHT_LIB_EXEC_ROWSPACE_H

#include "Train/Train.h"

namespace meshwright::exec {

/// How a tensor lies in the space that an op walks.
enum class Extent {
  Full,   ///< one element per point
  Row,    ///< one per row: all dimensions but the last
  Column, ///< one per column: the last dimension only
  Scalar, ///< one in all
  Other   ///< a table, a part of the dimensions, rows elsewhere
};

/// The loops of an op that computes row by row, read off its sharding rule: the
/// shape of its spanning tensor, and how the others lie in it.
struct RowSpace {
  llvm::SmallVector<int64_t> shape;
  llvm::SmallVector<Extent> operands, results;

  explicit RowSpace(mlir::Operation *op);

  bool isScalar() const { return shape.empty(); }
  /// Whether a reader that walks the same rows finds the result where it is: not
  /// reduced over rows, not scattered.
  bool isLocal(Extent extent) const { return extent == Extent::Full || extent == Extent::Row; }
};

} // namespace meshwright::exec

#endif // MESHWRIGHT_LIB_EXEC_ROWSPACE_H
