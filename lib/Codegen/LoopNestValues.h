//===- LoopNestValues.h - what a loop nest's expressions become -------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// A loop nest's values as arithmetic on vectors of columns and on scalars. Which
// thread works on which rows and columns, and how memory is read and written, is
// the target's: it derives its emitter from this.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_CODEGEN_LOOPNESTVALUES_H
#define MESHWRIGHT_CODEGEN_LOOPNESTVALUES_H

#include "meshwright/KernelLoops.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

namespace meshwright::codegen {

class LoopNestValues {
public:
  virtual ~LoopNestValues() = default;

protected:
  LoopNestValues(const KernelLoops &kernelLoops, const LoopNest &nest, unsigned lanes)
      : kernelLoops(kernelLoops), nest(nest),
        b(mlir::func::FuncOp(kernelLoops.function).getContext()),
        loc(mlir::func::FuncOp(kernelLoops.function).getLoc()), lanes(lanes) {}

  using Memo = llvm::DenseMap<std::pair<Node *, int64_t>, mlir::Value>;
  using Carried = llvm::SmallVector<mlir::Value, 4>;
  /// One vector of columns: lanes [index + shift, + lanes), of which `mask` says
  /// which exist (all if null): i1 for the whole vector, or one a lane.
  struct Columns {
    mlir::Value index, mask;
    int64_t shift = 0;
    /// Which half of the row `index` lies in, where halves matter.
    int half = 0;
    unsigned loop = 0;
    Memo *memo = nullptr;
  };

  //===--- the target's part ------------------------------------------------===//
  virtual mlir::Value pointer(Buffer *buffer) = 0;
  /// What elements of a type are in registers.
  virtual mlir::Type registerType(mlir::Type element) = 0;
  /// The only places where memory is read and written. Types and values are those
  /// of registers; without columns it is one element.
  virtual mlir::Value load(mlir::Value address, mlir::Type type, const Columns *columns,
                           mlir::Value extraMask = {}) = 0;
  virtual void store(mlir::Value value, mlir::Value address, const Columns *columns) = 0;
  /// One element of `base` a lane.
  virtual mlir::Value loadLanes(mlir::Value base, mlir::Type type, mlir::Value offsets,
                                const Columns &columns) = 0;
  /// bf16 or f16 to f32, exact, and back, to nearest with ties to even.
  virtual mlir::Value extend(mlir::FloatType from, mlir::Value value) = 0;
  virtual mlir::Value round(mlir::FloatType to, mlir::Value value) = 0;
  /// The sum of all chunks' partial results, in their order unless the target has another.
  virtual mlir::Value partials(Node *node, const Columns *columns);
  /// What an earlier loop kept of `node`, or null.
  virtual mlir::Value kept(Node *node, const Columns &columns) { return {}; }

  //===--- values -----------------------------------------------------------===//
  mlir::Value eval(Node *node, const Columns *columns);
  /// What is computed once a chunk.
  void evalChunkValues();
  /// What loop `loop` over columns needs and is computed once a row.
  void evalRowValues(unsigned loop);
  /// Where `root` is stored; `columns` null for what has none.
  mlir::Value destination(const Root &root, const Columns *columns);
  /// Stores an element of `root`, or adds it to what is there.
  void emitRoot(const Root &root, const Columns &columns, mlir::Value value);
  /// The row indices of `role` that `index` counts.
  void decompose(mlir::Value index, Role role);
  /// Whether `id` (of a lane or of all) numbers a row of `table`.
  mlir::Value rowExists(mlir::Value id, int64_t rows);
  /// The number of loops over columns.
  unsigned loopCount() const;

  /// The element `map` names, in memory of `type` whose last dimensions it is of;
  /// with `replaced` as index of its dimension `at`.
  mlir::Value offset(llvm::ArrayRef<int> map, mlir::RankedTensorType type, const Columns *columns,
                     mlir::Value replaced = {}, int at = 0);
  mlir::Value element(mlir::Value base, mlir::Type type, mlir::Value offset);
  mlir::Value splat(mlir::Value scalar);
  mlir::Value constant(int64_t value);
  mlir::Value neutral(train::ReduceKind kind, mlir::Type type);
  mlir::Value combine(train::ReduceKind kind, mlir::Value a, mlir::Value b);
  /// A value that was loaded as `element`, in f32; and a value of f32, to be stored as `element`.
  mlir::Value widened(mlir::Type element, mlir::Value value);
  mlir::Value narrowed(mlir::Type element, mlir::Value value);
  mlir::Value horizontal(train::ReduceKind kind, mlir::Value vector);
  mlir::Value laneIndex(const Columns &columns, mlir::Type element);
  mlir::VectorType vectorOf(mlir::Type element) {
    return mlir::VectorType::get({int64_t(lanes)}, element);
  }
  /// An scf.for whose body is emitted with this builder.
  Carried forLoop(mlir::Value low, mlir::Value high, mlir::Value step, mlir::ValueRange start,
                  llvm::function_ref<Carried(mlir::Value, mlir::ValueRange)> body);
  /// Emits `body` where `condition` holds, or always if it is null.
  void guarded(mlir::Value condition, llvm::function_ref<void()> body);

  const KernelLoops &kernelLoops;
  const LoopNest &nest;
  mlir::OpBuilder b;
  mlir::Location loc;
  unsigned lanes;

  mlir::Value chunk;
  llvm::DenseMap<Node *, mlir::Value> scalars; ///< values without columns
  llvm::SmallVector<mlir::Value> indices;      ///< of the domain's row dimensions

private:
  mlir::Value build(Node *node, const Columns *columns);
  mlir::Value compute(Node *node, const Columns *columns);
  mlir::Value gather(Node *node, const Columns *columns);
  mlir::Value pad(Node *node, const Columns *columns);
  mlir::Value window(Node *node, const Columns *columns);
};

} // namespace meshwright::codegen

#endif // MESHWRIGHT_CODEGEN_LOOPNESTVALUES_H
