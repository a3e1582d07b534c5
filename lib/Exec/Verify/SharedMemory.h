//===- SharedMemory.h - buffers that share memory slot by slot --------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_LIB_EXEC_SHAREDMEMORY_H
#define MESHWRIGHT_LIB_EXEC_SHAREDMEMORY_H

#include "Exec/Exec.h"

namespace meshwright::exec {

/// Runs through `program`, all iterations of all loops, and keeps of each byte which of `buffers`
/// was written there last. Refuses an op that reads one of them where another has been written
/// since, and one that writes over what it reads of another. Knows nothing of how long buffers
/// live.
mlir::LogicalResult verifySharedMemory(ProgramOp program, llvm::ArrayRef<BufferOp> buffers);

} // namespace meshwright::exec

#endif // MESHWRIGHT_LIB_EXEC_SHAREDMEMORY_H
