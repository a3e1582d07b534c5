//===- Gradients.cpp - which values are gradients of parameters -------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// An update is a kernel that makes what a variable is set to and reads what that or
// another variable was; whatever else it reads, scalars apart, is a gradient.
//
//===----------------------------------------------------------------------===//
#include "Gradients.h"
#include "InsertCopies.h"

#include "Dist/Dist.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::exec;

static bool isScalar(Value value) { return cast<RankedTensorType>(value.getType()).getRank() == 0; }

/// The value whose elements `value` has, in this memory or in another.
static Value withoutCopies(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (!isView(op) && !isa<CopyOp>(op))
      break;
    value = op->getOperand(0);
  }
  return value;
}

static Value comesFrom(Value value);

/// What `value` was before all steps on its way between devices.
static Value originOf(Value value) {
  value = withoutCopies(value);
  for (Value before = comesFrom(value); before; before = comesFrom(value))
    value = before;
  return value;
}

/// What `value` was before one such step: an operand of a collective, the one tensor
/// that a kernel gives another layout, or a stack of which a loop moves slice by
/// slice. Null if something was computed.
static Value comesFrom(Value value) {
  Operation *op = value.getDefiningOp();
  if (!op)
    return {};
  if (auto loop = dyn_cast<LoopOp>(op)) {
    unsigned result = cast<OpResult>(value).getResultNumber();
    if (result < loop.getCarry().size())
      return {};
    Value slice = originOf(loop.getBlock().getTerminator()->getOperand(result));
    for (auto [whole, argument] : llvm::zip(loop.getEach(), loop.getEachArguments()))
      if (argument == slice)
        return withoutCopies(whole);
    return {};
  }
  if (isa<dist::CollectiveOpInterface>(op))
    return op->getNumOperands() == op->getNumResults()
               ? withoutCopies(op->getOperand(cast<OpResult>(value).getResultNumber()))
               : Value();
  auto launch = dyn_cast<LaunchOp>(op);
  if (!launch || launch.getInputs().size() != 1)
    return {};
  Value input = launch.getInputs().front();
  bool moves = cast<RankedTensorType>(input.getType()).getNumElements() ==
               cast<RankedTensorType>(value.getType()).getNumElements();
  return moves && !isScalar(input) ? withoutCopies(input) : Value();
}

/// What a kernel reads: of a slice that a loop around it gives it, the whole.
static Value wholeOf(Value value) {
  value = withoutCopies(value);
  if (auto argument = dyn_cast<BlockArgument>(value))
    if (auto loop = dyn_cast<LoopOp>(argument.getOwner()->getParentOp()))
      for (auto [whole, slice] : llvm::zip(loop.getEach(), loop.getEachArguments()))
        if (slice == argument)
          return withoutCopies(whole);
  return value;
}

/// The kernel that makes `value`, or its parts in a loop, before devices put it together.
static LaunchOp updateOf(Value value) {
  value = originOf(value);
  if (auto loop = value.getDefiningOp<LoopOp>())
    value = withoutCopies(
        loop.getBlock().getTerminator()->getOperand(cast<OpResult>(value).getResultNumber()));
  auto launch = value.getDefiningOp<LaunchOp>();
  bool updates = launch && llvm::any_of(launch.getInputs(), [](Value input) {
                   return isa_and_nonnull<train::GetOp>(wholeOf(input).getDefiningOp());
                 });
  return updates ? launch : LaunchOp();
}

SmallVector<Value> exec::gradientsOf(func::FuncOp function) {
  llvm::SmallSetVector<Value, 16> gradients;
  for (auto set : function.getBody().front().getOps<train::SetOp>()) {
    LaunchOp update = updateOf(set.getValue());
    if (!update)
      continue;
    for (Value input : update.getInputs()) {
      Value value = wholeOf(input);
      if (isScalar(value) || isa_and_nonnull<train::GetOp>(value.getDefiningOp()))
        continue;
      gradients.insert(value);
      gradients.insert(originOf(value));
    }
  }
  return gradients.takeVector();
}
