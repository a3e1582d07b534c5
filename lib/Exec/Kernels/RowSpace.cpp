//===- RowSpace.cpp - the loops of a memory-bound op ------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "RowSpace.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::exec;

static llvm::SmallDenseSet<unsigned> factorsOf(const TensorFactors &tensor) {
  llvm::SmallDenseSet<unsigned> set;
  for (const auto &dim : tensor.dims)
    set.insert(dim.begin(), dim.end());
  return set;
}

RowSpace::RowSpace(Operation *op) {
  ShardingRule rule = cast<train::ShardingRuleOpInterface>(op).getShardingRule();
  SmallVector<const TensorFactors *> tensors;
  for (const TensorFactors &tensor : rule.results)
    tensors.push_back(&tensor);
  for (const TensorFactors &tensor : rule.operands)
    tensors.push_back(&tensor);

  // The spanning tensor holds the indices of as many tensors as possible: of an
  // embedding it is the result, not the table; of cross-entropy the logits.
  const TensorFactors *span = nullptr;
  std::pair<unsigned, unsigned> best;
  for (const TensorFactors *tensor : tensors) {
    llvm::SmallDenseSet<unsigned> own = factorsOf(*tensor);
    unsigned covered = llvm::count_if(tensors, [&](const TensorFactors *other) {
      return llvm::all_of(factorsOf(*other), [&](unsigned f) { return own.contains(f); });
    });
    std::pair<unsigned, unsigned> score(covered, own.size());
    if (!span || score > best) {
      span = tensor;
      best = score;
    }
  }
  ArrayRef<SmallVector<unsigned, 1>> all = span->dims;
  auto extentOf = [&](const TensorFactors &tensor) {
    ArrayRef<SmallVector<unsigned, 1>> dims = tensor.dims;
    if (dims == all)
      return Extent::Full;
    if (dims.empty())
      return Extent::Scalar;
    if (dims == all.drop_back())
      return Extent::Row;
    if (dims == all.take_back())
      return Extent::Column;
    return Extent::Other;
  };
  for (const TensorFactors &tensor : rule.operands)
    operands.push_back(extentOf(tensor));
  for (const TensorFactors &tensor : rule.results)
    results.push_back(extentOf(tensor));
  for (auto [tensor, value] : llvm::zip(rule.results, op->getResults()))
    if (&tensor == span)
      shape.assign(cast<RankedTensorType>(value.getType()).getShape().begin(),
                   cast<RankedTensorType>(value.getType()).getShape().end());
  for (auto [tensor, value] : llvm::zip(rule.operands, op->getOperands()))
    if (&tensor == span)
      shape.assign(cast<RankedTensorType>(value.getType()).getShape().begin(),
                   cast<RankedTensorType>(value.getType()).getShape().end());
}
