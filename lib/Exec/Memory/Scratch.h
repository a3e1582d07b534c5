//===- Scratch.h - memory that library calls need for their inside ----------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_LIB_EXEC_SCRATCH_H
#define MESHWRIGHT_LIB_EXEC_SCRATCH_H

#include "Exec/Exec.h"

namespace meshwright::exec {

/// Bytes of workspace that the library call `call` of the memory form may write; 0 for other ops.
int64_t scratchBytes(mlir::Operation *call);

} // namespace meshwright::exec

#endif // MESHWRIGHT_LIB_EXEC_SCRATCH_H
