//===- InPlaceAliases.cpp - results computed in the memory of arguments -----===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "InPlaceAliases.h"
#include "InsertCopies.h"

#include "Dist/Dist.h"

#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::exec;

namespace {
/// Follows a value back to the arguments in whose memory it can be.
class SourceFinder {
public:
  explicit SourceFinder(func::FuncOp function) : function(function) {}

  void visit(Value value);
  llvm::SmallSetVector<BlockArgument, 4> found;

private:
  void visitOperandsOf(OpResult result);

  func::FuncOp function;
  SymbolTableCollection symbols;
  llvm::DenseSet<Value> seen;
};
} // namespace

void SourceFinder::visit(Value value) {
  if (!seen.insert(value).second)
    return;
  auto argument = dyn_cast<BlockArgument>(value);
  if (!argument)
    return visitOperandsOf(cast<OpResult>(value));
  if (argument.getOwner() == &function.getBody().front())
    found.insert(argument);
  else if (auto loop = dyn_cast<LoopOp>(argument.getOwner()->getParentOp()))
    if (argument.getArgNumber() > 0)
      visit(loop->getOperand(argument.getArgNumber() - 1));
}

void SourceFinder::visitOperandsOf(OpResult result) {
  Operation *op = result.getOwner();
  unsigned number = result.getResultNumber();
  if (isView(op) && !isWindow(result)) {
    visit(op->getOperand(0));
  } else if (auto accumulating = dyn_cast<train::AccumulatingOpInterface>(op)) {
    for (OpOperand &init : accumulating.getInitMutable())
      visit(init.get());
  } else if (auto loop = dyn_cast<LoopOp>(op)) {
    visit(loop.getBlock().getTerminator()->getOperand(number));
    if (number < loop.getCarry().size())
      visit(loop.getCarry()[number]);
  } else if (auto product = dyn_cast<ProductOp>(op)) {
    if (product.getAddend() && number == 0)
      visit(product.getAddend());
  } else if (auto reduce = dyn_cast<dist::AllReduceOp>(op)) {
    visit(reduce.getXs()[number]);
  } else if (auto launch = dyn_cast<LaunchOp>(op)) {
    auto kernel = symbols.lookupNearestSymbolFrom<func::FuncOp>(op, launch.getKernelAttr());
    if (auto allowed = kernel->getAttrOfType<ArrayAttr>(inplaceAttr))
      for (Attribute attr : allowed) {
        auto pair = cast<ArrayAttr>(attr);
        if (cast<IntegerAttr>(pair[1]).getInt() == int64_t(number))
          visit(launch.getInputs()[cast<IntegerAttr>(pair[0]).getInt()]);
      }
  } else if (auto call = dyn_cast<func::CallOp>(op)) {
    ArrayRef<int64_t> aliases = inPlaceAliasesOf(call);
    if (!aliases.empty() && aliases[number] >= 0)
      visit(call->getOperand(aliases[number]));
  }
}

/// Whether nothing needs what operand `number` of `call` holds after the call.
static bool diesAt(func::CallOp call, unsigned number) {
  Value operand = call->getOperand(number), source = viewed(operand);
  if (isWindow(operand) || source.getParentBlock() != call->getBlock() ||
      isUsedAfter(source, call))
    return false;
  if (llvm::count_if(call->getOperands(), [&](Value v) { return viewed(v) == source; }) > 1)
    return false;
  if (isa_and_nonnull<train::GetOp>(source.getDefiningOp()))
    return false; // a variable keeps its value
  auto function = dyn_cast<func::FuncOp>(call->getParentOp());
  bool isInput = function && !function.isPrivate() && isa<BlockArgument>(source);
  return !isInput;
}

SmallVector<int64_t> meshwright::exec::findInPlaceAliases(func::FuncOp callee,
                                                          ArrayRef<func::CallOp> calls) {
  Block &body = callee.getBody().front();
  SmallVector<int64_t> aliases;
  for (Value result : body.getTerminator()->getOperands()) {
    SourceFinder finder(callee);
    finder.visit(result);
    int64_t alias = -1;
    for (BlockArgument argument : finder.found) {
      unsigned number = argument.getArgNumber();
      if (alias < 0 && argument.getType() == result.getType() &&
          !llvm::is_contained(aliases, int64_t(number)) &&
          llvm::all_of(calls, [&](func::CallOp call) { return diesAt(call, number); }))
        alias = number;
    }
    aliases.push_back(alias);
  }
  return aliases;
}
