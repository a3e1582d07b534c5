//===- LowerToMemory.h - tensor ops as calls on memory ----------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_LIB_EXEC_LOWERTOMEMORY_H
#define MESHWRIGHT_LIB_EXEC_LOWERTOMEMORY_H

#include "Dist/Dist.h"
#include "Exec/Exec.h"

namespace meshwright::exec {

/// Where values are, for the lowering of one op.
class MemoryMap {
public:
  virtual ~MemoryMap() = default;
  /// The memory of `value`, as a memref of its shape, at the builder's insertion point.
  virtual mlir::Value memory(mlir::OpBuilder &builder, mlir::Value value) = 0;
  /// Scratch memory for one op.
  virtual mlir::Value workspace(mlir::OpBuilder &builder, mlir::Location loc, int64_t bytes) = 0;
  /// The function that `op` launches.
  virtual mlir::func::FuncOp kernelOf(LaunchOp op) = 0;
  /// Where messages of `op` to its receiver wait until they are taken.
  virtual mlir::Value sendBuffer(dist::SendOp op) = 0;
};

/// The mesh axes of a group.
mlir::ArrayAttr axesOf(dist::GroupAttr group);

/// The runtime's calls move blocks that are contiguous, which parts along `dim` of
/// `value` are if no longer dimension comes before: otherwise an error of `op`.
mlir::LogicalResult checkContiguous(mlir::Operation *op, mlir::Value value, int64_t dim);

/// Emits the memory form of `op`: a launch, a library call or a collective. An op
/// that has none is an error naming it.
mlir::LogicalResult lowerToMemory(mlir::Operation *op, mlir::OpBuilder &builder, MemoryMap &map);

} // namespace meshwright::exec

#endif // MESHWRIGHT_LIB_EXEC_LOWERTOMEMORY_H
