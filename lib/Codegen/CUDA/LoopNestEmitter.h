//===- LoopNestEmitter.h - loop nests of a kernel as a GPU function ------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_CODEGEN_CUDA_LOOPNESTEMITTER_H
#define MESHWRIGHT_CODEGEN_CUDA_LOOPNESTEMITTER_H

#include "Codegen/CUDA/LoopNestGroups.h"
#include "Codegen/LoopNestValues.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"

#include <map>

namespace meshwright::codegen::cuda {

/// Emits loop nests that are launched together as LaunchShape.h spreads them over threads. A mask
/// of columns is one i1: vectors never reach over the end of a row.
class LoopNestEmitter : LoopNestValues {
public:
  LoopNestEmitter(const KernelLoops &kernelLoops, const LoopNestGroup &group,
                  mlir::gpu::GPUModuleOp module)
      : LoopNestValues(kernelLoops, *group.nests.front(), group.shape.lanes), module(module),
        nests(group.nests), shape(group.shape) {}

  mlir::LogicalResult emit(llvm::StringRef name);

private:
  using Body =
      llvm::function_ref<Carried(const Columns &, unsigned slot, llvm::ArrayRef<mlir::Value>)>;

  void selectMember();
  int64_t pointsOf(const LoopNest &member) const;

  //===--- points (PointEmitter.cpp) ----------------------------------------===//
  void emitPoints();
  void emitChunkOfPoints();
  void emitSharedColumns();
  /// Some vectors of columns, all loaded before the first is stored; `carried` are their
  /// sums over everything. `known` are values of the first that are there already.
  Carried emitVectors(llvm::ArrayRef<mlir::Value> numbers, llvm::ArrayRef<mlir::Value> carried,
                      const Memo &known = Memo());
  Carried emitVectorsOf(int half, llvm::ArrayRef<mlir::Value> numbers,
                        llvm::ArrayRef<mlir::Value> carried, const Memo &known);
  /// Sums of partial results that are one for all columns, by all threads of the block.
  void evalSharedPartials();
  mlir::Value partials(Node *node, const Columns *columns) override;
  mlir::Value addPartials(Node *node, const Columns *columns, mlir::Value first,
                          mlir::Value step);
  mlir::Value partialCount(Node *node);

  //===--- scatters (ScatterEmitter.cpp) ------------------------------------===//
  struct Queue;
  void emitScatter();
  void addQueued(const Queue &queue, mlir::Value first, int64_t count, const Columns &columns);
  void enqueue(mlir::Value value, mlir::Value memory, mlir::Value begin, mlir::Value at);
  mlir::Value queued(mlir::Value memory, mlir::Value begin, mlir::Value at);

  //===--- columns (LoopNestEmitter.cpp) ---------------------------------------===//
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
  mlir::Value atLeastFinite(mlir::Value x);
  mlir::Value decrease(mlir::Value before, mlir::Value after);
  void storeColumnSums(llvm::ArrayRef<mlir::Value> sums);
  void emitRowRoots(Carried &carried);
  /// Values of all threads that share a row, combined, to all of them.
  Carried groupReduce(llvm::ArrayRef<train::ReduceKind> kinds, Carried values);
  /// The same among the first `threads` threads of a block, whole warps.
  Carried threadsReduce(llvm::ArrayRef<train::ReduceKind> kinds, Carried values, int64_t threads);
  /// Nodes that chunks of rows load a row ahead, and what a row of them is.
  llvm::SmallVector<Node *> loadedAhead() const;
  Carried loadAhead(llvm::ArrayRef<Node *> nodes, mlir::Value row);
  /// Calls `visit` for each of this thread's pieces of `column`, whose row it holds.
  void forEachSlot(int column, llvm::function_ref<void(const Columns &, unsigned slot)> visit);
  int walkedColumn(Node *node) const;
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
  llvm::ArrayRef<const LoopNest *> nests; ///< launched together; `nest` is the first
  LaunchShape shape;
  mlir::gpu::GPUFuncOp function;
  mlir::Value block, thread; ///< numbers of this block and this thread in it, i64
  mlir::Value points, chunkSize; ///< vectors of this block's loop nest, and of a chunk of it, i64
  llvm::DenseMap<Node *, mlir::Value> partialCounts; ///< where loop nests differ
  mlir::Value inGroup;       ///< of this thread among those that share a row
  llvm::DenseMap<Buffer *, mlir::Value> pointers;
  /// Values of a row that threads hold from loop to loop: by column dimension and slot.
  std::map<std::pair<int, unsigned>, Memo> held;
};

} // namespace meshwright::codegen::cuda

#endif // MESHWRIGHT_CODEGEN_CUDA_LOOPNESTEMITTER_H
