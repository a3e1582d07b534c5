//===- LayerPairs.cpp - repeated layers and their backwards ------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "LayerPairs.h"

#include "meshwright/Cost/TripCount.h"

#include "meshwright/Remat.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::dist;

static func::FuncOp layerFunctionOf(train::RepeatOp repeat) {
  SymbolTableCollection symbols;
  return repeat.lookupCallee(symbols);
}

func::FuncOp LayerPair::forwardFunction() const { return layerFunctionOf(forward); }
func::FuncOp LayerPair::backwardFunction() const { return layerFunctionOf(backward); }

bool LayerPair::isPassed(Value stack) const {
  Operation *reader = train::RepeatOp(backward);
  OperandRange each = train::RepeatOp(backward).getEach();
  return stack.getDefiningOp() == train::RepeatOp(forward) && !stack.use_empty() &&
         llvm::is_contained(train::RepeatOp(forward).getStacks(), stack) &&
         llvm::all_of(stack.getUses(), [&](OpOperand &use) {
           return use.getOwner() == reader &&
                  use.getOperandNumber() >= each.getBeginOperandIndex() &&
                  use.getOperandNumber() < each.getBeginOperandIndex() + each.size();
         });
}

int64_t meshwright::dist::chunkCount(ModuleOp module) {
  int64_t last = 0;
  module.walk(
      [&](train::RepeatOp repeat) { last = std::max(last, train::chunkOf(repeat).value_or(0)); });
  return last + 1;
}

SmallVector<LayerPair> meshwright::dist::findLayerPairs(ModuleOp module) {
  SmallVector<LayerPair> pairs;
  module.walk([&](train::RepeatOp backward) {
    if (train::roleOf(backward) != train::Role::Backward)
      return;
    llvm::SetVector<Operation *> forwards;
    for (Value value : backward.getEach())
      if (auto forward = value.getDefiningOp<train::RepeatOp>())
        if (train::roleOf(forward) == train::Role::Forward &&
            forward.getCount() == backward.getCount() &&
            forward.getIndexed() == backward.getIndexed() &&
            LayerPair{forward, backward}.isPassed(value))
          forwards.insert(forward);
    if (forwards.size() == 1)
      pairs.push_back({cast<train::RepeatOp>(forwards.front()), backward,
                       train::chunkOf(backward).value_or(0)});
  });
  return pairs;
}

//===--- costs --------------------------------------------------------------===//

double meshwright::dist::costOfOp(Operation *op, const cost::Device &device) {
  if (auto repeat = dyn_cast<train::RepeatOp>(op))
    return cost::tripCount(repeat) * costOfFunction(layerFunctionOf(repeat), device);
  if (!isMemoryEffectFree(op))
    return anyPrice;
  if (auto collective = dyn_cast<CollectiveOpInterface>(op)) {
    GroupAttr group = collective.getGroupAttr();
    Mesh mesh = SymbolTable::lookupNearestSymbolFrom<MeshOp>(op, group.getMesh()).getMesh();
    return device.flopsPerByteSent() * double(collective.getSentBytes(mesh.size(group.on(mesh))));
  }
  auto cost = dyn_cast<train::CostOpInterface>(op);
  return cost ? cost.getFlops() : 0;
}

double meshwright::dist::costOfFunction(func::FuncOp function, const cost::Device &device) {
  double cost = 0;
  for (Operation &op : function.getBody().front().without_terminator())
    cost += costOfOp(&op, device);
  return cost;
}

int64_t meshwright::dist::bytesOf(Type type) {
  auto tensor = cast<RankedTensorType>(type);
  return tensor.getNumElements() * llvm::divideCeil(tensor.getElementTypeBitWidth(), 8);
}

/// Whether the memory of `value` stays whatever the backward reads.
static bool isThereAnyway(Value value) {
  while (auto reshape = value.getDefiningOp<train::ReshapeOp>())
    value = reshape.getX();
  return isa<BlockArgument>(value) || value.getDefiningOp<train::GetOp>();
}

LayerGraph::LayerGraph(const LayerPair &pair, const cost::Device &device) {
  train::RepeatOp forward = pair.forward, backward = pair.backward;
  Block &body = pair.forwardFunction().getBody().front();
  unsigned carries = forward.getCarry().size(), firstEach = forward.getCalleeArgument(carries);
  auto add = [&](Value value, int op, bool free) {
    values[value] = graph.values.size();
    graph.values.push_back({bytesOf(value.getType()), op, free, false});
  };
  for (BlockArgument argument : body.getArguments()) {
    unsigned number = argument.getArgNumber();
    bool isIndex = forward.getIndexed() && number == 0;
    if (!isIndex && number < firstEach)
      carryBytes += bytesOf(argument.getType());
    Value outside =
        number >= firstEach ? forward->getOperand(number - forward.getCalleeArgument(0)) : Value();
    add(argument, -1,
        isIndex || (outside && (isThereAnyway(outside) ||
                                llvm::is_contained(backward->getOperands(), outside))));
  }
  for (Operation &op : body.without_terminator()) {
    RecomputeGraph::Op node{costOfOp(&op, device), {}};
    for (Value operand : op.getOperands())
      node.operands.push_back(values[operand]);
    for (Value result : op.getResults())
      add(result, graph.ops.size(), false);
    graph.ops.push_back(node);
    ops.push_back(&op);
  }
  for (auto [stack, value] : llvm::zip(
           forward.getStacks(), body.getTerminator()->getOperands().drop_front(carries)))
    if (pair.isPassed(stack)) {
      graph.values[values[value]].needed = true;
      residualBytes += bytesOf(value.getType());
    }
}

//===--- functions ----------------------------------------------------------===//

func::FuncOp meshwright::dist::copyFunction(func::FuncOp function, StringRef name) {
  func::FuncOp copy = function.clone();
  copy.setSymName(name);
  SymbolTable(function->getParentOfType<ModuleOp>())
      .insert(copy, std::next(Block::iterator(function)));
  return copy;
}

void meshwright::dist::updateType(func::FuncOp function) {
  Block &body = function.getBody().front();
  function.setType(FunctionType::get(function.getContext(), body.getArgumentTypes(),
                                     body.getTerminator()->getOperandTypes()));
}

void meshwright::dist::eraseIfUnused(func::FuncOp function) {
  if (SymbolTable::symbolKnownUseEmpty(function, function->getParentOfType<ModuleOp>()))
    function.erase();
}

train::RepeatOp meshwright::dist::rebuildRepeat(train::RepeatOp old, func::FuncOp callee,
                                                ValueRange each, ValueRange shared, bool indexed) {
  unsigned carries = old.getCarry().size();
  SmallVector<Type> types(old.getCarry().getTypes());
  for (Type type : callee.getResultTypes().drop_front(carries)) {
    auto slice = cast<RankedTensorType>(type);
    SmallVector<int64_t> shape{int64_t(old.getCount())};
    llvm::append_range(shape, slice.getShape());
    types.push_back(RankedTensorType::get(shape, slice.getElementType()));
  }
  OpBuilder builder(old);
  auto repeat =
      train::RepeatOp::create(builder, old.getLoc(), types, callee.getSymName(), old.getCount(),
                              old.getReverse(), indexed, old.getCarry(), each, shared);
  repeat->setDiscardableAttrs(old->getDiscardableAttrDictionary());
  return repeat;
}
