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
#include "AttentionChunks.h"
#include "Dist/Passes.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::dist;

namespace meshwright::dist {
#define GEN_PASS_DEF_DISTBALANCEATTENTION
#include "Dist/Passes.h.inc"
} // namespace meshwright::dist

template <typename Op> static void balance(Op op, const Mesh &mesh) {
  std::optional<QueryOffsets> offsets = queryOffsetsOf(op.getQueryOffset(), mesh);
  if (!offsets || op.getKeyOffset())
    return; // A ring is balanced already.
  Chunks chunks(*offsets, AttentionShape::of(op));
  if (!chunks.areInOrder(*offsets) || !chunks.isWorthwhile())
    return;
  OpBuilder b(op);
  Location loc = op.getLoc();
  SmallVector<int64_t> dims = dimsOfResults(op);
  Op parts[2];
  for (int i : {0, 1}) {
    SmallVector<Value> operands(op->getOperands());
    for (auto [operand, dim] : operandsWithQueries(op))
      operands[operand->getOperandNumber()] = chunks.take(b, loc, operand->get(), dim, i);
    operands[op.getQueryOffsetMutable()[0].getOperandNumber()] =
        chunks.offset(b, loc, op.getQueryOffset(), i);
    Operation *part = b.clone(*op);
    part->setOperands(operands);
    for (auto [result, dim] : llvm::zip(part->getResults(), dims))
      if (dim >= 0)
        result.setType(resized(result.getType(), dim, chunks.sizes[i]));
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
