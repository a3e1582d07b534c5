//===- Run.h - one run of a program ------------------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_LIB_EXEC_RUN_H
#define MESHWRIGHT_LIB_EXEC_RUN_H

#include "Exec/Exec.h"

namespace meshwright::exec {

/// Runs `program` without values: all iterations of all loops, except those that find memory as
/// earlier ones found it and do the same. Refuses
///
/// - a read of bytes that nothing has written, or another buffer since;
/// - an op that touches memory of an asynchronous op of another queue before the wait for it;
/// - a read of the older of a value and its copy on the host or the device, and the loss of a
///   change that outlives the program.
///
/// A loop with `times` may end after any of its iterations, or run none: what is after it holds
/// for each of these.
mlir::LogicalResult verifyRun(ProgramOp program);

} // namespace meshwright::exec

#endif // MESHWRIGHT_LIB_EXEC_RUN_H
