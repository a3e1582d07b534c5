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

/// `op` and the ops that it needs, as far as they are `among` those that count.
static llvm::SetVector<Operation *> neededOf(Operation *op,
                                             llvm::function_ref<bool(Operation *)> among) {
  llvm::SetVector<Operation *> needed;
  needed.insert(op);
  for (size_t i = 0; i < needed.size(); ++i)
    for (Operation *maker : makers(needed[i]))
      if (among(maker))
        needed.insert(maker);
  return needed;
}

static bool mayMove(Operation *op) {
  return op->getNumRegions() == 0 && isMemoryEffectFree(op) &&
         !isa<dist::CollectiveOpInterface, IndexOp>(op) && !op->hasTrait<OpTrait::IsTerminator>();
}

/// The larger of the bytes that `op` takes and of those that it gives.
static int64_t bytesMoved(Operation *op) {
  int64_t taken = 0, given = 0;
  for (Value operand : op->getOperands())
    taken += bytesOf(operand.getType());
  for (Value result : op->getResults())
    given += bytesOf(result.getType());
  return std::max(taken, given);
}

/// Whether `op` is an exchange of rows that may be asynchronous.
static bool isExchangeOfRows(Operation *op, int64_t minBytes) {
  return op->hasAttr(dist::slotsAttr) && bytesMoved(op) >= minBytes;
}

/// Whether `op` is work of a library, of more than an operation for each number that it makes.
static bool isProduct(Operation *op) {
  auto cost = dyn_cast<train::CostOpInterface>(op);
  return cost && !isa<train::KernelOpInterface, LaunchOp>(op) &&
         cost.getFlops() > train::defaultFlops(op);
}

