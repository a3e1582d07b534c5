//===- Epilogues.h - kernels for what follows products ----------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_CODEGEN_CUDA_EPILOGUES_H
#define MESHWRIGHT_CODEGEN_CUDA_EPILOGUES_H

#include "Exec/Exec.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"

namespace meshwright::codegen::cuda {

/// Adds to `target` what the runtime needs to do `op`'s epilogue without cuBLASLt, unless it is
/// there: against these kernels it holds cuBLASLt's results as it starts, and they take over where
/// these are wrong or the library has none. Sizes are arguments, so that a kernel serves all
/// products of its kind; each takes a matrix, what is beside it, rows, columns and the distance
/// of rows.
void addEpilogueKernels(exec::MatmulOp op, mlir::gpu::GPUModuleOp target);

} // namespace meshwright::codegen::cuda

#endif // MESHWRIGHT_CODEGEN_CUDA_EPILOGUES_H
