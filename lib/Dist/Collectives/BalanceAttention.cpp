//===- BalanceAttention.cpp - as much attention for every device ------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// Of causal attention whose queries are divided among n devices the last queries see most
// keys. With 2n chunks of queries, device p having numbers 2p and 2p+1, devices p and n-1-p
// exchange the second ones: so each pair of chunks sees as much as every other. Chunks are
// made of what attention reads, and what it computes goes back, so nothing else knows of it.
//
//===----------------------------------------------------------------------===//
#include "AttentionWork.h"
#include "Dist/Passes.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::dist;

namespace meshwright::dist {
#define GEN_PASS_DEF_DISTBALANCEATTENTION
#include "Dist/Passes.h.inc"
} // namespace meshwright::dist

/// Exchanges whose gain in time is less than this are not worth what they send.
static constexpr double leastGain = 0.02;

/// Operands and results of attention that have queries, with the dimension; -1 for results that are
/// sums over queries.
static SmallVector<std::pair<OpOperand *, int64_t>> operandsWithQueries(train::AttentionOp op) {
  return {{&op.getQMutable(), 1}};
}
static SmallVector<std::pair<OpOperand *, int64_t>> operandsWithQueries(train::AttentionGradOp op) {
  return {{&op.getDoutMutable(), 1},
          {&op.getQMutable(), 1},
          {&op.getOutMutable(), 1},
          {&op.getLseMutable(), 2}};
}
static SmallVector<int64_t> dimsOfResults(train::AttentionOp) { return {1, 2}; }
static SmallVector<int64_t> dimsOfResults(train::AttentionGradOp) { return {1, -1, -1, -1}; }

static RankedTensorType resized(Value value, int64_t dim, int64_t size) {
  auto type = cast<RankedTensorType>(value.getType());
  SmallVector<int64_t> shape(type.getShape());
  shape[dim] = size;
  return RankedTensorType::get(shape, type.getElementType());
}

/// The scalar `number`; `like` is any other.
static Value scalar(OpBuilder &b, Location loc, Value like, int64_t number) {
  auto row = RankedTensorType::get({1}, b.getI32Type());
  Value two = train::PadOp::create(b, loc, train::ReshapeOp::create(b, loc, row, like),
                                   /*rows=*/2, /*dim=*/0, uint64_t(number), /*from=*/0);
  Value one = train::SliceOp::create(b, loc, two, /*rows=*/1, /*dim=*/0, /*from=*/1);
  return train::ReshapeOp::create(b, loc, like.getType(), one);
}

namespace {
/// The two chunks of a device's queries and who exchanges the second.
struct Chunks {
  explicit Chunks(const QueryOffsets &offsets, int64_t part)
      : group(offsets.group), ranks(offsets.first.size()), sizes{part - part / 2, part / 2} {
    for (int64_t rank = 0; rank < ranks; ++rank)
      partners.push_back(ranks - 1 - rank);
  }

  /// The position of the first query that the device of `rank` computes of chunk `i`.
  int64_t first(int64_t rank, int i) const {
    int64_t part = sizes[0] + sizes[1];
    return i == 0 ? rank * part : partners[rank] * part + sizes[0];
  }
  Value exchanged(OpBuilder &b, Location loc, Value x) const {
    return PermuteOp::create(b, loc, x.getType(), x, partners, group);
  }
  /// Chunk `i` of x as attention reads it.
  Value take(OpBuilder &b, Location loc, Value x, int64_t dim, int i) const {
    Value chunk = train::SliceOp::create(b, loc, x, sizes[i], dim, i == 0 ? 0 : sizes[0]);
    return i == 0 ? chunk : exchanged(b, loc, chunk);
  }
  /// The chunks of attention's results as one.
  Value join(OpBuilder &b, Location loc, Value first, Value second, int64_t dim) const {
    int64_t part = sizes[0] + sizes[1];
    Value x = train::PadOp::create(b, loc, first, part, dim, /*value=*/0, /*from=*/0);
    Value y =
        train::PadOp::create(b, loc, exchanged(b, loc, second), part, dim, /*value=*/0, sizes[0]);
    return train::AddOp::create(b, loc, x, y);
  }

