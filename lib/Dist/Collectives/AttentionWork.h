//===- AttentionWork.h - what each device's queries see ---------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_LIB_DIST_ATTENTIONWORK_H
#define MESHWRIGHT_LIB_DIST_ATTENTIONWORK_H

#include "Dist/Dist.h"

namespace meshwright::dist {

/// Where the queries of an attention, or the keys, begin on the devices of a group that divides them.
struct QueryOffsets {
  GroupAttr group;
  llvm::SmallVector<int64_t> first; ///< the position of the first query, for each rank in the group
};

/// ... in one device's program, from what computes the operand `query_offset` or `key_offset`; nothing where that
/// is not known.
std::optional<QueryOffsets> queryOffsetsOf(mlir::Value offset, const Mesh &mesh);

/// What of attention and its gradient says which keys a query sees.
struct AttentionShape {
  static AttentionShape of(train::AttentionOp op);
  static AttentionShape of(train::AttentionGradOp op);
  /// Pairs of a query and a key of the `count` queries from position `first` on; padding is no query.
  int64_t pairs(int64_t first, int64_t count) const;
  /// ... and of the `countOfKeys` keys from position `firstKey` on.
  int64_t pairs(int64_t first, int64_t count, int64_t firstKey, int64_t countOfKeys) const;

  int64_t part;    ///< queries of a device
  int64_t queries; ///< of a sequence
  int64_t keys;
  AttentionMask mask;
  int64_t queryStride, keyStride; ///< positions from a device's query, or key, to its next
};

} // namespace meshwright::dist

#endif // MESHWRIGHT_LIB_DIST_ATTENTIONWORK_H
