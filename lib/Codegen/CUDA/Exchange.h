//===- Exchange.h - kernels that add what exchanges receive -----------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_CODEGEN_CUDA_EXCHANGE_H
#define MESHWRIGHT_CODEGEN_CUDA_EXCHANGE_H

#include "Exec/Exec.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"

namespace meshwright::codegen::cuda {

/// Adds to `target` what the runtime needs for `op`, unless it is there: a kernel that takes
/// two addresses and a count, and makes of each of so many elements at the first the sum or
/// maximum of it and the one at the second. Which elements a rank combines depends on its
/// place, so one kernel serves all exchanges of its kind.
mlir::LogicalResult addExchangeKernel(exec::ExchangeOp op, mlir::gpu::GPUModuleOp target);

} // namespace meshwright::codegen::cuda

#endif // MESHWRIGHT_CODEGEN_CUDA_EXCHANGE_H
