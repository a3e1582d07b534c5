//===- OverlapCollectives.cpp - exec-overlap-collectives --------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Exec/Passes.h"
#include "ProgramWalk.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::exec;

namespace meshwright::exec {
#define GEN_PASS_DEF_EXECOVERLAPCOLLECTIVES
#include "Exec/Passes.h.inc"
} // namespace meshwright::exec

/// Whether `op` takes time of the processors that compute.
static bool computes(Operation *op) {
  return !isPure(op) && !isa<CollectiveOpInterface, WaitOp, FinishSendsOp>(op);
}

/// Messages have buffers of their own, and go on by themselves.
static bool mayStart(CollectiveOpInterface op, int64_t minBytes) {
  int64_t bytes = 0;
  for (const SmallVector<Value> &list : {op.getSources(), op.getTargets()}) {
    int64_t sum = 0;
    for (Value memory : list)
      sum += bytesOf(memory.getType());
    bytes = std::max(bytes, sum);
  }
  return op.getMessageChannel() == 0 && bytes >= minBytes;
}

namespace {
struct ExecOverlapCollectives : exec::impl::ExecOverlapCollectivesBase<ExecOverlapCollectives> {
  using ExecOverlapCollectivesBase::ExecOverlapCollectivesBase;

  void runOnOperation() override {
    for (auto program : getOperation().getOps<ProgramOp>())
      start(program);
  }

private:
  void start(ProgramOp program);
  void renumber(ProgramOp program);
};
} // namespace

/// Puts a wait before each op that has to wait for a started collective, and at the
/// program's end. Returns the numbers of those during which nothing is computed.
static llvm::DenseSet<int64_t> placeWaits(ProgramOp program) {
  llvm::DenseSet<int64_t> idle, useful;
  program.walk([&](Operation *op) {
    if (std::optional<int64_t> number = startOf(op))
      idle.insert(*number);
  });
  ProgramWalk walk(program, /*inArena=*/false);
  auto put = [&](OpBuilder builder, Location loc, int64_t number) {
    walk.step(WaitOp::create(builder, loc, number));
  };
  walk.run([&](Operation *op) {
    SmallVector<int64_t> numbers;
    for (const PendingCollective *other : walk.conflicts(op))
      if (!llvm::is_contained(numbers, other->number))
        numbers.push_back(other->number);
    for (int64_t number : numbers)
      put(OpBuilder(op), op->getLoc(), number);
    if (computes(op))
      for (const PendingCollective &other : walk.pending)
        if (other.runs)
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

void ExecOverlapCollectives::start(ProgramOp program) {
  Builder builder(&getContext());
  int64_t number = 0;
  program.walk([&](CollectiveOpInterface op) {
    if (mayStart(op, minBytes))
      op->setAttr(startAttr, builder.getI64IntegerAttr(number++));
  });
  // Without the idle ones others may have less to run beside, or more.
  while (true) {
    llvm::DenseSet<int64_t> idle = placeWaits(program);
    if (idle.empty())
      break;
    program.walk([&](Operation *op) {
      if (isa<WaitOp>(op))
        op->erase();
      else if (std::optional<int64_t> started = startOf(op); started && idle.contains(*started))
        op->removeAttr(startAttr);
    });
  }
  renumber(program);
}

/// Numbers count from 0 in the order of the program.
void ExecOverlapCollectives::renumber(ProgramOp program) {
  llvm::DenseMap<int64_t, int64_t> numbers;
  Builder builder(&getContext());
  program.walk([&](Operation *op) {
    if (std::optional<int64_t> number = startOf(op))
      op->setAttr(startAttr, builder.getI64IntegerAttr(
                                 numbers.try_emplace(*number, numbers.size()).first->second));
  });
  program.walk([&](WaitOp wait) { wait.setStart(numbers.at(int64_t(wait.getStart()))); });
}
