//===- FillWaits.cpp - exec-fill-waits ---------------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Exec/Memory/InsertCopies.h"
#include "Exec/Passes.h"

#include "Dist/Dist.h"

#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::exec;

namespace meshwright::exec {
#define GEN_PASS_DEF_EXECFILLWAITS
#include "Exec/Passes.h.inc"
} // namespace meshwright::exec

/// The ops of the block of `op` that make what it, or an op inside it, reads.
static SmallVector<Operation *> makers(Operation *op) {
  SmallVector<Operation *> result;
  op->walk([&](Operation *inside) {
    for (Value operand : inside->getOperands())
      if (Operation *maker = operand.getDefiningOp())
        if (Operation *at = op->getBlock()->findAncestorOpInBlock(*maker); at && at != op)
          result.push_back(at);
  });
  return result;
}

static bool mayMove(Operation *op) {
  return op->getNumRegions() == 0 && isMemoryEffectFree(op) &&
         !isa<dist::CollectiveOpInterface, IndexOp>(op) && !op->hasTrait<OpTrait::IsTerminator>();
}

static bool isProduct(Operation *op) { return isa<train::ContractionOpInterface>(op); }

/// Moves products that do not need what `collective` brings to before the first op that does, with
/// what they are made of.
static void fill(Operation *collective) {
  DenseSet<Operation *> waiting{collective};
  Operation *first = nullptr;
  llvm::SetVector<Operation *> later; // than that op, in the order of the block
  for (Operation *op = collective->getNextNode(); op; op = op->getNextNode()) {
    if (llvm::any_of(makers(op), [&](Operation *maker) { return waiting.contains(maker); })) {
      waiting.insert(op);
      if (!first && !isView(op))
        first = op;
    } else if (auto passing = dyn_cast<dist::CollectiveOpInterface>(op);
               first && passing && passing.isPermutation()) {
      break; // What a ring passes on is computed with where it stands.
    } else if (first) {
      later.insert(op);
    } else if (isProduct(op)) {
      return; // It has something beside it.
    }
  }
  DenseSet<Operation *> moved;
  for (Operation *product : later) {
    if (!isProduct(product))
      continue;
    llvm::SetVector<Operation *> needed;
    needed.insert(product);
    for (size_t i = 0; i < needed.size(); ++i)
      for (Operation *maker : makers(needed[i]))
        if (later.contains(maker))
          needed.insert(maker);
    if (llvm::all_of(needed, mayMove))
      moved.insert(needed.begin(), needed.end());
  }
  for (Operation *op : later)
    if (moved.contains(op))
      op->moveBefore(first);
}

namespace {
struct ExecFillWaits : exec::impl::ExecFillWaitsBase<ExecFillWaits> {
  using ExecFillWaitsBase::ExecFillWaitsBase;

  void runOnModule() override {
    SmallVector<Operation *> collectives;
    for (auto function : getOperation().getOps<func::FuncOp>())
      function.walk([&](dist::CollectiveOpInterface op) {
        if (op->hasAttr(dist::slotsAttr) && bytesMoved(op) >= minBytes)
          collectives.push_back(op);
      });
    // Products go beside the largest of those that they may stand beside, and the first of these.
    llvm::stable_sort(collectives,
                      [](Operation *a, Operation *b) { return bytesMoved(a) > bytesMoved(b); });
    llvm::for_each(collectives, fill);
  }

private:
  static int64_t bytesMoved(Operation *op) {
    int64_t bytes = 0;
    for (Value operand : op->getOperands())
      bytes += bytesOf(operand.getType());
    return bytes;
  }
};
} // namespace
