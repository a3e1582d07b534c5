//===- OverlapBuckets.h - gradients of a layer as soon as they are there ----===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_LIB_EXEC_OVERLAPBUCKETS_H
#define MESHWRIGHT_LIB_EXEC_OVERLAPBUCKETS_H

#include "Exec/Exec.h"

namespace meshwright::exec {

/// An all_reduce of stacks that a loop has filled slot by slot becomes one of slots at the
/// end of that loop's body; where the loop runs several times, for microbatches, when it
/// runs last. Slots that are reduced together have `minBytes` at least. Numbers starts
/// from `number` on.
void reduceSlots(ProgramOp program, int64_t minBytes, int64_t &number);

} // namespace meshwright::exec

#endif // MESHWRIGHT_LIB_EXEC_OVERLAPBUCKETS_H
