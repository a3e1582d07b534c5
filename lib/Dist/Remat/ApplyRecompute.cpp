//===- ApplyRecompute.cpp - a layer with a choice of residuals ---------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "LayerPairs.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::dist;

namespace {
/// An operand of the backward repeat and the argument of its function.
struct Passed {
  Value operand;
  BlockArgument argument;
};

class Rewriter {
public:
  Rewriter(LayerPair &pair, const LayerGraph &layer, const RecomputeChoice &choice, StringRef why)
      : pair(pair), layer(layer), choice(choice), why(why), oldForward(pair.forward),
        oldBackward(pair.backward), from(pair.forwardFunction().getBody().front()) {}

  void run() {
    func::FuncOp forwardFunction = pair.forwardFunction(),
                 backwardFunction = pair.backwardFunction();
    rewriteForward();
    rewriteBackward();
    oldBackward.erase();
    oldForward.erase();
    takeName(pair.backward, backwardFunction);
    takeName(pair.forward, forwardFunction);
  }

private:
  void rewriteForward();
  void rewriteBackward();
  /// The new function has the old one's name where nothing else calls that.
  static void takeName(train::RepeatOp repeat, func::FuncOp old) {
    std::string name = old.getSymName().str();
    auto module = old->getParentOfType<ModuleOp>();
    eraseIfUnused(old);
    if (module.lookupSymbol(name))
      return;
    module.lookupSymbol<func::FuncOp>(repeat.getCallee()).setSymName(name);
    repeat.setCallee(name);
  }
  bool isKept(Value value) const { return choice.kept.test(layer.values.lookup(value)); }

  LayerPair &pair;
  const LayerGraph &layer;
  const RecomputeChoice &choice;
  StringRef why;
  train::RepeatOp oldForward, oldBackward;
  Block &from; ///< the old forward function's
  /// By value of the old forward function: the new repeat's stack of it.
  DenseMap<Value, Value> stackOf;
};
} // namespace

void Rewriter::rewriteForward() {
  func::FuncOp function =
      copyFunction(pair.forwardFunction(), pair.forwardFunction().getSymName());
  Operation *oldEnd = from.getTerminator();
  Operation *end = function.getBody().front().getTerminator();
  unsigned carries = oldForward.getCarry().size();
  IRMapping copies;
  copies.map(from.getArguments(), function.getArguments());
  for (auto [op, copy] : llvm::zip(from, function.getBody().front()))
    copies.map(op.getResults(), copy.getResults());

  SmallVector<Value> returned(end->getOperands().take_front(carries));
  SmallVector<Value> stays, stacked; // results that stay, values behind the stacks
  for (auto [stack, value] :
       llvm::zip(oldForward.getStacks(), oldEnd->getOperands().drop_front(carries))) {
    if (pair.isPassed(stack) && (!isKept(value) || llvm::is_contained(stacked, value)))
      continue;
    if (!pair.isPassed(stack))
      stays.push_back(stack);
    else
      stays.push_back({});
    stacked.push_back(value);
  }
  for (auto &[value, number] : layer.values) {
    auto argument = dyn_cast<BlockArgument>(value);
    bool outside = argument && argument.getArgNumber() >= oldForward.getCalleeArgument(carries);
    if (choice.kept.test(number) && !outside && !llvm::is_contained(stacked, value)) {
      stays.push_back({});
      stacked.push_back(value);
    }
  }
  for (Value value : stacked)
    returned.push_back(copies.lookup(value));
  end->setOperands(returned);
  updateType(function);
  pair.forward = rebuildRepeat(oldForward, function, oldForward.getEach(),
                               oldForward.getShared(), oldForward.getIndexed());
  // Nothing else is left in it that only the dropped results needed.
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(function.getBody().front())))
    if (isOpTriviallyDead(&op))
      op.erase();
  for (auto [old, now] : llvm::zip(oldForward.getCarried(), pair.forward.getCarried()))
    old.replaceAllUsesWith(now);
  for (auto [old, value, stack] : llvm::zip(stays, stacked, pair.forward.getStacks())) {
    stackOf[value] = stack;
    if (old)
      old.replaceAllUsesWith(stack);
  }
}

