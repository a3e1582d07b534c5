//===- OverlapCollectives.cpp - exec-overlap-collectives --------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "AsyncTokens.h"
#include "Exec/Passes.h"
#include "OverlapBuckets.h"
#include "OverlapLoops.h"
#include "ProgramWalk.h"

#include "mlir/IR/Dominance.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/CSE.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::exec;

namespace meshwright::exec {
#define GEN_PASS_DEF_EXECOVERLAPCOLLECTIVES
#include "Exec/Passes.h.inc"
} // namespace meshwright::exec

namespace {
struct ExecOverlapCollectives : exec::impl::ExecOverlapCollectivesBase<ExecOverlapCollectives> {
  using ExecOverlapCollectivesBase::ExecOverlapCollectivesBase;

  void runOnModule() override {
    for (auto program : getOperation().getOps<ProgramOp>())
      start(program);
  }

private:
  void start(ProgramOp program);
  void renumber(ProgramOp program);
};
} // namespace

static bool isPermutationInMemory(Operation *op) {
  auto collective = dyn_cast<MemoryCollectiveOpInterface>(op);
  return collective && collective.isPermutation();
}

/// Whether a permute sends on what another one brings. It stands where the part that it sends is
/// computed with; started as soon as the part is there, a device of a ring would hold those of all.
static bool sendsOn(Operation *op, const ProgramWalk &walk) {
  if (!isPermutationInMemory(op))
    return false;
  SmallVector<PartAccess> mine = walk.accesses(op);
  for (Operation *before = op->getPrevNode(); before; before = before->getPrevNode())
    for (const PartAccess &access : walk.accesses(before))
      if (access.writes && llvm::any_of(mine, [&](const PartAccess &own) {
            return !own.writes && own.conflicts(access);
          }))
        return isPermutationInMemory(before);
  return false;
}

/// Moves an asynchronous op up to where its operands are there, if no other communication
/// stands before it.
static void hoist(Operation *op) {
  ProgramWalk walk(op->getParentOfType<ProgramOp>());
  if (sendsOn(op, walk))
    return;
  SmallVector<PartAccess> mine = walk.accesses(op);
  SmallVector<Operation *> group{op}; // with the memory ops that it alone waits for, last first
  Operation *anchor = nullptr;
  for (Operation *before = op->getPrevNode(); before; before = before->getPrevNode()) {
    if (isPure(before)) {
      if (llvm::any_of(group, [&](Operation *member) {
            return llvm::is_contained(member->getOperands(), before->getResult(0));
          })) {
        if (isa<BufferOp>(before))
          break;
        group.push_back(before);
      }
      continue;
    }
    if (!computes(before) || before->getNumRegions() || isa<CallOp>(before))
      break;
    bool inTheWay = llvm::any_of(walk.accesses(before), [&](const PartAccess &a) {
      return llvm::any_of(mine, [&](const PartAccess &b) { return a.conflicts(b); });
    });
    if (inTheWay)
      break;
    anchor = before;
  }
  if (!anchor)
    return;
  for (Operation *member : llvm::reverse(group))
    if (!member->isBeforeInBlock(anchor))
      member->moveBefore(anchor);
}

void ExecOverlapCollectives::start(ProgramOp program) {
  int64_t number = freeAsyncToken(program);
  reduceSlots(program, minBytes, number);
  overlapLoops(program, minBytes, number);
  // Messages have buffers of their own, and go on by themselves.
  program.walk([&](MemoryCollectiveOpInterface op) {
    if (!asyncTokenOf(op) && op.getMessageChannel() == 0 && bytesOf(op) >= minBytes)
      setAsyncToken(op, number++);
  });
  SmallVector<Operation *> starts;
  llvm::DenseSet<Operation *> needed; // waits that stand where they must
  program.walk([&](Operation *op) {
    if (asyncTokenOf(op) && isa<MemoryCollectiveOpInterface>(op))
      starts.push_back(op);
    if (isa<WaitOp>(op))
      needed.insert(op);
  });
  for (Operation *op : starts)
    hoist(op);
  // Without the idle ones others may have less to run beside, or more.
  while (true) {
    llvm::DenseSet<int64_t> idle = insertWaits(program);
    if (idle.empty())
      break;
    program.walk([&](Operation *op) {
      auto wait = dyn_cast<WaitOp>(op);
      if (wait && (!needed.contains(op) || idle.contains(int64_t(wait.getAsyncToken()))))
        op->erase();
      else if (std::optional<int64_t> started = asyncTokenOf(op);
               started && idle.contains(*started))
        op->removeAttr(asyncTokenAttr);
    });
  }
  renumber(program);
  // Of slots that are there twice, or that nothing uses any more.
  if (program.walk([](WaitOp) { return WalkResult::interrupt(); }).wasInterrupted()) {
    IRRewriter rewriter(&getContext());
    DominanceInfo dominance(program);
    eliminateCommonSubExpressions(rewriter, dominance, program);
  }
}

/// Numbers count from 0 in the order of the program.
void ExecOverlapCollectives::renumber(ProgramOp program) {
  llvm::DenseMap<int64_t, int64_t> numbers;
  Builder builder(&getContext());
  program.walk([&](Operation *op) {
    if (std::optional<int64_t> number = asyncTokenOf(op))
      op->setAttr(asyncTokenAttr, builder.getI64IntegerAttr(
                                      numbers.try_emplace(*number, numbers.size()).first->second));
  });
  program.walk([&](WaitOp wait) { wait.setAsyncToken(numbers.at(int64_t(wait.getAsyncToken()))); });
}
