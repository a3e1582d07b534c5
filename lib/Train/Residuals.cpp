//===- Residuals.cpp - what the backward of a function keeps ----------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Residuals.h"
#include "Train/Quantize.h"

using namespace mlir;
using namespace meshwright::train;

/// A product with a matrix of ones and zeros, one in each row, copies rows of the other factor.
static bool selectsRows(Operation *op) {
  return isa<ContractionOpInterface>(op) &&
         llvm::any_of(op->getOperands(), [](Value factor) { return isa_and_nonnull<OneHotOp>(factor.getDefiningOp()); });
}

/// Whether the op is the amax of a whole tensor: one number, for which devices would communicate again.
static bool isOfTensor(Operation *op) {
  auto amax = dyn_cast<AmaxOp>(op);
  return amax && amax.getDims().empty();
}

/// Running the op again costs memory traffic only.
static bool isCheap(Operation *op) {
  return op && !isOfTensor(op) && (isa<KernelOpInterface>(op) || isa<ReshapeOp, FoldInOp>(op) || selectsRows(op));
}

static int64_t bytes(Value value) {
  auto type = cast<RankedTensorType>(value.getType());
  return type.getNumElements() * llvm::divideCeil(type.getElementTypeBitWidth(), 8);
}

/// The forward writes this value to memory whatever the backward does: several
/// ops read it, or one that is not fused with its producer.
static bool isMaterialized(Value value) {
  return !value.hasOneUse() || !isa<KernelOpInterface>(*value.user_begin());
}

Residuals meshwright::train::chooseResiduals(Block &forward, const llvm::SetVector<Value> &needed,
                                             function_ref<bool(Value)> isFree,
                                             const llvm::DenseSet<Value> &preferred) {
  Residuals residuals;
  auto available = [&](Value value) { return isFree(value) || residuals.kept.contains(value); };
  // A dequantized value is made again of the numbers of 8 bits, which may be fewer bytes than what they are made of.
  llvm::SetVector<Value> wanted(needed);
  for (Value value : needed) {
    while (auto reshape = value.getDefiningOp<ReshapeOp>())
      value = reshape.getX();
    if (auto dequantize = value.getDefiningOp<DequantizeOp>())
      wanted.insert(dequantize->operand_begin(), dequantize->operand_end());
  }
  // What must be stored for `value` to be computed again, beyond what already is.
  auto missingFor = [&](Value value) {
    llvm::SetVector<Value> leaves, seen;
    SmallVector<Value> work{value};
    while (!work.empty()) {
      Value next = work.pop_back_val();
      if (available(next) || !seen.insert(next))
        continue;
      if (isCheap(next.getDefiningOp()))
        llvm::append_range(work, next.getDefiningOp()->getOperands());
      else
        leaves.insert(next);
    }
    return leaves;
  };

  for (BlockArgument argument : forward.getArguments())
    if (wanted.contains(argument) && !isFree(argument))
      residuals.kept.insert(argument);
  for (Operation &op : forward)
    if (!isCheap(&op))
      for (Value result : op.getResults())
        if (wanted.contains(result) && !isFree(result))
          residuals.kept.insert(result);
  // In forward order, so that a decision can build on earlier ones.
  SmallVector<Value> recomputed;
  for (Operation &op : forward)
    for (Value result : op.getResults()) {
      if (!(wanted.contains(result) || preferred.contains(result)) || available(result))
        continue;
      llvm::SetVector<Value> missing = missingFor(result);
      int64_t cost = 0;
      for (Value leaf : missing)
        cost += bytes(leaf);
      bool written = isMaterialized(result) && (preferred.contains(result) || !missing.empty());
      if (written || cost > bytes(result)) {
        residuals.kept.insert(result);
        continue;
      }
      residuals.kept.insert(missing.begin(), missing.end());
      recomputed.push_back(result);
    }

  llvm::DenseSet<Operation *> again;
  while (!recomputed.empty()) {
    Value value = recomputed.pop_back_val();
    if (available(value))
      continue;
    if (again.insert(value.getDefiningOp()).second)
      llvm::append_range(recomputed, value.getDefiningOp()->getOperands());
  }
  for (Operation &op : forward)
    if (again.contains(&op))
      residuals.recomputed.insert(&op);
  return residuals;
}

Residuals meshwright::train::recomputeAll(Block &forward, const llvm::SetVector<Value> &needed) {
  Residuals residuals;
  llvm::SetVector<Value> values(needed);
  for (size_t i = 0; i < values.size(); ++i) {
    if (Operation *op = values[i].getDefiningOp())
      values.insert(op->operand_begin(), op->operand_end());
    else
      residuals.kept.insert(values[i]);
  }
  for (Operation &op : forward)
    if (llvm::any_of(op.getResults(), [&](Value v) { return values.contains(v); }))
      residuals.recomputed.insert(&op);
  return residuals;
}