void Rewriter::rewriteBackward() {
  func::FuncOp function =
      copyFunction(pair.backwardFunction(), pair.backwardFunction().getSymName());
  Block &body = function.getBody().front();
  unsigned carries = oldBackward.getCarry().size();
  SmallVector<Passed> each, shared;
  for (auto [i, operand] : llvm::enumerate(oldBackward.getEach()))
    each.push_back({operand, body.getArgument(oldBackward.getCalleeArgument(carries + i))});
  for (auto [i, operand] : llvm::enumerate(oldBackward.getShared()))
    shared.push_back(
        {operand, body.getArgument(oldBackward.getCalleeArgument(carries + each.size() + i))});
  auto receive = [&](SmallVector<Passed> &list, Value operand, Type type) -> Value {
    for (Passed &passed : list)
      if (passed.operand == operand)
        return passed.argument;
    unsigned at = oldBackward.getCalleeArgument(carries + each.size() +
                                                (&list == &shared ? shared.size() : 0));
    list.push_back({operand, body.insertArgument(at, type, operand.getLoc())});
    return list.back().argument;
  };

  // Which argument of the backward was which value of the forward.
  SmallVector<std::pair<BlockArgument, Value>> replaced;
  Operation *oldEnd = from.getTerminator();
  for (auto [stack, value] : llvm::zip(
           oldForward.getStacks(),
           oldEnd->getOperands().drop_front(oldForward.getCarry().size())))
    for (Passed &passed : each)
      if (passed.operand == stack)
        replaced.push_back({passed.argument, value});
  llvm::erase_if(each, [&](Passed &passed) {
    return llvm::is_contained(llvm::make_first_range(replaced), passed.argument);
  });
  // Out of the way of what is inserted: erased once nothing reads them.
  SmallVector<Type> gone;
  IRMapping map;
  for (auto [argument, value] : replaced)
    gone.push_back(argument.getType());
  SmallVector<Value> placeholders;
  OpBuilder start = OpBuilder::atBlockBegin(&body);
  for (auto [argument, value] : replaced) {
    auto type = cast<RankedTensorType>(argument.getType());
    Value placeholder = UnrealizedConversionCastOp::create(start, argument.getLoc(),
                                                           TypeRange(type), ValueRange())
                            .getResult(0);
    argument.replaceAllUsesWith(placeholder);
    placeholders.push_back(placeholder);
  }
  SmallVector<unsigned> numbers;
  for (auto [argument, value] : replaced)
    numbers.push_back(argument.getArgNumber());
  llvm::sort(numbers, std::greater<>());
  for (unsigned number : numbers)
    body.eraseArgument(number);

  // What it reads of the forward: stacks, and what the forward was given.
  unsigned forwardCarries = oldForward.getCarry().size();
  unsigned firstEach = oldForward.getCalleeArgument(forwardCarries);
  unsigned firstShared = firstEach + oldForward.getEach().size();
  llvm::SetVector<Value> read;
  for (auto [argument, value] : replaced)
    read.insert(value);
  for (auto [i, op] : llvm::enumerate(layer.ops))
    if (choice.recomputed.test(i))
      read.insert(op->operand_begin(), op->operand_end());
  for (Value value : read) {
    auto argument = dyn_cast<BlockArgument>(value);
    unsigned number = argument ? argument.getArgNumber() : 0;
    if (argument && number >= firstEach) {
      Value outside = oldForward->getOperand(number - oldForward.getCalleeArgument(0));
      map.map(value, receive(number < firstShared ? each : shared, outside, value.getType()));
    } else if (argument && oldForward.getIndexed() && number == 0) {
      map.map(value, body.getArgument(0));
    } else if (isKept(value)) {
      map.map(value, receive(each, stackOf.at(value), value.getType()));
    }
  }
  for (auto [i, op] : llvm::enumerate(layer.ops))
    if (choice.recomputed.test(i))
      markRecomputed(start.clone(*op, map), why);
  for (auto [placeholder, entry] : llvm::zip(placeholders, replaced)) {
    placeholder.replaceAllUsesWith(map.lookup(entry.second));
    placeholder.getDefiningOp()->erase();
  }
  updateType(function);
  auto operandsOf = [](ArrayRef<Passed> list) {
    return llvm::map_to_vector(list, [](const Passed &passed) { return passed.operand; });
  };
  pair.backward = rebuildRepeat(oldBackward, function, operandsOf(each), operandsOf(shared),
                                oldBackward.getIndexed());
  oldBackward->replaceAllUsesWith(pair.backward);
}

void meshwright::dist::markRecomputed(Operation *op, StringRef why) {
  // What is counted: work of libraries. Equal ops are still merged otherwise.
  if (isa<train::ContractionOpInterface, train::RepeatOp>(op) ||
      (isa<train::CostOpInterface>(op) && !isa<train::KernelOpInterface>(op)))
    op->setAttr(train::recomputedAttr, why.empty()
                                           ? Attribute(UnitAttr::get(op->getContext()))
                                           : StringAttr::get(op->getContext(), why));
}

void meshwright::dist::applyChoice(LayerPair &pair, const LayerGraph &layer,
                                   const RecomputeChoice &choice, StringRef why) {
  Rewriter(pair, layer, choice, why).run();
}
