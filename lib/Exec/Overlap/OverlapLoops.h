//===- OverlapLoops.h - collectives of one iteration beside another ---------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_LIB_EXEC_OVERLAPLOOPS_H
#define MESHWRIGHT_LIB_EXEC_OVERLAPLOOPS_H

#include "Exec/Exec.h"

namespace meshwright::exec {

/// Bytes of what `op` sends, or of what it receives if that is more.
int64_t bytesOf(CollectiveOpInterface op);

/// Whether `op` is communication with ranks of other programs, or a message: it keeps its
/// place among all other communication.
bool leavesProgram(CollectiveOpInterface op);

/// Software pipelining of the innermost loops of `program`, as far as their collectives
/// go. What an iteration gathers from memory that the loop does not write is started in
/// the iteration before. What an iteration reduces ends in the iteration after, which
/// then does what had to wait for it. Results of the former, operands and results of the
/// latter get two places that iterations take in turns. Collectives have `minBytes` at
/// least. Numbers starts from `number` on and puts the waits that must come before other
/// starts of the same number.
void overlapLoops(ProgramOp program, int64_t minBytes, int64_t &number);

} // namespace meshwright::exec

#endif // MESHWRIGHT_LIB_EXEC_OVERLAPLOOPS_H
