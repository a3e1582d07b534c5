//===- KernelSchedule.h - loops, costs and chunks of a loop nest ------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_LIB_KERNELS_KERNELSCHEDULE_H
#define MESHWRIGHT_LIB_KERNELS_KERNELSCHEDULE_H

#include "meshwright/KernelLoops.h"

namespace meshwright::codegen {

/// Merges dimensions, orders loops, decides what is kept and splits the work.
void scheduleLoopNest(LoopNest &nest, const exec::ScheduleLimits &options);

/// Uses `chunks` chunks, or fewer if so many would leave some empty.
void setChunks(LoopNest &nest, int64_t chunks);

} // namespace meshwright::codegen

#endif // MESHWRIGHT_LIB_KERNELS_KERNELSCHEDULE_H
