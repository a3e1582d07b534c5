//===- AttentionChunks.h - a device's queries or keys in two chunks ---------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// Of 2n chunks of a sequence, device p has numbers 2p and 2p+1. Devices p and n-1-p exchange
// the second ones where causal attention would be more work for one than for the other.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_LIB_DIST_ATTENTIONCHUNKS_H
#define MESHWRIGHT_LIB_DIST_ATTENTIONCHUNKS_H

#include "AttentionWork.h"

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

/// The two chunks of a device's queries, or of its keys, and who exchanges the second.
struct Chunks {
  Chunks(const QueryOffsets &offsets, const AttentionShape &shape);

  /// Whether the devices' queries are whole parts in the order of their ranks.
  bool areInOrder(const QueryOffsets &offsets) const;
  /// Whether an exchange makes attention so much less work for the device that has most that it
  /// is worth what it sends.
  bool isWorthwhile() const;
  /// The position of the first query that the device of `rank` computes of chunk `i`.
  int64_t first(int64_t rank, int i) const;

  mlir::Value exchanged(mlir::OpBuilder &b, mlir::Location loc, mlir::Value x) const;
  /// Chunk `i` of x as attention reads it.
  mlir::Value take(mlir::OpBuilder &b, mlir::Location loc, mlir::Value x, int64_t dim, int i) const;
  /// What `first(rank, i)` is on the device, given `offset`, that of chunk 0.
  mlir::Value offset(mlir::OpBuilder &b, mlir::Location loc, mlir::Value offset, int i) const;
  /// The chunks of attention's results as one.
  mlir::Value join(mlir::OpBuilder &b, mlir::Location loc, mlir::Value first, mlir::Value second,
                   int64_t dim) const;

  GroupAttr group;
  AttentionShape shape;
  int64_t ranks;
  int64_t sizes[2];
  llvm::SmallVector<int64_t> partners;

private:
  int64_t mostPairs(bool exchanges) const;
};

} // namespace meshwright::dist

#endif // MESHWRIGHT_LIB_DIST_ATTENTIONCHUNKS_H
