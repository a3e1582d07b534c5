//===- Offload.cpp - exec-offload -------------------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Exec/Overlap/AsyncTokens.h"
#include "Exec/Passes.h"
#include "MoveToHost.h"

#include "mlir/IR/Dominance.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/CSE.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::exec;

namespace meshwright::exec {
#define GEN_PASS_DEF_EXECOFFLOAD
#include "Exec/Passes.h.inc"
} // namespace meshwright::exec

static ProgramOp programOf(Value root) {
  return root.getDefiningOp() ? root.getDefiningOp()->getParentOfType<ProgramOp>()
                              : dyn_cast<ProgramOp>(root.getParentBlock()->getParentOp());
}

static unsigned depthOf(Operation *op) {
  unsigned depth = 0;
  for (auto loop = op->getParentOfType<LoopOp>(); loop; loop = loop->getParentOfType<LoopOp>())
    ++depth;
  return depth;
}

static constexpr CopyEngine fromHost{MemorySpace::Host, false}, toHost{MemorySpace::Host, true};

namespace {
/// Stacks that are one: what callers give and callees have as argument.
struct Stack {
  SmallVector<Value> roots;
  llvm::SmallVector<LoopOp> writers, readers;
  bool fits = true;
};

struct ExecOffload : exec::impl::ExecOffloadBase<ExecOffload> {
  using ExecOffloadBase::ExecOffloadBase;

  void runOnModule() override {
    for (auto program : getOperation().getOps<ProgramOp>())
      numbers[program] = freeAsyncToken(program);
    if (optimizer && failed(moveStates()))
      return signalPassFailure();
    if (activations)
      moveStacks();
    for (auto program : getOperation().getOps<ProgramOp>()) {
      if (numbers[program] == 0)
        continue;
      separateUpdates(program);
      (void)insertWaits(program);
      IRRewriter rewriter(&getContext());
      DominanceInfo dominance(program);
      eliminateCommonSubExpressions(rewriter, dominance, program);
    }
    numbers.clear();
  }

private:
  LogicalResult moveStates();
  void moveStacks();
  void separateUpdates(ProgramOp program);
  Stack stackOf(Value root);
  void examine(Value root, Stack &stack);

  llvm::DenseMap<ProgramOp, int64_t> numbers; ///< the next of each program
};
} // namespace

//===--- the optimizer's states ---------------------------------------------===//

LogicalResult ExecOffload::moveStates() {
  for (auto program : getOperation().getOps<ProgramOp>()) {
    SmallVector<BufferOp> states;
    for (auto buffer : program.getBlock().getOps<BufferOp>())
      if (buffer.getVariable() && buffer.getCategory() == Category::Optimizer)
        states.push_back(buffer);
    for (BufferOp state : states) {
      HostUses uses(state.getMemory(), ProgramLiveness(program));
      if (!uses.calls.empty())
        return uses.calls.front()->getOwner()->emitOpError("is given the optimizer state '")
               << state.getName() << "', which can be on the host where programs update it themselves";
      moveToHost(state.getMemory(), uses, Kept::Always, Category::Optimizer, numbers[program]);
    }
  }
  return success();
}

/// What one variable's update has stored has left the device before the next one's states come, so
/// that they are in the same memory.
void ExecOffload::separateUpdates(ProgramOp program) {
  llvm::SmallSetVector<int64_t, 8> stored;
  for (Operation &op : llvm::make_early_inc_range(program.getBlock())) {
    auto isState = [](Value memory) {
      while (isa_and_nonnull<SlotOp, ViewOp, WindowOp>(memory.getDefiningOp()))
        memory = memory.getDefiningOp()->getOperand(0);
      auto buffer = memory.getDefiningOp<BufferOp>();
      return buffer && buffer.getVariable();
    };
    op.walk([&](CopyOp copy) {
      std::optional<int64_t> number = asyncTokenOf(copy);
      if (number && copyEngineOf(copy) == toHost && isState(copy.getTarget()))
        stored.insert(*number);
    });
    auto fetch = dyn_cast<CopyOp>(op);
    if (!fetch || !(copyEngineOf(fetch) == fromHost) || !isState(fetch.getSource()))
      continue;
    OpBuilder b(fetch);
    for (int64_t number : stored)
      WaitOp::create(b, fetch.getLoc(), number);
    stored.clear();
  }
}

