//===- LocalIndices.cpp - ids and indices of a device's part ----------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "LocalIndices.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::dist;

namespace {
class LocalIndices {
public:
  explicit LocalIndices(MeshOp meshOp)
      : meshName(FlatSymbolRefAttr::get(meshOp)), mesh(meshOp.getMesh()) {}

  void shiftIds(train::ShardingRuleOpInterface op) {
    ShardingRule rule = op.getShardingRule();
    for (auto [i, tensor] : llvm::enumerate(rule.operands)) {
      if (tensor.indexes < 0)
        continue;
      Value offset = offsetOfFactor(op, rule, tensor.indexes);
      if (!offset)
        continue;
      OpBuilder b(op);
      Value ids = op->getOperand(i);
      auto shifted = train::ShiftIdsOp::create(b, op.getLoc(), ids, offset);
      shifted.getResult().setType(cast<RankedTensorType>(ids.getType()));
      op->setOperand(i, shifted);
    }
  }

  void addOffsets(train::IndexedOpInterface op) {
    SmallVector<Value> offsets;
    for (auto [value, dim] : op.getIndexedDims())
      offsets.push_back(offsetOf(op, value, dim));
    if (llvm::none_of(offsets, [](Value offset) { return bool(offset); }))
      return;
    op.keepLogicalSizes();
    op.setOffsets(offsets);
  }

private:
  /// The index at which the device's part of a dimension begins; null where it is
  /// not sharded.
  Value offsetOf(Operation *op, Value value, int64_t dim) {
    ShardingAttr attr = dist::shardingOf(value.getType());
    Sharding sharding = attr.on(mesh);
    if (mesh.size(sharding.dims[dim]) == 1)
      return {};
    auto shape = localShape(cast<RankedTensorType>(value.getType()).getShape(), sharding, mesh);
    OpBuilder b(op);
    return OffsetOp::create(b, op->getLoc(), shape[dim],
                            GroupAttr::from(meshName, mesh, sharding.dims[dim]));
  }

  Value offsetOfFactor(Operation *op, const ShardingRule &rule, unsigned factor) {
    auto find = [&](ValueRange values, ArrayRef<TensorFactors> tensors) -> Value {
      for (auto [value, tensor] : llvm::zip(values, tensors))
        for (auto [d, dim] : llvm::enumerate(tensor.dims))
          if (dim.size() == 1 && dim[0] == factor)
            return offsetOf(op, value, d);
      return {};
    };
    Value offset = find(op->getOperands(), rule.operands);
    return offset ? offset : find(op->getResults(), rule.results);
  }

  FlatSymbolRefAttr meshName;
  Mesh mesh;
};
} // namespace

void dist::makeIndicesLocal(ModuleOp module, MeshOp mesh) {
  LocalIndices local(mesh);
  SmallVector<Operation *> ops;
  module.walk([&](Operation *op) {
    if (isa<train::ShardingRuleOpInterface, train::IndexedOpInterface>(op))
      ops.push_back(op);
  });
  for (Operation *op : ops) {
    if (auto ruled = dyn_cast<train::ShardingRuleOpInterface>(op))
      local.shiftIds(ruled);
    if (auto indexed = dyn_cast<train::IndexedOpInterface>(op))
      local.addOffsets(indexed);
  }
}

void dist::updateSizes(ModuleOp module) {
  module.walk([](train::SizedOpInterface op) { op.updateSizes(); });
}
