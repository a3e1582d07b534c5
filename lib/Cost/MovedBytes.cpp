//===- MovedBytes.cpp - bytes that ops of the memory form move --------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "meshwright/Cost/MovedBytes.h"

#include "Exec/Exec.h"
#include "Train/Train.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::cost;

static int64_t bytesOfElements(Type type, int64_t elements) {
  return elements * type.getIntOrFloatBitWidth() / 8;
}

static int64_t tensorBytes(Type type) {
  auto tensor = cast<RankedTensorType>(type);
  return bytesOfElements(tensor.getElementType(), tensor.getNumElements());
}

/// What a kernel reads of an argument: all of it, unless it takes rows or a part out of it.
static int64_t readBytes(BlockArgument argument) {
  int64_t bytes = 0, whole = tensorBytes(argument.getType());
  for (OpOperand &use : argument.getUses()) {
    Operation *user = use.getOwner();
    auto gather = dyn_cast<train::GatherRowsOp>(user);
    if ((gather && gather.getTable() == argument) || isa<train::DynamicSliceOp>(user))
      bytes += tensorBytes(user->getResult(0).getType());
    else
      return whole;
  }
  return std::min(bytes, whole);
}

/// Rows of the target that are added to, if no two ids are the same.
static int64_t touchedBytes(train::ScatterRowsOp scatter) {
  auto rows = cast<RankedTensorType>(scatter.getX().getType());
  return bytesOfElements(cast<RankedTensorType>(scatter.getType()).getElementType(),
                         rows.getNumElements());
}

static MovedBytes movedByLaunch(exec::LaunchOp launch, func::FuncOp kernel) {
  MovedBytes moved;
  Operation *end = kernel.getBody().front().getTerminator();
  for (auto [argument, memory] : llvm::zip(kernel.getArguments(), launch.getInputs())) {
    int64_t bytes = readBytes(argument);
    for (auto [value, target] : llvm::zip(end->getOperands(), launch.getOutputs())) {
      // Rows that are added to memory where it is: those that are touched.
      auto scatter = value.getDefiningOp<train::ScatterRowsOp>();
      if (scatter && scatter.getInit() == argument && target == memory)
        bytes = std::min(bytes, touchedBytes(scatter));
    }
    moved.read += bytes;
  }
  for (auto [value, target] : llvm::zip(end->getOperands(), launch.getOutputs())) {
    int64_t bytes = tensorBytes(value.getType());
    auto scatter = value.getDefiningOp<train::ScatterRowsOp>();
    if (scatter && llvm::is_contained(launch.getInputs(), target))
      bytes = std::min(bytes, touchedBytes(scatter));
    moved.written += bytes;
  }
  return moved;
}

/// What the target says that a call of attention leaves in scratch memory and reads there.
template <typename Op> static MovedBytes inScratch(Op op) {
  exec::TargetAttr target = exec::targetOf(op);
  int64_t bytes = target.getTarget().getAttentionScratchTraffic(
      op.getAttention(), isa<exec::AttentionGradOp>(op), op.getLibraryAttr(),
      target.getParameters());
  return {bytes, bytes};
}

/// Of library calls. Workspaces, which are rows of bytes, are scratch memory; weights in 8 bits are matrices.
static MovedBytes movedByCall(Operation *op) {
  MovedBytes moved = llvm::TypeSwitch<Operation *, MovedBytes>(op)
                         .Case<exec::AttentionOp, exec::AttentionGradOp>(
                             [](auto attention) { return inScratch(attention); })
                         .Default(MovedBytes{});
  SmallVector<MemoryEffects::EffectInstance> effects;
  if (auto interface = dyn_cast<MemoryEffectOpInterface>(op))
    interface.getEffects(effects);
  for (MemoryEffects::EffectInstance &effect : effects) {
    auto *operand = effect.getEffectValue<OpOperand *>();
    auto type = operand ? dyn_cast<MemRefType>(operand->get().getType()) : MemRefType();
    if (!type || (type.getElementType().isInteger(8) && type.getRank() == 1))
      continue;
    int64_t bytes = bytesOfElements(type.getElementType(), type.getNumElements());
    (isa<MemoryEffects::Write>(effect.getEffect()) ? moved.written : moved.read) += bytes;
  }
  return moved;
}

MovedBytes cost::movedBy(Operation *op, SymbolTableCollection &symbols) {
  auto launch = dyn_cast<exec::LaunchOp>(op);
  return launch ? movedByLaunch(launch, symbols.lookupNearestSymbolFrom<func::FuncOp>(
                                            op, launch.getKernelAttr()))
                : movedByCall(op);
}
