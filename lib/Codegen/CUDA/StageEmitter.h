//===- StageEmitter.h - one stage of a kernel as a GPU function -------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_CODEGEN_CUDA_STAGEEMITTER_H
#define MESHWRIGHT_CODEGEN_CUDA_STAGEEMITTER_H

#include "Codegen/CUDA/LaunchShape.h"
#include "Codegen/StageValues.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"

#include <map>

namespace meshwright::codegen::cuda {

/// Emits one stage as LaunchShape.h spreads it over threads. A mask of columns is
/// one i1: vectors never reach over the end of a row.
class StageEmitter : StageValues {
public:
  StageEmitter(const KernelPlan &plan, const Stage &stage, mlir::gpu::GPUModuleOp module,
               llvm::ArrayRef<int64_t> alignment)
      : StageValues(plan, stage, 1), module(module), shape(launchShapeOf(stage, plan, alignment)) {
    lanes = shape.lanes;
  }

  mlir::LogicalResult emit(llvm::StringRef name);

private:
  using Body =
      llvm::function_ref<Carried(const Columns &, unsigned slot, llvm::ArrayRef<mlir::Value>)>;

  //===--- shapes (StageEmitter.cpp) ----------------------------------------===//
  void emitPoints();
  Carried emitPoint(mlir::Value point, llvm::ArrayRef<mlir::Value> carried);
  void emitColumns();
  /// One of the sequential rows: the next column sums.
  Carried emitSequentialRow(mlir::Value row, const Columns &columns,
                            llvm::ArrayRef<mlir::Value> sums);

  //===--- rows (RowEmitter.cpp) --------------------------------------------===//
  void emitRows();
  void emitChunkOfRows();
  /// One row; `carried` are sums over everything, then sums of this thread's columns,
  /// root by root and slot by slot.
  Carried emitRow(Carried carried);
  Carried emitLoop(unsigned loop, int column, Carried carried);
  /// Calls `body` for each vector of `column` that belongs to this thread.
  Carried walk(int column, unsigned loop, Carried carried, Body body);
  void storeColumnSums(llvm::ArrayRef<mlir::Value> sums);
  void emitRowRoots(Carried &carried);
  /// Values of all threads that share a row, combined, to all of them.
  Carried groupReduce(llvm::ArrayRef<train::ReduceKind> kinds, Carried values);
  mlir::Value warpReduce(train::ReduceKind kind, mlir::Value value, int64_t width);
  unsigned slotsOfMain() const;
  unsigned unrollOf(unsigned loop);

  //===--- memory -----------------------------------------------------------===//
  mlir::Value pointer(Buffer *buffer) override;
  mlir::Type registerType(mlir::Type element) override { return element; }
  mlir::Value load(mlir::Value address, mlir::Type type, const Columns *columns,
                   mlir::Value extraMask = {}) override;
  void store(mlir::Value value, mlir::Value address, const Columns *columns) override;
  mlir::Value loadLanes(mlir::Value base, mlir::Type type, mlir::Value offsets,
                        const Columns &columns) override;
  mlir::Value extend(mlir::FloatType from, mlir::Value value) override;
  mlir::Value round(mlir::FloatType to, mlir::Value value) override;

  //===--- threads ----------------------------------------------------------===//
  mlir::Value less(mlir::Value a, mlir::Value b);
  mlir::Value isFirst(mlir::Value index);
  llvm::SmallVector<const Root *> rootsOf(Root::Kind kind) const;
  /// Stores the sums over everything, one a chunk.
  void storeFullSums(llvm::ArrayRef<mlir::Value> sums);

  mlir::gpu::GPUModuleOp module;
  LaunchShape shape;
  mlir::gpu::GPUFuncOp function;
  mlir::Value block, thread; ///< numbers of this block and this thread in it, i64
  mlir::Value inGroup;       ///< of this thread among those that share a row
  llvm::DenseMap<Buffer *, mlir::Value> pointers;
  /// Values of a row that threads hold from loop to loop: by column dimension and slot.
  std::map<std::pair<int, unsigned>, Memo> held;
};

} // namespace meshwright::codegen::cuda

#endif // MESHWRIGHT_CODEGEN_CUDA_STAGEEMITTER_H
