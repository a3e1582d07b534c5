//===- BucketCollectives.h - many tensors in one call -----------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_LIB_DIST_BUCKETCOLLECTIVES_H
#define MESHWRIGHT_LIB_DIST_BUCKETCOLLECTIVES_H

#include "Dist/Dist.h"

#include "meshwright/Cost/Device.h"

namespace meshwright::dist {

/// How large calls with several tensors become.
struct BucketSize {
  /// Total bytes that are merged in any group.
  int64_t bytes;
  /// Stacks of layers of so many bytes each move layer by layer: no call is larger than `bytes` on their account.
  int64_t sliceBytes;
  /// Of other tensors, as many bytes are merged as keep this network busy for long enough.
  cost::Link network;
};

/// Makes one call of collectives of `block` that are alike but for their tensors, in their order, as large as `size` says.
/// Tensors of up to a sixty-fourth of that are in addition, up to a quarter of it together. What reads the first results and stands before the last
/// tensor's collective waits, if it is memory-bound and so costs nothing to delay.
void bucketCollectives(mlir::Block &block, const Mesh &mesh, const BucketSize &size);

} // namespace meshwright::dist

#endif // MESHWRIGHT_LIB_DIST_BUCKETCOLLECTIVES_H