/// Moves `op` to before `target`, with what it needs of the ops from there on, unless a product or
/// something else that stays is among these.
static void moveBefore(Operation *op, Operation *target) {
  llvm::SetVector<Operation *> needed =
      neededOf(op, [&](Operation *of) { return !of->isBeforeInBlock(target); });
  if (!llvm::all_of(llvm::drop_begin(needed),
                    [](Operation *of) { return mayMove(of) && !isProduct(of); }))
    return;
  SmallVector<Operation *> ops = needed.takeVector();
  llvm::sort(ops, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
  for (Operation *of : ops)
    of->moveBefore(target);
}

/// Moves an exchange to before the products in front of it that it does not need, and small
/// exchanges of its group to before that, but past no other collective of at least `minBytes`.
static void bringForward(dist::CollectiveOpInterface exchange, int64_t minBytes) {
  DenseSet<Operation *> needed{exchange};
  SmallVector<Operation *> small; // the last first
  Operation *target = nullptr;
  for (Operation *op = exchange->getPrevNode(); op; op = op->getPrevNode()) {
    auto passing = dyn_cast<dist::CollectiveOpInterface>(op);
    if (passing ? bytesMoved(op) >= minBytes : !mayMove(op) && !isa<IndexOp>(op))
      break;
    bool isNeeded = llvm::any_of(op->getUsers(), [&](Operation *user) {
      Operation *at = op->getBlock()->findAncestorOpInBlock(*user);
      return at && needed.contains(at);
    });
    if (isNeeded && (!mayMove(op) || isProduct(op)))
      break;
    if (isNeeded)
      needed.insert(op);
    else if (isProduct(op))
      target = op;
    else if (passing && passing.getGroupAttr() == exchange.getGroupAttr())
      small.push_back(op);
  }
  if (!target)
    return;
  for (Operation *op : llvm::reverse(small))
    if (!op->isBeforeInBlock(target))
      moveBefore(op, target);
  moveBefore(exchange, target);
}

namespace {
/// What stands behind an exchange.
class Filling {
public:
  Filling(dist::CollectiveOpInterface collective, int64_t minBytes);
  /// Moves products that do not need what `collective` brings to before the first op that does, with
  /// what they are made of. Before them come other exchanges that need no product, so that all are
  /// under way: those of other parts of the rows.
  void run();

private:
  bool isOfGroup(Operation *op) const {
    auto other = dyn_cast<dist::CollectiveOpInterface>(op);
    return other && other.getGroupAttr() == group;
  }
  /// Ops of `others` that `op`, one of them, needs, and `op`.
  llvm::SetVector<Operation *> neededOf(Operation *op) const {
    return ::neededOf(op, [&](Operation *of) { return others.contains(of); });
  }
  /// Adds to `ops` an exchange and what it needs, if no product is among that.
  void send(Operation *exchange, DenseSet<Operation *> &ops) const {
    llvm::SetVector<Operation *> needed = neededOf(exchange);
    if (llvm::all_of(needed, [&](Operation *of) {
          return (mayMove(of) || isOfGroup(of)) && !isProduct(of);
        }))
      ops.insert(needed.begin(), needed.end());
  }

  bool isExchange(Operation *op) const { return isExchangeOfRows(op, minBytes); }
  /// Whether `op`, of the same group, hardly delays `collective` where it goes first. Rows' experts and
  /// weights are one number a row.
  bool isSmall(Operation *op) const {
    return !isExchange(op) && bytesMoved(op) < std::max(minBytes, bytesMoved(collective) / 16);
  }

  Operation *collective;
  dist::GroupAttr group;
  int64_t minBytes;
  Operation *first = nullptr; ///< that needs it; null if a product stands beside it
  // In the order of the block:
  llvm::SetVector<Operation *> others; ///< ops that do not
  llvm::SetVector<Operation *> later;  ///< those of them behind `first`
  llvm::SetVector<Operation *> early;  ///< those of them before all products
};
} // namespace

Filling::Filling(dist::CollectiveOpInterface collective, int64_t minBytes)
    : collective(collective), group(collective.getGroupAttr()), minBytes(minBytes) {
  DenseSet<Operation *> waiting{collective};
  bool isEarly = true;
  for (Operation *op = collective->getNextNode(); op; op = op->getNextNode()) {
    if (llvm::any_of(makers(op), [&](Operation *maker) { return waiting.contains(maker); })) {
      waiting.insert(op);
      if (!first && !isView(op))
        first = op;
      isEarly = isEarly && !isProduct(op);
      continue;
    }
    auto passing = dyn_cast<dist::CollectiveOpInterface>(op);
    if (first && passing && passing.isPermutation())
      break; // What a ring passes on is computed with where it stands.
    if (!first && isProduct(op))
      break; // It has something beside it.
    isEarly = isEarly && !isProduct(op);
    others.insert(op);
    if (first)
      later.insert(op);
    if (isEarly)
      early.insert(op);
  }
}

void Filling::run() {
  // Small exchanges go before all rows: they would wait for these. So whose experts rows are, and what
  // they weigh.
  DenseSet<Operation *> exchanges, small, products;
  for (Operation *op : early)
    if (isOfGroup(op) && isSmall(op))
      send(op, small);
  for (Operation *op : others)
    if (isExchange(op) && isOfGroup(op))
      send(op, exchanges);
  for (Operation *op : later) {
    bool isSent = isExchange(op) && isOfGroup(op) && !exchanges.contains(op);
    if (!isProduct(op) && !isSent)
      continue;
    llvm::SetVector<Operation *> needed = neededOf(op);
    if (llvm::any_of(needed, [&](Operation *of) { return isExchange(of) && exchanges.contains(of); }))
      for (Operation *of : needed)
        if (isOfGroup(of) && isSmall(of))
          send(of, small);
    // What is sent of a product follows it. What stands before `first` need not move, but the queue
    // of the group serves `collective` first, so what waits for it there has nothing to run beside.
    if (llvm::all_of(needed, [&](Operation *of) {
          return mayMove(of) || small.contains(of) || (isSent && of == op) ||
                 (!later.contains(of) && !isOfGroup(of));
        }))
      products.insert(needed.begin(), needed.end());
  }
  for (Operation *op : others)
    if (small.contains(op))
      op->moveBefore(collective);
  DenseSet<Operation *> moved = small;
  for (const DenseSet<Operation *> *ops : {&exchanges, &products})
    for (Operation *op : later)
      if (ops->contains(op) && moved.insert(op).second)
        op->moveBefore(first);
}

namespace {
struct ExecFillWaits : exec::impl::ExecFillWaitsBase<ExecFillWaits> {
  using ExecFillWaitsBase::ExecFillWaitsBase;

  void runOnModule() override {
    SmallVector<dist::CollectiveOpInterface> collectives;
    for (auto function : getOperation().getOps<func::FuncOp>())
      function.walk([&](dist::CollectiveOpInterface op) {
        if (isExchangeOfRows(op, minBytes))
          collectives.push_back(op);
      });
    // Products go beside the largest of those that they may stand beside, and the first of these.
    llvm::stable_sort(collectives,
                      [](Operation *a, Operation *b) { return bytesMoved(a) > bytesMoved(b); });
    for (dist::CollectiveOpInterface op : collectives)
      Filling(op, minBytes).run();
    // In the order in which they stand now: each goes behind those before it.
    for (auto function : getOperation().getOps<func::FuncOp>())
      function.walk([&](Block *block) {
        for (auto op : llvm::to_vector(block->getOps<dist::CollectiveOpInterface>()))
          if (isExchangeOfRows(op, minBytes))
            bringForward(op, minBytes);
      });
  }
};
} // namespace
