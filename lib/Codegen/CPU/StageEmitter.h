//===- StageEmitter.h - one stage of a kernel as loops over vectors ---------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_CODEGEN_CPU_STAGEEMITTER_H
#define MESHWRIGHT_CODEGEN_CPU_STAGEEMITTER_H

#include "Codegen/KernelPlan.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

namespace meshwright::codegen::cpu {

/// Emits one stage. Values computed once a chunk are emitted before the loop over
/// rows, those computed once a row before the loop over columns that first needs
/// them, the rest inside it.
class StageEmitter {
public:
  StageEmitter(const KernelPlan &plan, const Stage &stage, mlir::ModuleOp module, unsigned lanes)
      : plan(plan), stage(stage), module(module), b(module.getContext()),
        loc(mlir::func::FuncOp(plan.function).getLoc()), lanes(lanes) {}

  void emit(llvm::StringRef name);

private:
  /// One vector of columns: lanes [index + shift, + lanes), of which `mask` says
  /// which exist (all if null).
  struct Columns {
    mlir::Value index, mask;
    int64_t shift = 0;
    /// Which half of the row `index` lies in, where halves matter.
    int half = 0;
    unsigned loop = 0;
    llvm::DenseMap<std::pair<Node *, int64_t>, mlir::Value> *memo = nullptr;
  };
  using Carried = llvm::SmallVector<mlir::Value, 4>;
  using Body = llvm::function_ref<Carried(const Columns &, llvm::ArrayRef<mlir::Value>)>;

  //===--- the nest (StageEmitter.cpp) --------------------------------------===//
  void emitNest();
  Carried emitRow(Carried sums);
  Carried emitLoop(unsigned loop, int column, Carried sums);
  /// Walks columns [low, high) (constants if `low` is null) calling `body`;
  /// `start` are the values carried from vector to vector, combined at the end.
  Carried walkColumns(mlir::Value low, mlir::Value high, int64_t staticLow, int64_t staticHigh,
                      unsigned unroll, Columns columns, llvm::ArrayRef<mlir::Value> start,
                      llvm::ArrayRef<train::ReduceKind> kinds, Body body);
  void emitRoot(const Root &root, const Columns &columns, mlir::Value value);
  void initPartialSums(mlir::Value low, mlir::Value high);
  mlir::Value destination(const Root &root, const Columns *columns);
  unsigned unrollOf(unsigned loop);

  //===--- values (StageValues.cpp) -----------------------------------------===//
  mlir::Value eval(Node *node, const Columns *columns);
  mlir::Value build(Node *node, const Columns *columns);
  mlir::Value compute(Node *node, const Columns *columns);
  mlir::Value gather(Node *node, const Columns *columns);
  mlir::Value pad(Node *node, const Columns *columns);
  mlir::Value window(Node *node, const Columns *columns);
  mlir::Value partials(Node *node, const Columns *columns);
  /// Whether `id` (of a lane or of all) numbers a row of `table`.
  mlir::Value rowExists(mlir::Value id, mlir::RankedTensorType table);
  /// The element `map` names, in memory of `type` whose last dimensions it is of;
  /// with `replaced` as index of its dimension `at`.
  mlir::Value offset(llvm::ArrayRef<int> map, mlir::RankedTensorType type, const Columns *columns,
                     mlir::Value replaced = {}, int at = 0);
  mlir::Value pointer(Buffer *buffer);
  mlir::Value element(mlir::Value base, mlir::Type type, mlir::Value offset);
  /// The only places where memory is read and written.
  mlir::Value load(mlir::Value address, mlir::Type type, const Columns *columns,
                   mlir::Value extraMask = {});
  void store(mlir::Value value, mlir::Value address, const Columns *columns);
  mlir::Value splat(mlir::Value scalar);
  mlir::Value constant(int64_t value);
  mlir::Value neutral(train::ReduceKind kind, mlir::Type type);
  mlir::Value combine(train::ReduceKind kind, mlir::Value a, mlir::Value b);
  mlir::Value horizontal(train::ReduceKind kind, mlir::Value vector);
  mlir::Value laneIndex(const Columns &columns, mlir::Type element);
  mlir::VectorType vectorOf(mlir::Type element) {
    return mlir::VectorType::get({int64_t(lanes)}, element);
  }

  const KernelPlan &plan;
  const Stage &stage;
  mlir::ModuleOp module;
  mlir::OpBuilder b;
  mlir::Location loc;
  unsigned lanes;

  mlir::LLVM::LLVMFuncOp function;
  mlir::Value buffers, begin, end, chunk;
  llvm::DenseMap<Buffer *, mlir::Value> pointers;
  llvm::DenseMap<Node *, mlir::Value> scalars, scratch;
  llvm::SmallVector<mlir::Value> indices; ///< of the domain's row dimensions
  mlir::Value low, high;                  ///< columns of this iteration, if in blocks
};

} // namespace meshwright::codegen::cpu

#endif // MESHWRIGHT_CODEGEN_CPU_STAGEEMITTER_H
