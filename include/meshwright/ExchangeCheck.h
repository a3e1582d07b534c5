//===- ExchangeCheck.h - whether the messages of an exchange fit together ---===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_EXCHANGECHECK_H
#define MESHWRIGHT_EXCHANGECHECK_H

#include "meshwright/runtime/Traffic.h"

#include "mlir/IR/BuiltinTypes.h"

namespace meshwright {

/// Checks the tables of an exchange of `tensors`, on floor 2 or in memory, for the `n` ranks that they
/// have entries for: each send has its receive of as many elements.
template <typename Op>
mlir::LogicalResult verifyExchange(Op op, mlir::ValueRange tensors, int64_t n) {
  using llvm::ArrayRef;
  for (ArrayRef<int64_t> list : {op.getTo(), op.getSend(), op.getFrom(), op.getReceive()})
    if (int64_t(list.size()) != n)
      return op.emitOpError("needs an entry for each of the ")
             << n << " ranks of the group, found " << list.size();
  int64_t pieces = op.getPieces(), length = op.getLength();
  if (pieces < 1 || length < 1 || length > pieces)
    return op.emitOpError("sends ") << length << " of " << pieces
                                    << " pieces; at least one is sent of at least one";
  auto check = [&](ArrayRef<int64_t> peers, ArrayRef<int64_t> begins, ArrayRef<int64_t> back,
                   llvm::StringRef what) -> mlir::LogicalResult {
    for (auto [rank, peer] : llvm::enumerate(peers)) {
      if (peer < -1 || peer >= n || peer == int64_t(rank))
        return op.emitOpError("rank ")
               << rank << " " << what << " " << peer << ", which is not another rank of the group";
      if (peer >= 0 && back[peer] != int64_t(rank))
        return op.emitOpError("rank ")
               << rank << " " << what << " rank " << peer << ", whose peer is " << back[peer];
      bool inside = begins[rank] >= 0 && begins[rank] <= pieces - length;
      if (peer < 0 ? begins[rank] != -1 : !inside)
        return op.emitOpError("rank ") << rank << " cannot use " << length << " of " << pieces
                                       << " pieces from " << begins[rank] << " on";
    }
    return mlir::success();
  };
  if (failed(check(op.getTo(), op.getSend(), op.getFrom(), "sends to")) ||
      failed(check(op.getFrom(), op.getReceive(), op.getTo(), "receives from")))
    return mlir::failure();
  // The last pieces are shorter, so both sides must mean as many elements.
  for (mlir::Value tensor : tensors) {
    int64_t count = llvm::cast<mlir::ShapedType>(tensor.getType()).getNumElements();
    auto range = [&](int64_t begin) {
      return std::pair(partOffset(count, pieces, begin), partOffset(count, pieces, begin + length));
    };
    for (auto [rank, peer] : llvm::enumerate(op.getTo())) {
      if (peer < 0)
        continue;
      auto sent = range(op.getSend()[rank]), received = range(op.getReceive()[peer]);
      if (sent.second - sent.first != received.second - received.first)
        return op.emitOpError("rank ")
               << rank << " sends " << sent.second - sent.first << " elements of "
               << tensor.getType() << ", of which rank " << peer << " takes "
               << received.second - received.first;
      if (op.getKind() || op.getFrom()[rank] < 0)
        continue;
      auto replaced = range(op.getReceive()[rank]);
      if (sent.first < replaced.second && replaced.first < sent.second)
        return op.emitOpError("rank ") << rank << " replaces pieces that it sends";
    }
  }
  return mlir::success();
}

} // namespace meshwright

#endif // MESHWRIGHT_EXCHANGECHECK_H
