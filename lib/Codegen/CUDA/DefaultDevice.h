//===- DefaultDevice.h - the GPU that an architecture stands for -------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_LIB_CODEGEN_CUDA_DEFAULTDEVICE_H
#define MESHWRIGHT_LIB_CODEGEN_CUDA_DEFAULTDEVICE_H

#include "llvm/ADT/StringRef.h"

namespace meshwright::codegen::cuda {

/// The device of the cost table that programs for architecture `arch` (sm_90) are for: the data
/// center GPU of that architecture, or of the last one before it that the table has.
llvm::StringRef deviceOf(llvm::StringRef arch);

} // namespace meshwright::codegen::cuda

#endif // MESHWRIGHT_LIB_CODEGEN_CUDA_DEFAULTDEVICE_H
