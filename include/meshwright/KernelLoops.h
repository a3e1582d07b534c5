//===- KernelLoops.h - how a decomposed kernel is computed ------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// A kernel function is tensor-level arithmetic over one or a few iteration
// spaces. It becomes a list of loop nests that run one after the other; all threads
// finish one before the next begins. A loop nest has row dimensions, of which some
// are spread over threads and some run in order, and one column dimension that
// vectors walk. It computes its roots: tensors to store, sums over rows or over
// everything, rows to scatter. All other values are evaluated where they are needed
// from the loop nest's expression graph, so that no intermediate tensor exists unless
// a later loop nest needs it.
//
// Loop nests depend on shapes only, and not on vectors, threads or instructions, which
// are the target's.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_KERNELLOOPS_H
#define MESHWRIGHT_KERNELLOOPS_H

#include "Exec/Target.h"
#include "Train/Train.h"

#include <memory>

namespace meshwright::codegen {

/// Memory that a kernel reads or writes.
struct Buffer {
  enum Kind { Argument, Result, Workspace, Constant };
  Kind kind;
  /// Index among the kernel's operands (arguments, then results).
  unsigned index = 0;
  /// Workspace: where it starts, in bytes.
  int64_t offset = 0;
  mlir::RankedTensorType type;
  mlir::DenseElementsAttr constant;
};

/// Where a value is computed: once a chunk, once a row, once an element.
enum class Scope { Chunk, Row, Column };

/// A value of a loop nest, as a function of the loop nest's domain. Dimension d of the
/// value is domain dimension map[d].
struct Node {
  enum Kind {
    Load,      ///< element of `buffer`
    Splat,     ///< a constant
    Compute,   ///< result `resultIndex` of the element-wise `op`
    Iota,      ///< index along domain dimension map[primitive.dim]
    RowReduce, ///< `operands[0]` reduced over domain dimension `column`
    Gather,    ///< row operands[0] of `buffer`
    Halves,    ///< operands[0] at a column of primitive.halves
    Pad, ///< `buffer` where the index along primitive.dim is inside it from primitive.from on, else
         ///< primitive.value
    Window,  ///< element of `buffer`, the index along primitive.dim from operands[0] on
    Partials ///< `buffer`, [chunks, columns], reduced over chunks
  };
  Kind kind;
  mlir::Value value;
  mlir::Operation *op = nullptr;
  unsigned resultIndex = 0;
  /// Of a node that is no element-wise op: what its op does.
  train::Primitive primitive = {};
  llvm::SmallVector<int, 4> map;
  llvm::SmallVector<Node *, 3> operands;
  Buffer *buffer = nullptr;
  int column = -1;
  Scope scope = Scope::Chunk;
  /// Number of row reductions that must have finished: the value is available
  /// to the loop over columns of this number.
  unsigned depth = 0;
  /// Rough number of instructions to compute the value from loads.
  int64_t cost = 0;
  /// RowReduce of exp(x - m), where m is the greatest x of the row: the node of m. Both are
  /// reduced in one loop, whose sum is of exp(x - the greatest so far).
  Node *greatest = nullptr;
  /// The loop that keeps the value in a row of scratch memory, because recomputing it in
  /// later loops would cost too much; -1 for none.
  int keptBy = -1;

  mlir::Type getElementType() const {
    return llvm::cast<mlir::RankedTensorType>(value.getType()).getElementType();
  }
};

/// A result of a loop nest.
struct Root {
  enum Kind {
    Store,     ///< node -> dest
    ColumnSum, ///< node reduced over row dimensions -> dest
    FullSum,   ///< node reduced over the whole domain -> dest, one value a chunk
    Scatter    ///< node added to row `ids` of dest
  };
  Kind kind;
  Node *node = nullptr;
  Node *ids = nullptr;
  Buffer *dest = nullptr;
  /// The domain dimension of each dimension of dest that is indexed directly.
  llvm::SmallVector<int, 4> map = {};
  /// Computed once a row, when all its reductions are done; else once an element.
  bool row = false;
  train::ReduceKind reduction = train::ReduceKind::Sum;
  /// The store does nothing when argument and dest are the same memory: the
  /// start of a scatter in place.
  bool skipWhenInPlace = false;
};

enum class Role { Parallel, Sequential, Column };

struct LoopNest {
  /// "rows": chunks of rows (or of one long row). "columns": blocks of columns,
  /// each walking the sequential rows in order.
  bool columns = false;
  unsigned level = 0;
  llvm::SmallVector<int64_t, 6> sizes;
  llvm::SmallVector<Role, 6> roles;
  /// Domain dimensions merged into the main column dimension; the last of them
  /// is `mainColumn`, or -1 if no value of the loop nest has columns.
  int mainColumn = -1;
  llvm::SmallVector<int, 4> merged;
  int64_t columnSize = 1;
  /// Columns are walked in `blocks` pieces of `block`, parallel like rows.
  int64_t block = 1, blocks = 1;
  /// Where halves of the row are told apart, or 0.
  int64_t half = 0;
  int64_t iterations = 1, chunks = 1;
  llvm::SmallVector<Root, 4> roots;
  std::vector<std::unique_ptr<Node>> nodes;

  bool isMerged(int dim) const { return llvm::is_contained(merged, dim); }
  bool isColumn(int dim) const { return roles[dim] == Role::Column; }
  int64_t rows(Role role) const;
  /// Columns that the loops of `column` walk.
  int64_t columnsOf(int column) const { return column == mainColumn ? columnSize : sizes[column]; }
  llvm::StringRef getTemplate() const;
};

struct KernelLoops {
  mlir::func::FuncOp function;
  std::vector<std::unique_ptr<Buffer>> buffers;
  llvm::SmallVector<LoopNest, 0> nests;
  int64_t workspace = 0;
  /// (argument, result) pairs that may be the same memory.
  llvm::SmallVector<std::pair<unsigned, unsigned>> inplace;
};

/// The loop nests of `kernel`, a function of kernel primitives; errors name the op
/// that fits into none. The numbers of chunks in the function's exec.chunks, if present, take
/// precedence over `options`.
mlir::FailureOr<KernelLoops> buildKernelLoops(mlir::func::FuncOp kernel,
                                              const exec::ScheduleLimits &options);

/// The row reductions of a loop nest in the order of their loops.
llvm::SmallVector<Node *> rowReductions(const LoopNest &nest);

/// The loop over columns that evaluates `root`: 0 is the first; a root of rows
/// comes after all loops.
unsigned loopOf(const LoopNest &nest, const Root &root);

/// Calls `visit` for each node that each loop evaluates; `shifted` when at other
/// columns than the loop's own. A false result stops the descent.
void forEachEvaluation(const LoopNest &nest,
                       llvm::function_ref<bool(Node *node, unsigned loop, bool shifted)> visit);

} // namespace meshwright::codegen

#endif // MESHWRIGHT_KERNELLOOPS_H
