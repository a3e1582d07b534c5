//===- CountAttention.cpp - how much attention each device has --------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "AttentionWork.h"
#include "Dist/AttentionPairs.h"
#include "Dist/Passes.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::dist;

namespace meshwright::dist {
#define GEN_PASS_DEF_DISTCOUNTATTENTION
#include "Dist/Passes.h.inc"
} // namespace meshwright::dist

template <typename Op> static void count(Op op, const Mesh &mesh) {
  std::optional<QueryOffsets> offsets = queryOffsetsOf(op.getQueryOffset(), mesh);
  if (!offsets)
    return;
  AttentionShape shape = AttentionShape::of(op);
  std::optional<QueryOffsets> keys = queryOffsetsOf(op.getKeyOffset(), mesh);
  int64_t keysHere = cast<RankedTensorType>(op.getK().getType()).getDimSize(1);
  SmallVector<int64_t> pairs;
  for (auto [rank, first] : llvm::enumerate(offsets->first))
    pairs.push_back(shape.pairs(first, shape.part, keys ? keys->first[rank] : 0, keysHere));
  Builder b(op.getContext());
  op->setAttr(attentionPairsAttr, b.getDenseI64ArrayAttr(pairs));
  op->setAttr(firstQueriesAttr, b.getDenseI64ArrayAttr(offsets->first));
  if (keys)
    op->setAttr(firstKeysAttr, b.getDenseI64ArrayAttr(keys->first));
  op->setAttr(dividedOverAttr, offsets->group);
}

namespace {
class CountAttentionPass : public dist::impl::DistCountAttentionBase<CountAttentionPass> {
public:
  using DistCountAttentionBase::DistCountAttentionBase;

private:
  void runOnModule() override {
    MeshOp meshOp = lookupMesh(getOperation());
    if (!meshOp)
      return signalPassFailure();
    Mesh mesh = meshOp.getMesh();
    getOperation().walk([&](train::AttentionOp op) { count(op, mesh); });
    getOperation().walk([&](train::AttentionGradOp op) { count(op, mesh); });
  }
};
} // namespace
