//===- OverlapBuckets.h - gradients of a layer as soon as they are there ----===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_LIB_EXEC_OVERLAPBUCKETS_H
#define MESHWRIGHT_LIB_EXEC_OVERLAPBUCKETS_H

#include "Exec/Exec.h"

namespace meshwright::exec {

/// Turns an all_reduce of stacks that a loop fills slot by slot into one all_reduce of slots
/// at the end of the loop's body; if the loop runs several times, for microbatches, in its
/// last run. Slots that are reduced together have at least `minBytes`. Async tokens are
/// numbered from `number` on.
void reduceSlots(ProgramOp program, int64_t minBytes, int64_t &number);

} // namespace meshwright::exec

#endif // MESHWRIGHT_LIB_EXEC_OVERLAPBUCKETS_H
