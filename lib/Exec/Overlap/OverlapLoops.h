//===- OverlapLoops.h - collectives of one iteration beside another ---------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_LIB_EXEC_OVERLAPLOOPS_H
#define MESHWRIGHT_LIB_EXEC_OVERLAPLOOPS_H

#include "Exec/Exec.h"

namespace meshwright::exec {

/// The larger of the bytes that `op` sends and receives.
int64_t bytesOf(MemoryCollectiveOpInterface op);

/// Whether `op` communicates with ranks of other programs, or is a message: it keeps its
/// position in the order of all communication.
bool leavesProgram(MemoryCollectiveOpInterface op);

/// Software pipelining of the collectives in the innermost loops of `program`. A collective
/// that gathers memory which the loop does not write starts one iteration earlier. A
/// collective that reduces ends in the next iteration, which then runs the ops that depend on
/// it. Results of the former, and operands and results of the latter, get double buffers.
/// Only collectives of at least `minBytes` are moved. Async tokens are numbered from `number`
/// on; a wait is inserted before another op starts with the same token.
void overlapLoops(ProgramOp program, int64_t minBytes, int64_t &number);

} // namespace meshwright::exec

#endif // MESHWRIGHT_LIB_EXEC_OVERLAPLOOPS_H
