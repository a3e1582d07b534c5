//===- Gradients.cpp - which values are gradients of parameters -------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// Launches say which of their inputs are gradients; what those were before devices put
// them together follows.
//
//===----------------------------------------------------------------------===//
#include "Gradients.h"
#include "InsertCopies.h"

#include "Dist/Dist.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::exec;

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

/// What `value` was before one such step: an operand of a collective, a tensor that a
/// kernel gives another layout, or a stack of which a loop moves slice by slice. Null if
/// something was computed.
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
  auto moves = op->getAttrOfType<DenseI64ArrayAttr>(movesAttr);
  bool isMoved =
      moves && llvm::is_contained(moves.asArrayRef(), cast<OpResult>(value).getResultNumber());
  return isMoved ? withoutCopies(op->getOperand(0)) : Value();
}

/// What a kernel reads: of a slice that a loop around it gives it, the whole.
static Value stackOf(Value value) {
  value = withoutCopies(value);
  if (auto argument = dyn_cast<BlockArgument>(value))
    if (auto loop = dyn_cast<LoopOp>(argument.getOwner()->getParentOp()))
      for (auto [whole, slice] : llvm::zip(loop.getEach(), loop.getEachArguments()))
        if (slice == argument)
          return withoutCopies(whole);
  return value;
}

SmallVector<Value> exec::gradientsOf(func::FuncOp function) {
  llvm::SmallSetVector<Value, 16> gradients;
  function.walk([&](LaunchOp launch) {
    auto numbers = launch->getAttrOfType<DenseI64ArrayAttr>(gradientsAttr);
    if (!numbers)
      return;
    for (int64_t i : numbers.asArrayRef()) {
      Value value = stackOf(launch.getInputs()[i]);
      gradients.insert(value);
      gradients.insert(originOf(value));
    }
  });
  return gradients.takeVector();
}
