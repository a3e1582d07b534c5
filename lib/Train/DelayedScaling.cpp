//===- DelayedScaling.cpp - scales of products by what earlier steps observed -===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "DelayedScaling.h"
#include "FunctionUtils.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::train;

DelayedScaling::DelayedScaling(ModuleOp module, SymbolTable &symbols) : symbols(symbols) {
  module.walk([&](RepeatOp repeat) {
    auto layer = symbols.lookup<func::FuncOp>(repeat.getCallee());
    unsigned carries = repeat.getCarry().size(), slices = carries + repeat.getEach().size();
    for (auto [i, operand] : llvm::enumerate(repeat.getPassed()))
      passed[layer.getArgument(repeat.getCalleeArgument(i))].push_back({repeat, operand, i >= carries && i < slices});
  });
  module.walk([&](GetOp get) {
    uses[symbols.lookup(get.getVariable())] += llvm::range_size(get->getUses());
  });
}

bool DelayedScaling::take(Operation *product) {
  auto weight = dyn_cast<BlockArgument>(product->getOperand(1));
  auto layers = passed.find(weight);
  if (!weight || !weight.hasOneUse() || layers == passed.end())
    return false;
  return llvm::all_of(layers->second, [&](const Passed &one) {
    auto get = one.operand.getDefiningOp<GetOp>();
    auto variable = get ? symbols.lookup<VariableOp>(get.getVariable()) : VariableOp();
    return one.isSlice && variable && variable.getStacked() && uses.lookup(variable) == 1;
  });
}

Value DelayedScaling::amax(Operation *product, StringRef role) {
  auto weight = cast<BlockArgument>(product->getOperand(1));
  auto layer = cast<func::FuncOp>(weight.getOwner()->getParentOp());
  Location loc = nameLocation(role, weight.getLoc());
  ArrayRef<Passed> layers = passed.find(weight)->second;
  RepeatOp first = layers.front().repeat;
  unsigned at = first.getCalleeArgument(first.getCarry().size() + first.getEach().size());
  (void)layer.insertArgument(at, RankedTensorType::get({}, Float32Type::get(layer.getContext())), {}, loc);
  for (const Passed &one : layers) {
    auto get = one.operand.getDefiningOp<GetOp>();
    auto parameter = symbols.lookup<VariableOp>(get.getVariable());
    OpBuilder b(parameter->getContext());
    b.setInsertionPointAfter(parameter);
    VariableOp state = makeStateOfScaling(b, parameter, role, {});
    symbols.insert(state); // which gives it another name if this one is taken
    b.setInsertionPointAfter(get);
    RepeatOp repeat = one.repeat;
    repeat.getEachMutable().append(
        GetOp::create(b, nameLocation(state.getSymName(), get.getLoc()), state.getType(), state.getSymName()).getResult());
  }
  return layer.getArgument(at);
}
