//===- StageAssignment.cpp - what stages do after the last microbatch ----===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "StagePrograms.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::dist;

std::optional<int64_t> StageAssignment::homeOf(Value value) const {
  auto found = home.find(value);
  return found == home.end() ? std::nullopt : std::optional<int64_t>(found->second);
}

namespace {
class StageAssigner {
public:
  StageAssigner(MicrobatchOps &ops, ArrayRef<int64_t> stageOf, int64_t stages)
      : ops(ops), stageOf(stageOf), stages(stages) {
    assignment.ops.resize(stages);
  }

  void findHomes();
  void need(Value value, int64_t stage);
  void need(Operation *op, int64_t stage);

  StageAssignment assignment;

private:
  void setHome(Value value, int64_t home, int64_t owner) {
    assignment.home[value] = home;
    assignment.owner[value] = owner;
  }

  MicrobatchOps &ops;
  ArrayRef<int64_t> stageOf;
  int64_t stages;
};
} // namespace

void StageAssigner::findHomes() {
  Operation *end = ops.block->getTerminator();
  for (Operation &op : ops.function.getBody().front().without_terminator()) {
    if (&op == ops.loop) {
      for (OpResult result : op.getResults())
        if (std::optional<Part> part = ops.partOf(end->getOperand(result.getResultNumber())))
          setHome(result, stageOf[part->chunk], stageOf[part->chunk]);
      continue;
    }
    if (auto part = ops.parts.find(&op); part != ops.parts.end()) {
      for (Value result : op.getResults())
        setHome(result, stageOf[part->second.chunk], stageOf[part->second.chunk]);
      continue;
    }
    std::optional<int64_t> home, owner;
    bool meets = false;
    for (Value operand : op.getOperands()) {
      std::optional<int64_t> from = assignment.homeOf(operand);
      if (!from)
        continue;
      owner = std::min(owner.value_or(stages), assignment.ownerOf(operand));
      // All stages clip by the norm, each what it has.
      if (*from == StageAssignment::everywhere) {
        meets |= isa<train::GlobalNormOp>(op);
        continue;
      }
      meets |= home && *home != *from;
      home = from;
    }
    if (owner)
      for (Value result : op.getResults())
        setHome(result,
                meets ? StageAssignment::everywhere : home.value_or(StageAssignment::everywhere),
                *owner);
  }
}

void StageAssigner::need(Value value, int64_t stage) {
  Operation *op = value.getDefiningOp();
  if (!op)
    return;
  std::optional<int64_t> home = assignment.homeOf(value);
  if (home && *home != StageAssignment::everywhere && *home != stage) {
    assignment.sentTo[value].insert(stage);
    stage = *home;
  }
  if (op != ops.loop && !ops.parts.contains(op))
    need(op, stage);
}

void StageAssigner::need(Operation *op, int64_t stage) {
  if (!assignment.ops[stage].insert(op))
    return;
  if (!isa<train::GlobalNormOp>(op) ||
      assignment.homeOf(op->getResult(0)) != std::optional<int64_t>(StageAssignment::everywhere)) {
    for (Value operand : op->getOperands())
      need(operand, stage);
    return;
  }
  // A sum over stages, so that no stage needs the terms of others; all take part.
  for (int64_t s = 0; s < stages; ++s) {
    assignment.ops[s].insert(op);
    for (Value term : op->getOperands())
      if (assignment.ownerOf(term) == s)
        need(term, s);
  }
}

StageAssignment dist::assignStages(MicrobatchOps &ops, ArrayRef<int64_t> stageOf, int64_t stages,
                                   llvm::function_ref<ArrayRef<int64_t>(StringRef)> holders) {
  StageAssigner assigner(ops, stageOf, stages);
  assigner.findHomes();
  Block &block = ops.function.getBody().front();
  for (auto set : block.getOps<train::SetOp>())
    for (int64_t stage : holders(set.getVariable()))
      assigner.need(set, stage);
  // What one stage has is broadcast at the end.
  for (Value value : block.getTerminator()->getOperands()) {
    std::optional<int64_t> home = assigner.assignment.homeOf(value);
    for (int64_t stage = 0; stage < stages; ++stage)
      if (!home || *home == StageAssignment::everywhere || *home == stage)
        assigner.need(value, stage);
  }
  return std::move(assigner.assignment);
}
