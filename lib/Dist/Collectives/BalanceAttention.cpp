//===- BalanceAttention.cpp - as much attention for every device ------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// Of causal attention whose queries are divided among n devices the last queries see most
// keys. So devices exchange queries until what they have sees as much (AttentionChunks.h). Chunks
// are made of what attention reads, and what it computes goes back, so nothing else knows of it.
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

template <typename Op>
static LogicalResult balance(Op op, ContextBalance how, const Mesh &mesh) {
  std::optional<QueryOffsets> offsets = queryOffsetsOf(op.getQueryOffset(), mesh);
  if (!offsets || op.getKeyOffset())
    return success(); // A ring is balanced already.
  FailureOr<Chunks> chunks = 
      Chunks::balanced(how, *offsets, AttentionShape::of(op), bool(op.getPositions()), op);
  if (failed(chunks) || !chunks->isExchange())
    return chunks;
  OpBuilder b(op);
  Location loc = op.getLoc();
  SmallVector<int64_t> dims = dimsOfResults(op);
  // Queries move before the first part is computed: devices have as much to do in all parts
  // together, not in each, and would wait for one another in between.
  SmallVector<SmallVector<Value>> operandsOf;
  for (int i = 0; i < chunks->count(); ++i) {
    SmallVector<Value> &operands = operandsOf.emplace_back(op->getOperands());
    for (auto [operand, dim] : operandsWithQueries(op))
      operands[operand->getOperandNumber()] = chunks->take(b, loc, operand->get(), dim, i);
    operands[op.getQueryOffsetMutable()[0].getOperandNumber()] =
        chunks->offsetFrom(b, loc, op.getQueryOffset(), i);
  }
  SmallVector<Op> parts;
  for (int i = 0; i < chunks->count(); ++i) {
    Operation *part = b.clone(*op);
    part->setOperands(operandsOf[i]);
    for (auto [result, dim] : llvm::zip(part->getResults(), dims))
      if (dim >= 0)
        result.setType(resized(result.getType(), dim, chunks->sizes[i]));
    parts.push_back(cast<Op>(part));
    train::AttentionSpec spec = op.getSpec().getValue();
    spec.queryStride = chunks->stride();
    parts.back().setSpec(spec);
  }
  for (auto [i, result] : llvm::enumerate(op->getResults())) {
    SmallVector<Value> of;
    for (Op part : parts)
      of.push_back(part->getResult(i));
    Value sum = of[0];
    if (dims[i] >= 0)
      sum = chunks->join(b, loc, of, dims[i]);
    else if (of.size() == 2)
      sum = train::AddOp::create(b, loc, of[0], of[1]);
    result.replaceAllUsesWith(sum);
  }
  op.erase();
  return success();
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
      auto attention = dyn_cast<train::AttentionOp>(op);
      if (failed(attention ? balance(attention, contextBalance, mesh)
                           : balance(cast<train::AttentionGradOp>(op), contextBalance, mesh)))
        return signalPassFailure();
    }
  }
};
} // namespace
