//===- AttentionChunks.h - what a device computes attention of --------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// Of n equal parts of a sequence device p has part p. Causal attention is as much work for all
// devices if they exchange tokens before it, and results after it:
//
//   zigzag   of 2n chunks device p has numbers 2p and 2p+1; p and n-1-p exchange the second ones
//   striped  device p computes the tokens p, p + n, p + 2n, .. (Brandon et al. 2023)
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_LIB_DIST_ATTENTIONCHUNKS_H
#define MESHWRIGHT_LIB_DIST_ATTENTIONCHUNKS_H

#include "AttentionWork.h"
#include "meshwright/OptionValues.h"

namespace meshwright::dist {

/// Operands and results of attention that have queries, with the dimension; -1 for results that
/// are sums over queries.
llvm::SmallVector<std::pair<mlir::OpOperand *, int64_t>> operandsWithQueries(train::AttentionOp op);
llvm::SmallVector<std::pair<mlir::OpOperand *, int64_t>>
operandsWithQueries(train::AttentionGradOp op);
llvm::SmallVector<int64_t> dimsOfResults(train::AttentionOp op);
llvm::SmallVector<int64_t> dimsOfResults(train::AttentionGradOp op);

/// The tensor type with `size` elements in dimension `dim`.
mlir::RankedTensorType resized(mlir::Type type, int64_t dim, int64_t size);

/// The chunks of queries, or of keys, that a device computes attention of.
struct Chunks {
  Chunks(ContextBalance how, GroupAttr group, int64_t ranks, const AttentionShape &shape);

  /// Those of `how` where an exchange makes attention so much less work for the device that has most
  /// that it is worth what it sends, and the parts of `offsets` are in order; else each device's own.
  /// Stripes are taken for sequences of several documents too, which they always balance.
  /// Fails with a message if tokens cannot be dealt out evenly.
  static mlir::FailureOr<Chunks> balanced(ContextBalance how, const QueryOffsets &offsets,
                                          const AttentionShape &shape, bool documents,
                                          mlir::Operation *op);

  bool isExchange() const { return how != ContextBalance::none; }
  int count() const { return sizes.size(); }
  /// The position of the first token that the device of `rank` computes of chunk `i`.
  int64_t first(int64_t rank, int i) const;
  /// Positions from a token of a chunk to the next.
  int64_t stride() const { return how == ContextBalance::striped ? ranks : 1; }

  /// Chunk `i` of x, whose tokens are those of a part, as attention reads it.
  mlir::Value take(mlir::OpBuilder &b, mlir::Location loc, mlir::Value x, int64_t dim, int i) const;
  /// What `first(rank - by, i)` is on the device of `rank`.
  mlir::Value offset(mlir::OpBuilder &b, mlir::Location loc, int64_t by, int i) const;
  /// ... by 0, given the position of the first token of the device's part.
  mlir::Value offsetFrom(mlir::OpBuilder &b, mlir::Location loc, mlir::Value own, int i) const;
  /// What was computed of the chunks, as a part.
  mlir::Value join(mlir::OpBuilder &b, mlir::Location loc, mlir::ArrayRef<mlir::Value> chunks,
                   int64_t dim) const;

  ContextBalance how;
  GroupAttr group;
  AttentionShape shape;
  int64_t ranks;
  llvm::SmallVector<int64_t> sizes;

private:
  bool areInOrder(const QueryOffsets &offsets) const;
  int64_t mostPairs() const;
  mlir::Value exchanged(mlir::OpBuilder &b, mlir::Location loc, mlir::Value x) const;

  llvm::SmallVector<int64_t> partners; ///< who ranks exchange their second chunks with
};

} // namespace meshwright::dist

#endif // MESHWRIGHT_LIB_DIST_ATTENTIONCHUNKS_H
