//===- KernelGraph.h - expressions of one loop nest -------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_LIB_KERNELS_KERNELGRAPH_H
#define MESHWRIGHT_LIB_KERNELS_KERNELGRAPH_H

#include "meshwright/KernelLoops.h"

#include <map>

namespace meshwright::codegen {

/// A value that some loop nest leaves in memory for later ones.
struct Materialized {
  Buffer *buffer;
  unsigned level;
  /// The buffer holds one partial result a chunk.
  bool partial = false;
};

/// What a root is before its expressions are built.
struct RootSpec {
  Root::Kind kind;
  mlir::Value value = {};
  mlir::Value ids = {};
  Buffer *dest = nullptr;
  train::ReduceKind reduction = train::ReduceKind::Sum;
  /// Dimensions of `value` that are reduced or scattered over.
  llvm::SmallVector<int64_t> reduced = {};
  bool columns = false, row = false, partial = false, skipWhenInPlace = false;
  unsigned level = 0;
  int64_t half = 0;

  mlir::RankedTensorType getType() const {
    return llvm::cast<mlir::RankedTensorType>(value.getType());
  }
  /// Row dimensions of the root's domain, with their roles.
  llvm::SmallVector<std::pair<int64_t, Role>> rowDims() const;
  /// Size of its column dimension, or -1.
  int64_t columnSize() const;
};

/// Builds the expression graph of one loop nest. A value that cannot be computed
/// inside the loop nest is passed to `materialize`, which puts it in an earlier one.
class KernelGraph {
public:
  using Materialize = std::function<mlir::FailureOr<Materialized>(mlir::Value)>;
  using FindBuffer = std::function<Buffer *(mlir::Value, mlir::DenseElementsAttr)>;

  KernelGraph(LoopNest &nest, Materialize materialize, FindBuffer findBuffer)
      : nest(nest), materialize(std::move(materialize)), findBuffer(std::move(findBuffer)) {}

  /// Adds a root; the first one with columns must come before any without.
  mlir::LogicalResult add(const RootSpec &spec);

  /// Results of earlier levels, loaded instead of computed again.
  llvm::DenseMap<mlir::Value, Materialized> available;
  /// One more than the level of everything the roots load.
  unsigned level = 0;
  /// Stop, without an error, at a reduction whose result runs along columns, and
  /// set `reducedAlongColumns`: the root should be computed by rows.
  bool probing = false, reducedAlongColumns = false;

private:
  mlir::FailureOr<Node *> get(mlir::Value value, llvm::ArrayRef<int> map);
  mlir::FailureOr<Node *> build(mlir::Value value, llvm::ArrayRef<int> map);
  mlir::FailureOr<Node *> buildPrimitive(const train::Primitive &primitive, mlir::Value value,
                                         llvm::ArrayRef<int> map);
  mlir::FailureOr<Node *> buildReduce(mlir::Value value, llvm::ArrayRef<int> map);
  mlir::FailureOr<Node *> buildHalves(mlir::Value value, llvm::ArrayRef<int> map);
  /// Memory of the first operand, read where the others and the node's kind say.
  mlir::FailureOr<Node *> buildAccess(Node::Kind kind, mlir::Value value, llvm::ArrayRef<int> map);
  /// What another loop nest leaves in memory.
  mlir::FailureOr<Node *> loadPlaced(mlir::Value value, llvm::ArrayRef<int> map);
  mlir::FailureOr<Node *> load(mlir::Value value, const Materialized &materialized,
                               llvm::ArrayRef<int> map);
  /// The memory behind a value that must be read from memory.
  mlir::FailureOr<Buffer *> memoryOf(mlir::Value value);
  Node *create(Node::Kind kind, mlir::Value value, llvm::ArrayRef<int> map);
  int columnOf(int64_t size);
  bool hasColumn(llvm::ArrayRef<int> map) const {
    return llvm::any_of(map, [&](int dim) { return nest.isColumn(dim); });
  }

  LoopNest &nest;
  Materialize materialize;
  FindBuffer findBuffer;
  std::map<std::pair<void *, llvm::SmallVector<int, 4>>, Node *> memo;
};

/// What `op` does, if it is a primitive.
std::optional<train::Primitive> primitiveOf(mlir::Operation *op);

/// Whether `op` reduces one row: over the last dimension only, its result used by
/// other elements of that row.
bool isRowReduce(mlir::Operation *op);

} // namespace meshwright::codegen

#endif // MESHWRIGHT_LIB_KERNELS_KERNELGRAPH_H
