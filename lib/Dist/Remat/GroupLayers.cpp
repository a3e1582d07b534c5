//===- GroupLayers.cpp - checkpoints every few layers ------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "LayerPairs.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::dist;

static RankedTensorType regrouped(Type type, ArrayRef<int64_t> leading) {
  auto tensor = cast<RankedTensorType>(type);
  SmallVector<int64_t> shape(leading);
  llvm::append_range(shape, tensor.getShape().drop_front());
  return RankedTensorType::get(shape, tensor.getElementType());
}

/// Layers' numbers 0, 1, ... as a tensor: a repeat inside another one counts anew.
static Value layerNumbers(train::RepeatOp forward) {
  auto module = forward->getParentOfType<ModuleOp>();
  auto number = RankedTensorType::get({}, IntegerType::get(forward.getContext(), 32));
  auto function = func::FuncOp::create(forward.getLoc(), "layer.number",
                                       FunctionType::get(forward.getContext(), number, number));
  function.setPrivate();
  OpBuilder builder = OpBuilder::atBlockBegin(function.addEntryBlock());
  func::ReturnOp::create(builder, forward.getLoc(), function.getArgument(0));
  SymbolTable(module).insert(function,
                             Block::iterator(forward->getParentOfType<func::FuncOp>()));
  builder.setInsertionPoint(forward);
  return train::RepeatOp::create(
             builder, forward.getLoc(),
             RankedTensorType::get({int64_t(forward.getCount())}, number.getElementType()),
             function.getSymName(), forward.getCount(), /*reverse=*/false, /*indexed=*/true,
             ValueRange(), ValueRange(), ValueRange())
      .getResult(0);
}

/// `repeat` with its number as one more slice.
static train::RepeatOp withoutIndex(train::RepeatOp repeat, Value numbers) {
  SymbolTableCollection symbols;
  func::FuncOp old = repeat.lookupCallee(symbols);
  func::FuncOp function = copyFunction(old, old.getSymName());
  Block &body = function.getBody().front();
  BlockArgument argument =
      body.insertArgument(repeat.getCalleeArgument(repeat.getCarry().size()) +
                              repeat.getEach().size(),
                          body.getArgument(0).getType(), repeat.getLoc());
  body.getArgument(0).replaceAllUsesWith(argument);
  body.eraseArgument(0);
  updateType(function);
  SmallVector<Value> each(repeat.getEach());
  each.push_back(numbers);
  auto now = rebuildRepeat(repeat, function, each, repeat.getShared(), /*indexed=*/false);
  repeat->replaceAllUsesWith(now);
  repeat.erase();
  eraseIfUnused(old);
  return now;
}

namespace {
class Grouper {
public:
  Grouper(LayerPair &pair, int64_t size)
      : pair(pair), size(size), groups(pair.count() / size), forward(pair.forward),
        backward(pair.backward), passed(forward.getStacks().size()) {
    for (auto [i, stack] : llvm::enumerate(forward.getStacks()))
      passed[i] = pair.isPassed(stack);
  }

  void run() {
    func::FuncOp forwardFunction = pair.forwardFunction(), plain = withoutHanded();
    SmallVector<Value> checkpoints = groupForward(plain);
    groupBackward(forwardFunction, checkpoints);
    backward.erase();
    forward.erase();
  }

private:
  /// A stack of all layers as one of groups.
  Value split(OpBuilder &builder, Value stack) {
    Value &value = splits[stack];
    if (!value)
      value = train::ReshapeOp::create(builder, stack.getLoc(),
                                       regrouped(stack.getType(), {groups, size}), stack);
    return value;
  }
  /// A function of one group, named after `of`, its body open at `builder`.
  func::FuncOp groupFunction(func::FuncOp of, OpBuilder &builder, TypeRange carry, ValueRange each,
                             TypeRange shared);
  Type slice(Value each) { return regrouped(each.getType(), {size}); }
  void finish(func::FuncOp function, OpBuilder &builder, ValueRange values);
  /// The repeat of groups in place of `old`.
  train::RepeatOp outer(train::RepeatOp old, func::FuncOp callee, ValueRange each,
                        ValueRange shared);

  func::FuncOp withoutHanded();
  SmallVector<Value> groupForward(func::FuncOp plain);
  void groupBackward(func::FuncOp forwardFunction, ArrayRef<Value> checkpoints);

