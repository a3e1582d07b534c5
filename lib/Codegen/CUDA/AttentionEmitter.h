//===- AttentionEmitter.h - one kernel of attention -------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_CODEGEN_CUDA_ATTENTIONEMITTER_H
#define MESHWRIGHT_CODEGEN_CUDA_ATTENTIONEMITTER_H

#include "Codegen/CUDA/TileEmitter.h"
#include "meshwright/runtime/ABI.h"

#include <optional>

namespace meshwright::codegen::cuda {

/// What a call's kernels depend on: all but addresses.
struct AttentionShape {
  MwAttention sizes;
  mlir::Type element;
  bool dropout, headBegin;
  /// Whether pieces of rows may be read at once.
  bool aligned;
};

/// A kernel's tiles: `rows` of those that a block has, `columns` of those it walks.
struct TileSizes {
  int64_t rows, columns;
};

class AttentionEmitter : TileEmitter {
public:
  AttentionEmitter(mlir::gpu::GPUModuleOp module, mlir::Location loc, const AttentionShape &shape)
      : TileEmitter(module, loc), shape(shape), sizes(shape.sizes),
        depth(llvm::alignTo(sizes.headDim, columnThreads * width)) {}

  /// Whether there are tiles that fit for heads of this size.
  bool fits() const { return tilesFor(2, 2, 2).has_value(); }

  void emitForward(mlir::StringRef name);
  void emitQueryGradient(mlir::StringRef name);
  void emitKeyGradients(mlir::StringRef name);

private:
  /// The operands of a call by what they are, in a call's order.
  struct Operands {
    mlir::Value dout, q, k, v, out, lse, ids, key, headBegin, dq, dk, dv, delta;
  };
  Operands forwardOperands();
  Operands gradientOperands();
  unsigned optional() const { return (shape.dropout ? 2 : 0) + shape.headBegin; }

  /// The largest tiles with `sums` times a row's sums and `scores` times a tile's scores
  /// in registers, and twice `rowTiles` of the rows' tensors in shared memory beside two
  /// of the columns'.
  std::optional<TileSizes> tilesFor(int64_t sums, int64_t scores, int64_t rowTiles) const;
  /// The rows from number `first` on of the tensor of queries, or of keys, at `pointer`.
  Rows queries(mlir::Value pointer, mlir::Value batch, mlir::Value head, mlir::Value first);
  Rows keys(mlir::Value pointer, mlir::Value batch, mlir::Value kvHead, mlir::Value first);
  /// The place in lse of query 0.
  mlir::Value termsOf(mlir::Value batch, mlir::Value head);
  void decomposeBlock(int64_t tiles, int64_t heads);
  /// Tiles of keys that queries [first, first + rows) see.
  std::pair<mlir::Value, mlir::Value> visibleKeys(const TileSizes &tiles);
  mlir::Value visible(mlir::Value query, mlir::Value key);
  /// Whether dropout keeps the weight.
  mlir::Value keeps(mlir::Value rowIndex, mlir::Value key);
  /// Index of a query's first weight among all: `query` of `head`.
  mlir::Value weightRow(mlir::Value head, mlir::Value query);
  void startDropout(const Operands &operands);
  mlir::Value exponential(mlir::Value x);

  AttentionShape shape;
  const MwAttention &sizes;
  int64_t depth; ///< columns of tiles of heads
  mlir::Value batch, head, first; ///< of this block; `first` row of its tile
  mlir::Value key0, key1, firstHead; ///< of dropout
};

} // namespace meshwright::codegen::cuda

#endif // MESHWRIGHT_CODEGEN_CUDA_ATTENTIONEMITTER_H
