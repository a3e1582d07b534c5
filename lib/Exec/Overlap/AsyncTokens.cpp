//===- AsyncTokens.cpp - asynchronous ops and waits for them -----------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "AsyncTokens.h"
#include "ProgramWalk.h"
#include "meshwright/Cost/TripCount.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::exec;

bool exec::computes(Operation *op) {
  return !isPure(op) && !queueOf(op) && !isa<WaitOp, LoopOp>(op);
}

void exec::setAsyncToken(Operation *op, int64_t number) {
  op->setAttr(asyncTokenAttr, Builder(op->getContext()).getI64IntegerAttr(number));
}

int64_t exec::freeAsyncToken(ProgramOp program) {
  int64_t number = 0;
  program.walk(
      [&](Operation *op) { number = std::max(number, asyncTokenOf(op).value_or(-1) + 1); });
  return number;
}

/// Whether `op`, beside which `started` runs, is inside a loop that seldom runs and `started` is not.
static bool runsSeldom(Operation *op, Operation *started) {
  for (auto loop = op->getParentOfType<LoopOp>(); loop; loop = loop->getParentOfType<LoopOp>())
    if (cost::tripCount(loop) == 0 && !loop->isAncestor(started))
      return true;
  return false;
}

llvm::DenseSet<int64_t> exec::insertWaits(ProgramOp program) {
  llvm::DenseSet<int64_t> idle, useful;
  program.walk([&](Operation *op) {
    if (std::optional<int64_t> number = asyncTokenOf(op); number && isa<MemoryCollectiveOpInterface>(op))
      idle.insert(*number);
  });
  ProgramWalk walk(program);
  auto put = [&](OpBuilder builder, Location loc, int64_t number) {
    walk.step(WaitOp::create(builder, loc, number));
  };
  walk.run([&](Operation *op) {
    SmallVector<int64_t> numbers;
    for (const PendingOp *other : walk.conflicts(op))
      if (!llvm::is_contained(numbers, other->number))
        numbers.push_back(other->number);
    for (int64_t number : numbers)
      put(OpBuilder(op), op->getLoc(), number);
    if (computes(op))
      for (const PendingOp &other : walk.pending)
        if (other.runs && !runsSeldom(op, other.op))
          useful.insert(other.number);
    walk.step(op);
    return true;
  });
  while (!walk.pending.empty())
    put(OpBuilder::atBlockEnd(&program.getBlock()), program.getLoc(), walk.pending[0].number);
  for (int64_t number : useful)
    idle.erase(number);
  return idle;
}
