//===- BucketCollectives.h - many tensors in one call -----------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_LIB_DIST_BUCKETCOLLECTIVES_H
#define MESHWRIGHT_LIB_DIST_BUCKETCOLLECTIVES_H

#include "Dist/Dist.h"

namespace meshwright::dist {

/// Makes one call of collectives of `block` that are alike but for their tensors,
/// in their order, as long as a call moves at most `limit` bytes. What reads the
/// first results and stands before the last tensor's collective waits, if it is
/// memory-bound and so costs nothing to delay.
void bucketCollectives(mlir::Block &block, int64_t limit);

} // namespace meshwright::dist

#endif // MESHWRIGHT_LIB_DIST_BUCKETCOLLECTIVES_H