//===--- what layers keep ---------------------------------------------------===//

/// Adds what the program of `root` does with it.
void ExecOffload::examine(Value root, Stack &stack) {
  ProgramOp program = programOf(root);
  auto buffer = root.getDefiningOp<BufferOp>();
  if (!program || (!buffer && !program.isPrivate()) ||
      (buffer && (buffer.isPersistent() || buffer.getCategory() != Category::Activation ||
                  program.isPrivate()))) {
    stack.fits = false;
    return;
  }
  HostUses uses(root, ProgramLiveness(program));
  stack.fits &= uses.whole.empty();
  for (auto &[loop, slots] : uses.loops) {
    int64_t bytes = bytesOf(slots.type());
    stack.fits &= bytes * int64_t(loop.getCount()) == bytesOf(root.getType()) &&
                  llvm::all_of(slots.slots, [&](SlotOp slot) {
                    return bytesOf(slot.getSlice().getType()) == bytes;
                  });
    (slots.fetches() ? stack.readers : stack.writers).push_back(loop);
  }
  for (OpOperand *use : uses.calls) {
    // Callees get it as it is, and as nothing but an argument.
    auto call = cast<CallOp>(use->getOwner());
    auto callee = SymbolTable::lookupNearestSymbolFrom<ProgramOp>(call, call.getCalleeAttr());
    unsigned number = use->getOperandNumber();
    stack.fits &= use->get() == root && number < callee.getBlock().getNumArguments();
    if (!stack.fits)
      return;
    BlockArgument argument = callee.getBlock().getArgument(number);
    if (!llvm::is_contained(stack.roots, argument))
      stack.roots.push_back(argument);
  }
  if (buffer)
    return;
  // As all of its callers.
  unsigned number = cast<BlockArgument>(root).getArgNumber();
  getOperation().walk([&](CallOp call) {
    if (call.getCallee() != program.getSymName())
      return;
    Value given = call->getOperand(number);
    if (!llvm::is_contained(stack.roots, given))
      stack.roots.push_back(given);
  });
}

Stack ExecOffload::stackOf(Value root) {
  Stack stack;
  stack.roots.push_back(root);
  for (size_t i = 0; i < stack.roots.size() && stack.fits; ++i)
    examine(stack.roots[i], stack);
  stack.fits &= !stack.writers.empty() && !stack.readers.empty();
  return stack;
}

void ExecOffload::moveStacks() {
  SmallVector<Stack> stacks;
  llvm::DenseSet<Value> seen;
  for (auto program : getOperation().getOps<ProgramOp>())
    for (auto buffer : program.getBlock().getOps<BufferOp>())
      if (buffer.getCategory() == Category::Activation && !seen.contains(buffer.getMemory())) {
        Stack stack = stackOf(buffer.getMemory());
        seen.insert(stack.roots.begin(), stack.roots.end());
        if (stack.fits)
          stacks.push_back(std::move(stack));
      }
  // Outer loops first: what lives inside of an iteration that fetches is computed from what it
  // fetches, and used soon.
  llvm::stable_sort(stacks, [](const Stack &a, const Stack &b) {
    return depthOf(a.writers.front()) < depthOf(b.writers.front());
  });
  llvm::DenseSet<Operation *> fetching;
  for (Stack &stack : stacks) {
    bool inside = llvm::any_of(stack.writers, [&](LoopOp loop) {
      for (auto outer = loop->getParentOfType<LoopOp>(); outer;
           outer = outer->getParentOfType<LoopOp>())
        if (fetching.contains(outer))
          return true;
      return false;
    });
    if (inside)
      continue;
    fetching.insert(stack.readers.begin(), stack.readers.end());
    for (Value root : stack.roots) {
      ProgramOp program = programOf(root);
      HostUses uses(root, ProgramLiveness(program));
      // What a reader writes over a stack that callers own is a result, such as the gradients that
      // a zero-bubble schedule's backward keeps for its weight task.
      bool scratch =
          root.getDefiningOp<BufferOp>() && stack.readers.size() == 1 && uses.calls.empty();
      moveToHost(root, uses, scratch ? Kept::Scratch : Kept::Handed, Category::Activation,
                 numbers[program]);
    }
  }
}
