//===- Offload.cpp - exec-offload -------------------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Exec/Overlap/AsyncTokens.h"
#include "Exec/Passes.h"
#include "MoveOffDevice.h"

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

/// Whether a loop is over layers.
static bool isOverLayers(LoopOp loop) {
  using train::Role;
  std::optional<Role> role = train::roleOf(loop);
  return role == Role::Forward || role == Role::Backward || role == Role::Weight;
}

namespace {
/// Memory that is one: what callers give and callees have as argument, and a variable in all programs.
struct Linked {
  SmallVector<Value> roots;
  llvm::SmallVector<LoopOp> writers, readers;
  bool fits = true;

  void add(Value root) {
    if (!llvm::is_contained(roots, root))
      roots.push_back(root);
  }
};

struct ExecOffload : exec::impl::ExecOffloadBase<ExecOffload> {
  using ExecOffloadBase::ExecOffloadBase;

  void runOnModule() override {
    for (auto program : getOperation().getOps<ProgramOp>())
      numbers[program] = freeAsyncToken(program);
    if (isOffload(optimizer) && failed(moveStates()))
      return signalPassFailure();
    if (isOffload(parameters))
      moveLayers();
    if (isOffload(activations))
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
  void moveLayers();
  void moveStacks();
  void separateUpdates(ProgramOp program);
  void link(Value root, ArrayRef<OpOperand *> calls, Linked &memory);
  Linked layersOf(BufferOp buffer);
  MemorySpace spaceFor(Category category);
  Linked stackOf(Value root);
  void examine(Value root, Linked &stack);

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
      OffloadUses uses(state.getMemory(), ProgramLiveness(program));
      if (!uses.calls.empty())
        return uses.calls.front()->getOwner()->emitOpError("is given the optimizer state '")
               << state.getName() << "', which can be on " << spaceRow(optimizer).text
               << " where programs update it themselves";
      moveOffDevice(state.getMemory(), optimizer, uses, Kept::Always, Category::Optimizer, numbers[program]);
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
      std::optional<CopyEngine> engine = copyEngineOf(copy);
      if (number && engine && engine->stores && isState(copy.getTarget()))
        stored.insert(*number);
    });
    auto fetch = dyn_cast<CopyOp>(op);
    std::optional<CopyEngine> engine = fetch ? copyEngineOf(fetch) : std::nullopt;
    if (!engine || engine->stores || !isState(fetch.getSource()))
      continue;
    OpBuilder b(fetch);
    for (int64_t number : stored)
      WaitOp::create(b, fetch.getLoc(), number);
    stored.clear();
  }
}

//===--- what callers and callees share -------------------------------------===//

/// Adds what is the same memory as `root` in other programs; of these `calls` get it.
void ExecOffload::link(Value root, ArrayRef<OpOperand *> calls, Linked &memory) {
  for (OpOperand *use : calls) {
    // Callees get it as it is, and as nothing but an argument.
    auto call = cast<CallOp>(use->getOwner());
    auto callee = SymbolTable::lookupNearestSymbolFrom<ProgramOp>(call, call.getCalleeAttr());
    unsigned number = use->getOperandNumber();
    memory.fits &= use->get() == root && number < callee.getBlock().getNumArguments();
    if (!memory.fits)
      return;
    memory.add(callee.getBlock().getArgument(number));
  }
  if (auto buffer = root.getDefiningOp<BufferOp>()) {
    if (!buffer.getVariable())
      return;
    for (auto program : getOperation().getOps<ProgramOp>())
      for (auto other : program.getBlock().getOps<BufferOp>())
        if (other.getVariableAttr() == buffer.getVariableAttr())
          memory.add(other);
    return;
  }
  // As all of its callers.
  unsigned number = cast<BlockArgument>(root).getArgNumber();
  getOperation().walk([&](CallOp call) {
    if (call.getCallee() == programOf(root).getSymName())
      memory.add(call->getOperand(number));
  });
}

//===--- parameters of layers and their gradients ---------------------------===//

/// Where parameters of layers or their gradients go. Kernels that sum up gradients of all layers need addresses.
MemorySpace ExecOffload::spaceFor(Category category) {
  bool fits = category == Category::Parameter || spaceRow(parameters).hasAddresses();
  return fits ? parameters : MemorySpace::Host;
}

