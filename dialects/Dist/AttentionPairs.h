//===- AttentionPairs.h - what each device computes of attention ------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_DIST_ATTENTIONPAIRS_H
#define MESHWRIGHT_DIST_ATTENTIONPAIRS_H

#include "llvm/ADT/StringRef.h"

namespace meshwright::dist {

/// On attention whose queries several devices divide: how many pairs of a query and a key each of them
/// has, in one head of one sequence (`dist-count-attention`).
inline constexpr llvm::StringLiteral attentionPairsAttr = "dist.pairs";

/// ... and what follows from: the positions of each device's first query, and of its first key if devices
/// divide keys too, and the axes that number the devices. Of packed sequences only a run can count pairs.
inline constexpr llvm::StringLiteral firstQueriesAttr = "dist.first_queries",
                                     firstKeysAttr = "dist.first_keys",
                                     dividedOverAttr = "dist.divided_over";

} // namespace meshwright::dist

#endif // MESHWRIGHT_DIST_ATTENTIONPAIRS_H
