//===- LoopNestEmitter.h - one loop nest of a kernel as loops over vectors ---===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_CODEGEN_CPU_LOOPNESTEMITTER_H
#define MESHWRIGHT_CODEGEN_CPU_LOOPNESTEMITTER_H

#include "Codegen/CPU/KernelEmitter.h"
#include "Codegen/LoopNestValues.h"

namespace meshwright::codegen::cpu {

/// Emits one loop nest. Values computed once a chunk are emitted before the loop over
/// rows, those computed once a row before the loop over columns that first needs
/// them, the rest inside it.
class LoopNestEmitter : LoopNestValues {
public:
  LoopNestEmitter(const KernelLoops &kernelLoops, const LoopNest &nest, mlir::ModuleOp module,
                  const VectorTarget &target)
      : LoopNestValues(kernelLoops, nest, target.lanes), module(module), target(target) {}

  void emit(llvm::StringRef name);

private:
  using Body = llvm::function_ref<Carried(const Columns &, llvm::ArrayRef<mlir::Value>)>;

  void emitNest();
  Carried emitRow(Carried sums);
  Carried emitLoop(unsigned loop, int column, Carried sums);
  /// Walks columns [low, high) (constants if `low` is null) calling `body`;
  /// `start` are the values carried from vector to vector, combined at the end.
  Carried walkColumns(mlir::Value low, mlir::Value high, int64_t staticLow, int64_t staticHigh,
                      unsigned unroll, Columns columns, llvm::ArrayRef<mlir::Value> start,
                      llvm::ArrayRef<train::ReduceKind> kinds, Body body);
  void initPartialSums(mlir::Value low, mlir::Value high);
  unsigned unrollOf(unsigned loop);

  // bf16 and f16 are i16 in registers.
  mlir::Value pointer(Buffer *buffer) override;
  mlir::Type registerType(mlir::Type element) override;
  mlir::Value load(mlir::Value address, mlir::Type type, const Columns *columns,
                   mlir::Value extraMask = {}) override;
  void store(mlir::Value value, mlir::Value address, const Columns *columns) override;
  mlir::Value loadLanes(mlir::Value base, mlir::Type type, mlir::Value offsets,
                        const Columns &columns) override;
  mlir::Value extend(mlir::FloatType from, mlir::Value value) override;
  mlir::Value round(mlir::FloatType to, mlir::Value value) override;
  mlir::Value kept(Node *node, const Columns &columns) override;

  mlir::ModuleOp module;
  VectorTarget target;

  mlir::LLVM::LLVMFuncOp function;
  mlir::Value buffers, begin, end;
  llvm::DenseMap<Buffer *, mlir::Value> pointers;
  llvm::DenseMap<Node *, mlir::Value> scratch;
  mlir::Value low, high; ///< columns of this iteration, if in blocks
};

} // namespace meshwright::codegen::cpu

#endif // MESHWRIGHT_CODEGEN_CPU_LOOPNESTEMITTER_H
