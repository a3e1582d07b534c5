//===- Attention.h - generated kernels of attention -------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// Attention of any head size in f32, bf16 and f16, causal or not, with sliding window,
// grouped heads, slopes, sinks, values of another size and dropout, in the manner of
// FlashAttention-2 (Dao, 2023): scores exist a tile at a time and are computed again backward.
// Products are f32 on the cores for arithmetic. Of a part of the keys results are in f32, merged with
// those for other keys where the call has these. Nothing is added by several blocks, so results have
// the same bits on every run:
//
// | kernel                | a block has                  | walks            |
// |-----------------------|------------------------------|------------------|
// | attention             | a tile of queries of a head  | keys it sees     |
// | attention_grad        | the same: delta and dq       | keys it sees     |
// | attention_grad's keys | a tile of keys: dk and dv    | heads, queries   |
// | ... sinks             | a head: dsinks               | its queries      |
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_CODEGEN_CUDA_ATTENTION_H
#define MESHWRIGHT_CODEGEN_CUDA_ATTENTION_H

#include "Exec/Exec.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "llvm/ADT/StringMap.h"

namespace meshwright::codegen::cuda {

/// The GPU functions of the attention that programs call, but for what is cuDNN's without
/// a fallback. Each call launches its functions in order, on its operands in theirs.
class AttentionKernels {
public:
  /// Adds to `target` the functions of `op` unless they are there, or it needs none. `aligned`: whether
  /// all tensors begin at multiples of 16 bytes.
  mlir::LogicalResult add(exec::AttentionOp op, bool aligned, mlir::gpu::GPUModuleOp target);
  mlir::LogicalResult add(exec::AttentionGradOp op, bool aligned, mlir::gpu::GPUModuleOp target);

  /// What the functions of `op` take: all but scratch memory that is cuDNN's alone.
  static mlir::SmallVector<mlir::Value> operandsOf(mlir::Operation *op);

  llvm::ArrayRef<std::string> functionsOf(mlir::Operation *op) const {
    return functions.at(calls.at(op));
  }

private:
  llvm::StringMap<std::vector<std::string>> functions; ///< by what they compute
  llvm::DenseMap<mlir::Operation *, std::string> calls;
};

} // namespace meshwright::codegen::cuda

#endif // MESHWRIGHT_CODEGEN_CUDA_ATTENTION_H