  LayerPair &pair;
  int64_t size, groups;
  train::RepeatOp forward, backward;
  llvm::BitVector passed; ///< by stack of the forward
  DenseMap<Value, Value> splits;
};
} // namespace

func::FuncOp Grouper::groupFunction(func::FuncOp of, OpBuilder &builder, TypeRange carry,
                                    ValueRange each, TypeRange shared) {
  SmallVector<Type> types(carry);
  for (Value value : each)
    types.push_back(slice(value));
  llvm::append_range(types, shared);
  auto function = func::FuncOp::create(of.getLoc(), (of.getSymName() + ".group").str(),
                                       builder.getFunctionType(types, {}));
  function.setPrivate();
  function->setDiscardableAttrs(of->getDiscardableAttrDictionary());
  SymbolTable(of->getParentOfType<ModuleOp>())
      .insert(function, std::next(Block::iterator(of)));
  builder.setInsertionPointToStart(function.addEntryBlock());
  return function;
}

void Grouper::finish(func::FuncOp function, OpBuilder &builder, ValueRange values) {
  func::ReturnOp::create(builder, function.getLoc(), values);
  updateType(function);
}

train::RepeatOp Grouper::outer(train::RepeatOp old, func::FuncOp callee, ValueRange each,
                               ValueRange shared) {
  OpBuilder builder(old);
  SmallVector<Value> parts;
  for (Value value : each)
    parts.push_back(split(builder, value));
  SmallVector<Type> types(old.getCarry().getTypes());
  for (Type type : callee.getResultTypes().drop_front(types.size())) {
    SmallVector<int64_t> shape{groups};
    llvm::append_range(shape, cast<RankedTensorType>(type).getShape());
    types.push_back(RankedTensorType::get(shape, cast<RankedTensorType>(type).getElementType()));
  }
  auto repeat = train::RepeatOp::create(builder, old.getLoc(), types, callee.getSymName(), groups,
                                        old.getReverse(), /*indexed=*/false, old.getCarry(), parts,
                                        shared);
  repeat->setDiscardableAttrs(old->getDiscardableAttrDictionary());
  return repeat;
}

/// The forward of a layer without the residuals of its backward.
func::FuncOp Grouper::withoutHanded() {
  func::FuncOp function =
      copyFunction(pair.forwardFunction(), (pair.forwardFunction().getSymName() + ".again").str());
  Operation *end = function.getBody().front().getTerminator();
  unsigned carries = forward.getCarry().size();
  SmallVector<Value> returned;
  for (auto [i, value] : llvm::enumerate(end->getOperands()))
    if (i < carries || !passed.test(i - carries))
      returned.push_back(value);
  end->setOperands(returned);
  updateType(function);
  return function;
}

/// The forward repeat of groups; what each starts from.
SmallVector<Value> Grouper::groupForward(func::FuncOp plain) {
  unsigned carries = forward.getCarry().size(), slices = forward.getEach().size();
  OpBuilder builder(forward);
  func::FuncOp group = groupFunction(pair.forwardFunction(), builder, forward.getCarry().getTypes(),
                                     forward.getEach(), forward.getShared().getTypes());
  auto arguments = ValueRange(group.getArguments());
  SmallVector<Type> types(forward.getCarry().getTypes());
  for (Type type : plain.getResultTypes().drop_front(carries)) {
    SmallVector<int64_t> shape{size};
    llvm::append_range(shape, cast<RankedTensorType>(type).getShape());
    types.push_back(RankedTensorType::get(shape, cast<RankedTensorType>(type).getElementType()));
  }
  auto inner = train::RepeatOp::create(
      builder, forward.getLoc(), types, plain.getSymName(), size, forward.getReverse(),
      /*indexed=*/false, arguments.take_front(carries), arguments.slice(carries, slices),
      arguments.drop_front(carries + slices));
  inner->setDiscardableAttrs(forward->getDiscardableAttrDictionary());
  SmallVector<Value> returned(inner.getResults());
  llvm::append_range(returned, arguments.take_front(carries));
  finish(group, builder, returned);

  train::RepeatOp now = outer(forward, group, forward.getEach(), forward.getShared());
  builder.setInsertionPoint(forward);
  for (auto [old, carried] : llvm::zip(forward.getCarried(), now.getCarried()))
    old.replaceAllUsesWith(carried);
  unsigned next = 0;
  for (auto [i, stack] : llvm::enumerate(forward.getStacks()))
    if (!passed.test(i))
      stack.replaceAllUsesWith(train::ReshapeOp::create(builder, stack.getLoc(), stack.getType(),
                                                        now.getStacks()[next++]));
  return SmallVector<Value>(now.getStacks().drop_front(next));
}

