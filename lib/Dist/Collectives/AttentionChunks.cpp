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
SmallVector<int64_t> dist::dimsOfResults(train::AttentionGradOp op) {
  SmallVector<int64_t> dims(op->getNumResults(), -1);
  dims.front() = 1;
  return dims;
}

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

Chunks::Chunks(ContextBalance how, GroupAttr group, int64_t ranks, const AttentionShape &shape)
    : how(how), group(group), shape(shape), ranks(ranks) {
  if (how == ContextBalance::zigzag)
    sizes = {shape.part - shape.part / 2, shape.part / 2};
  else
    sizes = {shape.part};
  this->shape.queryStride = stride();
  for (int64_t rank = 0; rank < ranks; ++rank)
    partners.push_back(ranks - 1 - rank);
}

bool Chunks::areInOrder(const QueryOffsets &offsets) const {
  for (auto [rank, offset] : llvm::enumerate(offsets.first))
    if (offset != int64_t(rank) * shape.part)
      return false;
  return true;
}

/// The pairs of the device that has most.
int64_t Chunks::mostPairs() const {
  int64_t most = 0;
  for (int64_t rank = 0; rank < ranks; ++rank) {
    int64_t pairs = 0;
    for (auto [i, size] : llvm::enumerate(sizes))
      pairs += shape.pairs(first(rank, i), size);
    most = std::max(most, pairs);
  }
  return most;
}

FailureOr<Chunks> Chunks::balanced(ContextBalance how, const QueryOffsets &offsets,
                                   const AttentionShape &shape, bool documents, Operation *op) {
  int64_t ranks = offsets.first.size();
  Chunks own(ContextBalance::none, offsets.group, ranks, shape);
  Chunks chunks(how, offsets.group, ranks, shape);
  if (how == ContextBalance::none || !own.areInOrder(offsets))
    return own;
  // How documents divide a sequence is known when they are read. Stripes balance any of them.
  bool gains = chunks.mostPairs() <= (1 - leastGain) * own.mostPairs() ||
               (documents && how == ContextBalance::striped);
  if (!gains || (how == ContextBalance::zigzag && shape.part < 2))
    return own;
  if (how == ContextBalance::striped && shape.part % ranks != 0)
    return op->emitError("--context-balance striped cannot deal out evenly the ")
           << shape.part << " tokens of each of " << ranks
           << " ranks; use a --seq of which each rank has a multiple of " << ranks
           << ", or --context-balance zigzag";
  return chunks;
}

int64_t Chunks::first(int64_t rank, int i) const {
  if (how == ContextBalance::striped)
    return rank;
  return i == 0 ? rank * shape.part : partners[rank] * shape.part + sizes[0];
}

Value Chunks::exchanged(OpBuilder &b, Location loc, Value x) const {
  return PermuteOp::create(b, loc, x.getType(), x, partners, group);
}

/// `x` with tokens of dimension `dim` as [rows, columns].
static Value withTokens(OpBuilder &b, Location loc, Value x, int64_t dim, int64_t rows,
                        int64_t columns) {
  auto type = cast<RankedTensorType>(x.getType());
  SmallVector<int64_t> shape(type.getShape());
  shape[dim] = rows;
  shape.insert(shape.begin() + dim + 1, columns);
  return train::ReshapeOp::create(b, loc, RankedTensorType::get(shape, type.getElementType()), x);
}
/// ... and in one dimension again.
static Value withoutTokens(OpBuilder &b, Location loc, Value x, int64_t dim) {
  auto type = cast<RankedTensorType>(x.getType());
  SmallVector<int64_t> shape(type.getShape());
  shape[dim] *= shape[dim + 1];
  shape.erase(shape.begin() + dim + 1);
  return train::ReshapeOp::create(b, loc, RankedTensorType::get(shape, type.getElementType()), x);
}

Value Chunks::take(OpBuilder &b, Location loc, Value x, int64_t dim, int i) const {
  if (how == ContextBalance::none)
    return x;
  if (how == ContextBalance::striped) {
    // As [stripes, ranks]: a column for each rank, which gets the rows of all ranks in order.
    x = withTokens(b, loc, x, dim, shape.part / ranks, ranks);
    RankedTensorType type = resized(resized(x.getType(), dim, shape.part), dim + 1, 1);
    x = AllToAllOp::create(b, loc, type, x, /*dim=*/dim + 1, /*concat=*/dim, group);
    return withoutTokens(b, loc, x, dim);
  }
  Value chunk = train::SliceOp::create(b, loc, x, sizes[i], dim, i == 0 ? 0 : sizes[0]);
  return i == 0 ? chunk : exchanged(b, loc, chunk);
}

Value Chunks::offset(OpBuilder &b, Location loc, int64_t by, int i) const {
  int64_t shift = (ranks - by) % ranks, size = how == ContextBalance::striped ? 1 : shape.part;
  Value own = OffsetOp::create(b, loc, size, group, shift);
  return i == 0 ? own : offsetFrom(b, loc, own, i);
}

Value Chunks::offsetFrom(OpBuilder &b, Location loc, Value own, int i) const {
  if (how == ContextBalance::striped)
    return offset(b, loc, /*by=*/0, i);
  // Rank p's number counted from the end, so subtracted.
  return i == 0 ? own
                : train::ShiftIdsOp::create(b, loc, scalar(b, loc, own, first(0, 1)), own);
}

Value Chunks::join(OpBuilder &b, Location loc, ArrayRef<Value> chunks, int64_t dim) const {
  Value x = chunks[0];
  if (how == ContextBalance::none)
    return x;
  if (how == ContextBalance::striped) {
    x = withTokens(b, loc, x, dim, shape.part, 1);
    RankedTensorType type =
        resized(resized(x.getType(), dim, shape.part / ranks), dim + 1, ranks);
    x = AllToAllOp::create(b, loc, type, x, /*dim=*/dim, /*concat=*/dim + 1, group);
    return withoutTokens(b, loc, x, dim);
  }
  x = train::PadOp::create(b, loc, x, shape.part, dim, /*value=*/0, /*from=*/0);
  Value y = train::PadOp::create(b, loc, exchanged(b, loc, chunks[1]), shape.part, dim,
                                 /*value=*/0, sizes[0]);
  return train::AddOp::create(b, loc, x, y);
}
