//===- GatheredKeys.h - where attention's keys come from --------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// What partition makes of attention whose devices have parts of the keys: a gather before it,
// and behind its gradient a sum, of which each device goes on with its part.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_LIB_DIST_GATHEREDKEYS_H
#define MESHWRIGHT_LIB_DIST_GATHEREDKEYS_H

#include "Dist/Dist.h"

#include "llvm/ADT/SetVector.h"

namespace meshwright::dist {

/// Where keys or values come from that all devices of a ring would have.
struct Gathered {
  AllGatherOp gather; ///< along the sequence; null if there is none
  AllReduceOp sum;    ///< over other devices, if it comes after the gather
  /// In a ring: who gather first what they share, if any do; who it goes around among then; and how many keys
  /// each has.
  GroupAttr shared, group;
  int64_t part = 0;
};

/// What `keys` are without padding.
Gathered gatheredOf(mlir::Value keys);

/// What partition makes of the sum of gradients of keys: the part that a device goes on with.
struct SummedPart {
  mlir::Value value;                        ///< null where something else is done with the gradients
  llvm::SmallSetVector<unsigned, 4> summed; ///< over which axes
  llvm::SmallVector<Axes> dims{4};          ///< which axes divide each dimension; 1 is of tokens
};

/// Follows `partial`, a term of the sum, to where a device has its own of `tokens` tokens, which are
/// divided among the axes `ring` first. On the way there may be sums by parts of unpadded tokens.
SummedPart summedPartOf(mlir::Value partial, llvm::ArrayRef<unsigned> ring, int64_t tokens,
                        const Mesh &mesh);

/// Whether something of which `values` are made was sent among devices along `axes`.
bool comeAlong(llvm::ArrayRef<unsigned> axes, llvm::ArrayRef<mlir::Value> values, const Mesh &mesh);

} // namespace meshwright::dist

#endif // MESHWRIGHT_LIB_DIST_GATHEREDKEYS_H
