//===- DeviceRates.h - what NVIDIA's GPUs do a second at most ---------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_LIB_CODEGEN_CUDA_DEVICERATES_H
#define MESHWRIGHT_LIB_CODEGEN_CUDA_DEVICERATES_H

#include "Exec/Target.h"

namespace meshwright::codegen::cuda {

/// The rates of a GPU of architecture `arch` (sm_90), or of the last one before it that the table
/// has.
exec::DeviceRates ratesOf(llvm::StringRef arch);

} // namespace meshwright::codegen::cuda

#endif // MESHWRIGHT_LIB_CODEGEN_CUDA_DEVICERATES_H
