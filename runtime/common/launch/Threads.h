//===- Threads.h - how many threads a rank may use ------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_RUNTIME_COMMON_THREADS_H
#define MESHWRIGHT_RUNTIME_COMMON_THREADS_H

#include "meshwright/runtime/ABI.h"

/// The number of OpenMP threads this rank's kernels run on, at least 1. The
/// kernels' results are the same for every number.
int mw_context_threads(const MwContext *context);

#endif // MESHWRIGHT_RUNTIME_COMMON_THREADS_H