/// All memory that is one with `buffer`, if loops over layers use that layer by layer.
Linked ExecOffload::layersOf(BufferOp buffer) {
  Linked layers;
  bool isOfLayers = false;
  layers.add(buffer);
  for (size_t i = 0; i < layers.roots.size() && layers.fits; ++i) {
    Value root = layers.roots[i];
    auto own = root.getDefiningOp<BufferOp>();
    // Of a program that is called, only what its callers give can be elsewhere; and a caller may
    // give part of something else.
    layers.fits &= own ? own.getCategory() == buffer.getCategory() && !programOf(root).isPrivate()
                       : isa<BlockArgument>(root);
    if (!layers.fits)
      break;
    OffloadUses uses(root, ProgramLiveness(programOf(root)));
    // A copy of all layers that is written in parts would keep the rest, of which a gradient has none yet.
    if (buffer.getCategory() == Category::Gradient)
      layers.fits &= llvm::none_of(uses.whole, [&](OpOperand *use) {
        return bytesOf(use->get().getType()) < bytesOf(root.getType());
      });
    // A copy of all layers would not have what a called program changes between its uses.
    bool inPlace = spaceRow(spaceFor(buffer.getCategory())).hasAddresses() && llvm::all_of(uses.whole, isInOrder);
    layers.fits &= uses.calls.empty() || uses.whole.empty() || inPlace;
    isOfLayers |= llvm::any_of(uses.loops, [&](auto &entry) { return isOverLayers(entry.first); });
    link(root, uses.calls, layers);
  }
  layers.fits &= isOfLayers;
  return layers;
}

void ExecOffload::moveLayers() {
  SmallVector<std::pair<Category, Linked>> all;
  llvm::DenseSet<Value> seen;
  for (auto program : getOperation().getOps<ProgramOp>())
    for (auto buffer : program.getBlock().getOps<BufferOp>()) {
      Category category = buffer.getCategory();
      bool isMoved = buffer.getVariable() ? category == Category::Parameter
                                          : category == Category::Gradient && !buffer.isPersistent();
      if (!isMoved || seen.contains(buffer.getMemory()))
        continue;
      Linked layers = layersOf(buffer);
      seen.insert(layers.roots.begin(), layers.roots.end());
      if (layers.fits)
        all.push_back({category, std::move(layers)});
    }
  for (auto &[category, layers] : all)
    for (Value root : layers.roots) {
      ProgramOp program = programOf(root);
      OffloadUses uses(root, ProgramLiveness(program));
      moveOffDevice(root, spaceFor(category), uses,
                    category == Category::Parameter ? Kept::Always : Kept::UntilUpdate, category,
                    numbers[program]);
    }
}

//===--- what layers keep ---------------------------------------------------===//

/// Adds what the program of `root` does with it.
void ExecOffload::examine(Value root, Linked &stack) {
  ProgramOp program = programOf(root);
  auto buffer = root.getDefiningOp<BufferOp>();
  if (!program || (!buffer && !program.isPrivate()) ||
      (buffer && (buffer.isPersistent() || buffer.getCategory() != Category::Activation ||
                  program.isPrivate()))) {
    stack.fits = false;
    return;
  }
  OffloadUses uses(root, ProgramLiveness(program));
  stack.fits &= uses.whole.empty();
  for (auto &[loop, slots] : uses.loops) {
    int64_t bytes = bytesOf(slots.type());
    stack.fits &= bytes * int64_t(loop.getCount()) == bytesOf(root.getType()) &&
                  llvm::all_of(slots.slots, [&](SlotOp slot) {
                    return bytesOf(slot.getSlice().getType()) == bytes;
                  });
    (slots.fetches() ? stack.readers : stack.writers).push_back(loop);
  }
  link(root, uses.calls, stack);
}

Linked ExecOffload::stackOf(Value root) {
  Linked stack;
  stack.roots.push_back(root);
  for (size_t i = 0; i < stack.roots.size() && stack.fits; ++i)
    examine(stack.roots[i], stack);
  stack.fits &= !stack.writers.empty() && !stack.readers.empty();
  return stack;
}

void ExecOffload::moveStacks() {
  SmallVector<Linked> stacks;
  llvm::DenseSet<Value> seen;
  for (auto program : getOperation().getOps<ProgramOp>())
    for (auto buffer : program.getBlock().getOps<BufferOp>())
      if (buffer.getCategory() == Category::Activation && !seen.contains(buffer.getMemory())) {
        Linked stack = stackOf(buffer.getMemory());
        seen.insert(stack.roots.begin(), stack.roots.end());
        if (stack.fits)
          stacks.push_back(std::move(stack));
      }
  // Outer loops first: what lives inside of an iteration that fetches is computed from what it
  // fetches, and used soon.
  llvm::stable_sort(stacks, [](const Linked &a, const Linked &b) {
    return depthOf(a.writers.front()) < depthOf(b.writers.front());
  });
  llvm::DenseSet<Operation *> fetching;
  for (Linked &stack : stacks) {
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
      OffloadUses uses(root, ProgramLiveness(program));
      // What a reader writes over a stack that callers own is a result, such as the gradients that
      // a zero-bubble schedule's backward keeps for its weight task.
      bool scratch =
          root.getDefiningOp<BufferOp>() && stack.readers.size() == 1 && uses.calls.empty();
      moveOffDevice(root, activations, uses, scratch ? Kept::Scratch : Kept::Handed,
                    Category::Activation, numbers[program]);
    }
  }
}