  GroupAttr group;
  int64_t ranks;
  int64_t sizes[2];
  SmallVector<int64_t> partners;
};
} // namespace

/// The pairs of the device that has most.
static int64_t mostPairs(const AttentionShape &shape, const Chunks &chunks, bool exchanges) {
  int64_t most = 0;
  for (int64_t rank = 0; rank < chunks.ranks; ++rank) {
    int64_t own = chunks.first(rank, 0);
    int64_t pairs = exchanges ? shape.pairs(own, chunks.sizes[0]) +
                                    shape.pairs(chunks.first(rank, 1), chunks.sizes[1])
                              : shape.pairs(own, shape.part);
    most = std::max(most, pairs);
  }
  return most;
}

template <typename Op> static void balance(Op op, const Mesh &mesh) {
  std::optional<QueryOffsets> offsets = queryOffsetsOf(op.getQueryOffset(), mesh);
  AttentionShape shape = AttentionShape::of(op);
  if (!offsets || shape.part < 2)
    return;
  Chunks chunks(*offsets, shape.part);
  for (auto [rank, first] : llvm::enumerate(offsets->first))
    if (first != chunks.first(rank, 0))
      return; // No whole parts in order: it is balanced already.
  if (mostPairs(shape, chunks, true) > (1 - leastGain) * mostPairs(shape, chunks, false))
    return;
  OpBuilder b(op);
  Location loc = op.getLoc();
  SmallVector<int64_t> dims = dimsOfResults(op);
  Op parts[2];
  for (int i : {0, 1}) {
    SmallVector<Value> operands(op->getOperands());
    for (auto [operand, dim] : operandsWithQueries(op))
      operands[operand->getOperandNumber()] = chunks.take(b, loc, operand->get(), dim, i);
    if (i == 1) {
      // Rank p's number counted from the end, so subtracted.
      Value offset = op.getQueryOffset();
      operands[op.getQueryOffsetMutable()[0].getOperandNumber()] =
          train::ShiftIdsOp::create(b, loc, scalar(b, loc, offset, chunks.first(0, 1)), offset);
    }
    Operation *part = b.clone(*op);
    part->setOperands(operands);
    for (auto [result, dim] : llvm::zip(part->getResults(), dims))
      if (dim >= 0)
        result.setType(resized(result, dim, chunks.sizes[i]));
    parts[i] = cast<Op>(part);
  }
  for (auto [i, result] : llvm::enumerate(op->getResults())) {
    Value first = parts[0]->getResult(i), second = parts[1]->getResult(i);
    result.replaceAllUsesWith(dims[i] >= 0
                                  ? chunks.join(b, loc, first, second, dims[i])
                                  : train::AddOp::create(b, loc, first, second).getResult());
  }
  op.erase();
}

namespace {
class BalanceAttentionPass : public dist::impl::DistBalanceAttentionBase<BalanceAttentionPass> {
public:
  using DistBalanceAttentionBase::DistBalanceAttentionBase;

private:
  void runOnModule() override {
    MeshOp meshOp = lookupMesh(getOperation());
    if (!meshOp)
      return signalPassFailure();
    if (contextBalance == ContextBalance::none)
      return;
    Mesh mesh = meshOp.getMesh();
    SmallVector<Operation *> ops;
    getOperation().walk([&](Operation *op) {
      if (isa<train::AttentionOp, train::AttentionGradOp>(op))
        ops.push_back(op);
    });
    for (Operation *op : ops) {
      if (auto attention = dyn_cast<train::AttentionOp>(op))
        balance(attention, mesh);
      else
        balance(cast<train::AttentionGradOp>(op), mesh);
    }
  }
};
} // namespace
