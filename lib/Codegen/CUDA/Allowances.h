//===- Allowances.h - what a GPU holds beside the arena ---------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_CODEGEN_CUDA_ALLOWANCES_H
#define MESHWRIGHT_CODEGEN_CUDA_ALLOWANCES_H

#include "Exec/Exec.h"

namespace meshwright::codegen::cuda {

/// What the driver, the libraries and NCCL take of the GPU of a rank that runs `program`.
/// The runtime measures, and says both.
std::vector<plan::Allowance> allowancesOf(mlir::ModuleOp program,
                                          const Communication &communication);

} // namespace meshwright::codegen::cuda

#endif // MESHWRIGHT_CODEGEN_CUDA_ALLOWANCES_H
