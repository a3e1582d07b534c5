//===- AttentionChunks.cpp - a device's queries or keys in two chunks -------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "AttentionChunks.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::dist;

/// Exchanges whose gain in time is less than this are not worth what they send.
static constexpr double leastGain = 0.02;

SmallVector<std::pair<OpOperand *, int64_t>> dist::operandsWithQueries(train::AttentionOp op) {
  return {{&op.getQMutable(), 1}};
}
SmallVector<std::pair<OpOperand *, int64_t>> dist::operandsWithQueries(train::AttentionGradOp op) {
  return {{&op.getDoutMutable(), 1},
          {&op.getQMutable(), 1},
          {&op.getOutMutable(), 1},
          {&op.getLseMutable(), 2}};
}
SmallVector<int64_t> dist::dimsOfResults(train::AttentionOp) { return {1, 2}; }
SmallVector<int64_t> dist::dimsOfResults(train::AttentionGradOp) { return {1, -1, -1, -1}; }

RankedTensorType dist::resized(Type type, int64_t dim, int64_t size) {
  auto tensor = cast<RankedTensorType>(type);
  SmallVector<int64_t> shape(tensor.getShape());
  shape[dim] = size;
  return RankedTensorType::get(shape, tensor.getElementType());
}

/// The scalar `number`; `like` is any other.
static Value scalar(OpBuilder &b, Location loc, Value like, int64_t number) {
  auto row = RankedTensorType::get({1}, b.getI32Type());
  Value two = train::PadOp::create(b, loc, train::ReshapeOp::create(b, loc, row, like),
                                   /*rows=*/2, /*dim=*/0, uint64_t(number), /*from=*/0);
  Value one = train::SliceOp::create(b, loc, two, /*rows=*/1, /*dim=*/0, /*from=*/1);
  return train::ReshapeOp::create(b, loc, like.getType(), one);
}

Chunks::Chunks(const QueryOffsets &offsets, const AttentionShape &shape)
    : group(offsets.group), shape(shape), ranks(offsets.first.size()),
      sizes{shape.part - shape.part / 2, shape.part / 2} {
  for (int64_t rank = 0; rank < ranks; ++rank)
    partners.push_back(ranks - 1 - rank);
}

bool Chunks::areInOrder(const QueryOffsets &offsets) const {
  for (auto [rank, offset] : llvm::enumerate(offsets.first))
    if (offset != first(rank, 0))
      return false;
  return true;
}

/// The pairs of the device that has most.
int64_t Chunks::mostPairs(bool exchanges) const {
  int64_t most = 0;
  for (int64_t rank = 0; rank < ranks; ++rank) {
    int64_t own = first(rank, 0);
    int64_t pairs = exchanges ? shape.pairs(own, sizes[0]) + shape.pairs(first(rank, 1), sizes[1])
                              : shape.pairs(own, shape.part);
    most = std::max(most, pairs);
  }
  return most;
}

bool Chunks::isWorthwhile() const {
  return sizes[1] > 0 && mostPairs(true) <= (1 - leastGain) * mostPairs(false);
}

int64_t Chunks::first(int64_t rank, int i) const {
  return i == 0 ? rank * shape.part : partners[rank] * shape.part + sizes[0];
}

Value Chunks::exchanged(OpBuilder &b, Location loc, Value x) const {
  return PermuteOp::create(b, loc, x.getType(), x, partners, group);
}

Value Chunks::take(OpBuilder &b, Location loc, Value x, int64_t dim, int i) const {
  Value chunk = train::SliceOp::create(b, loc, x, sizes[i], dim, i == 0 ? 0 : sizes[0]);
  return i == 0 ? chunk : exchanged(b, loc, chunk);
}

Value Chunks::offset(OpBuilder &b, Location loc, Value offset, int i) const {
  // Rank p's number counted from the end, so subtracted.
  return i == 0 ? offset
                : train::ShiftIdsOp::create(b, loc, scalar(b, loc, offset, first(0, 1)), offset);
}

Value Chunks::join(OpBuilder &b, Location loc, Value first, Value second, int64_t dim) const {
  Value x = train::PadOp::create(b, loc, first, shape.part, dim, /*value=*/0, /*from=*/0);
  Value y = train::PadOp::create(b, loc, exchanged(b, loc, second), shape.part, dim, /*value=*/0,
                                 sizes[0]);
  return train::AddOp::create(b, loc, x, y);
}
