//===- Experts.h - kernels of mixtures of experts ---------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// Nothing is added by several blocks and no kernel uses atomics, so results have the same bits on
// every run. All experts of a call are one launch:
//
// | kernel                     | a block has                   | does                               |
// |----------------------------|-------------------------------|------------------------------------|
// | route                      | 128 tokens                    | finds choices, counts them         |
// | route's kept               | 128 tokens of a sequence      | leaves out choices, with capacity  |
// | route's offsets            | an expert                     | adds counts of the choices before  |
// | route's rows               | 128 tokens, and some slots    | writes rows, fills empty slots     |
// | rounds                     | all                           | finds where each block's rows end  |
// | rows_of_round              | 128 choices, 128 slots        | looks up what a round has          |
// | grouped_matmul             | a tile of rows and columns    | walks the experts of its rows      |
// | grouped_matmul_grad's masks| four times 32 rows            | says which are of which expert     |
// | ... lists                  | an expert                     | lists where it has rows            |
// | grouped_matmul_grad        | a tile of an expert's matrix  | walks the rows of its expert       |
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_CODEGEN_CUDA_EXPERTS_H
#define MESHWRIGHT_CODEGEN_CUDA_EXPERTS_H

#include "Exec/Exec.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "llvm/ADT/StringMap.h"

namespace meshwright::codegen::cuda {

/// The GPU functions of the ops that programs call. Each call launches its functions in order, on
/// all of its operands.
class ExpertKernels {
public:
  /// Adds to `target` the functions of `op` unless they are there. `aligned`: whether all memory
  /// begins at multiples of 16 bytes.
  mlir::LogicalResult add(exec::RouteOp op, bool aligned, mlir::gpu::GPUModuleOp target);
  mlir::LogicalResult add(exec::RoundsOp op, bool aligned, mlir::gpu::GPUModuleOp target);
  mlir::LogicalResult add(exec::RowsOfRoundOp op, bool aligned, mlir::gpu::GPUModuleOp target);
  mlir::LogicalResult add(exec::GroupedMatmulOp op, bool aligned, mlir::gpu::GPUModuleOp target);
  mlir::LogicalResult add(exec::GroupedMatmulGradOp op, bool aligned,
                          mlir::gpu::GPUModuleOp target);

  llvm::ArrayRef<std::string> functionsOf(mlir::Operation *op) const {
    return functions.at(calls.at(op));
  }

private:
  /// The name of the functions to emit, or nothing where they are known.
  std::optional<std::string> nameFor(mlir::Operation *op, bool aligned, int64_t size = 0);

  llvm::StringMap<std::vector<std::string>> functions; ///< by what they compute
  llvm::DenseMap<mlir::Operation *, std::string> calls;
};

/// Scratch bytes of these kernels.
int64_t routeWorkspace(const exec::RouteShape &shape);
int64_t groupedGradWorkspace(const exec::GroupShape &shape);

/// Emits the kernels of one call; their names, in the order of launches. Operands are those of the op.
std::vector<std::string> emitRoute(exec::RouteOp op, const std::string &name,
                                   mlir::gpu::GPUModuleOp target);
std::vector<std::string> emitRounds(exec::RoundsOp op, const std::string &name,
                                    mlir::gpu::GPUModuleOp target);
std::vector<std::string> emitRounds(exec::RowsOfRoundOp op, const std::string &name,
                                    mlir::gpu::GPUModuleOp target);
std::vector<std::string> emitGrouped(exec::GroupedMatmulOp op, bool aligned,
                                     const std::string &name, mlir::gpu::GPUModuleOp target);
std::vector<std::string> emitGrouped(exec::GroupedMatmulGradOp op, bool aligned,
                                     const std::string &name, mlir::gpu::GPUModuleOp target);

} // namespace meshwright::codegen::cuda

#endif // MESHWRIGHT_CODEGEN_CUDA_EXPERTS_H
