//===- AttentionEmitter.h - one kernel of attention -------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_CODEGEN_CUDA_ATTENTIONEMITTER_H
#define MESHWRIGHT_CODEGEN_CUDA_ATTENTIONEMITTER_H

#include "Codegen/CUDA/Tiles.h"
#include "meshwright/runtime/ABI.h"

#include <optional>

namespace meshwright::codegen::cuda {

/// What a call's kernels depend on: all but addresses.
struct AttentionShape {
  MwAttention sizes;
  mlir::Type element;
  bool dropout, headOffset, queryOffset, keyOffset, positions, lengths, slopes, sinks, distances;
  bool before; ///< whether a result for other keys is merged
  /// Whether pieces of rows may be read at once.
  bool aligned;
};

/// Emits the kernels of calls of one shape.
class AttentionEmitter : BlockEmitter {
public:
  AttentionEmitter(mlir::gpu::GPUModuleOp module, mlir::Location loc, const AttentionShape &shape);

  /// Whether there are tiles that fit for heads of this size.
  bool fits() const;

  /// Names of the kernels, in the order of their launches.
  std::vector<std::string> emitForward(const std::string &name);
  std::vector<std::string> emitBackward(const std::string &name);

private:
  /// The operands of a call by what they are, in a call's order.
  struct Operands {
    mlir::Value dout, q, k, v, out, lse, ids, key, headOffset, queryOffset, keyOffset, positions, lengths,
        slopes, sinks, distances, before, beforeLse, dq, dk, dv, dsinks, delta;
  };
  void emitForward(const Operands &operands, const TileSizes &of, mlir::Value kvHead, mlir::Value low,
                   mlir::Value high);
  Operands forwardOperands();
  Operands gradientOperands();
  unsigned optional() const {
    return (shape.dropout ? 2 : 0) + shape.headOffset + shape.queryOffset + shape.keyOffset +
           shape.positions + shape.lengths + shape.slopes + shape.sinks + shape.distances +
           (shape.before ? 2 : 0);
  }
  /// Begins a kernel of the gradient.
  Operands beginGradient(const std::string &name, int64_t blocks);

  /// The type of what a call adds up: of a part of the keys it is added to others', so not rounded.
  mlir::Type sumType() { return shape.keyOffset ? b.getF32Type() : shape.element; }
  /// The rows from number `first` on of the tensor at `pointer`, whose heads have `dim` elements
  /// of `type`, or of the shape's: one for each query, or for each key.
  Rows queries(mlir::Value pointer, int64_t dim, mlir::Value batch, mlir::Value head,
               mlir::Value first, mlir::Type type = {});
  Rows keys(mlir::Value pointer, int64_t dim, mlir::Value batch, mlir::Value kvHead,
            mlir::Value first, mlir::Type type = {});
  Rows rowsOf(mlir::Value pointer, int64_t dim, int64_t length, int64_t heads, mlir::Value batch,
              mlir::Value head, mlir::Value first, mlir::Type type);
  /// The index in lse of query 0.
  mlir::Value termsOf(mlir::Value batch, mlir::Value head);
  void decomposeBlock(int64_t tiles, int64_t heads);
  /// Merges `before` into the sums of the call's keys, which `factors` of rows make means of, and
  /// into their `lses`.
  void merge(const Operands &operands, llvm::MutableArrayRef<mlir::Value> sums,
             llvm::MutableArrayRef<mlir::Value> factors, llvm::MutableArrayRef<mlir::Value> lses);
  /// Makes of the number of a block's tile the number of its first query.
  void beginQueries(int64_t count, int64_t rows);
  void emitQueryGradient(const std::string &name);
  /// Of keys, of values, or of both at a time.
  void emitKeyGradients(const std::string &name, const TileNeeds &needs, bool ofKeys,
                        bool ofValues);
  void emitSinkGradients(const std::string &name);

  /// Whether the window hides keys on both sides.
  bool isTwoSided() const { return sizes.window && !sizes.causal; }
  /// Tiles of keys that queries [first, first + rows) see.
  std::pair<mlir::Value, mlir::Value> visibleKeys(const TileSizes &sizes);
  /// A tile's scores with `hidden` where no key is seen. Its rows begin with `first`, its columns
  /// with `column`; one of both are queries, the others keys.
  Values hide(Values scores, double hidden, mlir::Value column, const TileSizes &of,
              bool rowsAreKeys);
  /// How far the thread's first query is beyond its first key, in 32 bits, and how much further
  /// those of score i are: a constant. Arguments as of `hide`.
  mlir::Value aheadOf(mlir::Value column, bool rowsAreKeys);
  int64_t furtherOf(int64_t i, bool rowsAreKeys) const;
  /// Caps scaled products in place; what their gradients are multiplied by.
  Values cap(llvm::MutableArrayRef<mlir::Value> products);
  /// What exponents multiply scores by. Where it is 1, products become scores by `scaleScores`.
  double scoreFactor(bool forward) const;
  /// Multiplies products that are not capped by the scale, and adds what the slope of `head`
  /// makes of distances.
  void scaleScores(llvm::MutableArrayRef<mlir::Value> products, const Operands &operands,
                   mlir::Value head, mlir::Value column, bool rowsAreKeys);
  /// Of each column's query a number, from those of a head.
  Values ofColumns(mlir::Value pointer, mlir::Value head, mlir::Value query, int64_t queries);
  /// Whether dropout keeps the weight.
  mlir::Value keeps(mlir::Value rowIndex, mlir::Value key);
  /// Index of a query's first weight among all: `query` of `head`.
  mlir::Value weightRow(mlir::Value head, mlir::Value query);
  /// Loads what positions and dropout of the block depend on.
  void loadScalars(const Operands &operands);
  /// Whether queries see nothing of the keys before some, which are not a window's: of other documents or
  /// chunks.
  bool hasBegins() const { return shape.positions || sizes.chunk; }
  /// How far the first key of the document, or of its chunk, of a query is beyond the first key that is here. A
  /// query behind the last key is in its document.
  mlir::Value beginOf(mlir::Value query);
  /// How far a query is beyond the first key that is here, and beyond the sequence's first.
  mlir::Value aheadOfKeys(mlir::Value query);
  mlir::Value positionOf(mlir::Value query);
  mlir::Value times(mlir::Value x, int64_t y) { return y == 1 ? x : mul(x, constant(y)); }
  /// How far a key is beyond the first one that is here.
  mlir::Value placeOf(mlir::Value key);
  /// How many keys are before a position, counted from that of the first, if there are as many.
  mlir::Value keysBefore(mlir::Value place);
  /// x / y, rounded down; y is not known now.
  mlir::Value quotient(mlir::Value x, mlir::Value y);

  const AttentionShape shape;
  const MwAttention &sizes;
  std::unique_ptr<Tiles> tiles;
  mlir::Value batch, head, first; ///< of this block; `first` row of its tile
  mlir::Value queryOffset, keyOffset; ///< positions of query 0 and of key 0; null for 0
  mlir::Value shift;                  ///< the former less the latter; null for 0
  mlir::Value keyCount;               ///< keys of the sequence that are here, without padding
  mlir::Value positions;          ///< of the sequence's keys in their documents; null without
  mlir::Value key0, key1, firstHead; ///< of dropout
};

} // namespace meshwright::codegen::cuda

#endif // MESHWRIGHT_CODEGEN_CUDA_ATTENTIONEMITTER_H
