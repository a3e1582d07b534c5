//===- Dist.h - the dist dialect --------------------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_DIST_DIST_H
#define MESHWRIGHT_DIST_DIST_H

#include "Dist/Sharding.h"
#include "Train/Train.h"

#include "mlir/IR/BuiltinAttributeInterfaces.h"
#include "mlir/IR/TensorEncoding.h"

namespace meshwright::dist {
/// 0, the number of the only tensor of a collective that could have several: what
/// works on one tensor must not see others by accident.
unsigned onlyTensor(mlir::Operation *op);
} // namespace meshwright::dist

#include "Dist/DistDialect.h.inc"
#define GET_ATTRDEF_CLASSES
#include "Dist/DistAttrs.h.inc"
#include "Dist/DistInterfaces.h.inc"
#define GET_OP_CLASSES
#include "Dist/DistOps.h.inc"

namespace meshwright::dist {

/// An attribute of partitioned ops next to layers that are split into chunks, until each stage has
/// its program: for each result, or for each carried value of a repeat, the names of the axes along
/// which devices have the same value.
inline constexpr llvm::StringLiteral replicatedAttr = "dist.replicated";

/// An attribute of a partitioned gradient of attention: the names of the axes along which devices
/// compute the same one. What they make of it must stay equal, so its sums need a fixed order.
inline constexpr llvm::StringLiteral copiedAttr = "dist.copied";

/// An attribute of a partitioned product or attention: the names of the axes along which devices compute
/// the same one, each all of it.
inline constexpr llvm::StringLiteral repeatedAttr = "dist.repeated";

/// Marks a collective that moves slots of rows, [blocks, b, slots, ..], of whose blocks each
/// part ends in rows of zeros where no rows fill its slots.
inline constexpr llvm::StringLiteral slotsAttr = "dist.slots";

/// The sharding in a tensor type, or null.
ShardingAttr shardingOf(mlir::Type type);
/// `type` with `sharding` (null: none) in place of its own.
mlir::RankedTensorType withSharding(mlir::Type type, ShardingAttr sharding);

/// The module's one mesh, or null after an error: floor 2 works on exactly one.
MeshOp lookupMesh(mlir::Operation *module);

} // namespace meshwright::dist

#endif // MESHWRIGHT_DIST_DIST_H