void Grouper::groupBackward(func::FuncOp forwardFunction, ArrayRef<Value> checkpoints) {
  unsigned carries = backward.getCarry().size();
  // Slices: its own, those of the forward, where the group starts.
  llvm::SetVector<Value> each, shared;
  for (Value value : backward.getEach())
    if (!pair.isPassed(value))
      each.insert(value);
  each.insert(forward.getEach().begin(), forward.getEach().end());
  shared.insert(backward.getShared().begin(), backward.getShared().end());
  shared.insert(forward.getShared().begin(), forward.getShared().end());

  OpBuilder builder(backward);
  func::FuncOp group =
      groupFunction(pair.backwardFunction(), builder, backward.getCarry().getTypes(),
                    each.getArrayRef(), ValueRange(shared.getArrayRef()).getTypes());
  Block &body = group.getBody().front();
  IRMapping map;
  for (auto [i, value] : llvm::enumerate(each))
    map.map(value, body.getArgument(carries + i));
  for (auto [i, value] : llvm::enumerate(shared))
    map.map(value, body.getArgument(carries + each.size() + i));
  SmallVector<Value> starts;
  for (auto [i, checkpoint] : llvm::enumerate(checkpoints))
    starts.push_back(body.insertArgument(carries + each.size() + i,
                                         forward.getCarry().getTypes()[i], backward.getLoc()));
  auto mapped = [&](ValueRange values) {
    return llvm::map_to_vector(values, [&](Value v) { return map.lookup(v); });
  };

  SmallVector<Type> types(forward.getCarry().getTypes());
  for (Value stack : forward.getStacks())
    types.push_back(slice(stack));
  auto again = train::RepeatOp::create(
      builder, forward.getLoc(), types, forwardFunction.getSymName(), size, forward.getReverse(),
      /*indexed=*/false, starts, mapped(forward.getEach()), mapped(forward.getShared()));
  again->setDiscardableAttrs(forward->getDiscardableAttrDictionary());
  again->setAttr(train::recomputedAttr, builder.getUnitAttr());
  map.map(forward.getStacks(), again.getStacks());
  types.assign(backward.getCarry().getTypes().begin(), backward.getCarry().getTypes().end());
  for (Value stack : backward.getStacks())
    types.push_back(slice(stack));
  auto inner = train::RepeatOp::create(builder, backward.getLoc(), types, backward.getCallee(),
                                       size, backward.getReverse(), /*indexed=*/false,
                                       ValueRange(body.getArguments()).take_front(carries),
                                       mapped(backward.getEach()), mapped(backward.getShared()));
  inner->setDiscardableAttrs(backward->getDiscardableAttrDictionary());
  finish(group, builder, inner.getResults());

  SmallVector<Value> operands;
  builder.setInsertionPoint(backward);
  for (Value value : each)
    operands.push_back(value);
  // Checkpoints are by group already.
  for (Value checkpoint : checkpoints)
    splits[checkpoint] = checkpoint;
  llvm::append_range(operands, checkpoints);
  train::RepeatOp now = outer(backward, group, operands, shared.getArrayRef());
  for (auto [old, carried] : llvm::zip(backward.getCarried(), now.getCarried()))
    old.replaceAllUsesWith(carried);
  for (auto [old, stack] : llvm::zip(backward.getStacks(), now.getStacks()))
    old.replaceAllUsesWith(
        train::ReshapeOp::create(builder, old.getLoc(), old.getType(), stack));
  pair = {again, inner, pair.chunk};
}

void meshwright::dist::groupLayers(LayerPair &pair, int64_t size) {
  if (train::RepeatOp(pair.forward).getIndexed()) {
    Value numbers = layerNumbers(pair.forward);
    pair.backward = withoutIndex(pair.backward, numbers);
    pair.forward = withoutIndex(pair.forward, numbers);
  }
  Grouper(pair, size).run();
}
