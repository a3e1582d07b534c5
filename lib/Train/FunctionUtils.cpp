//===- FunctionUtils.cpp - building functions from functions ----------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "FunctionUtils.h"

using namespace mlir;

namespace meshwright {

func::FuncOp train::createFunction(ModuleOp module, OpBuilder &builder, Location loc,
                                   StringRef name, TypeRange arguments, TypeRange results) {
  auto function = func::FuncOp::create(loc, name, builder.getFunctionType(arguments, results));
  SymbolTable(module).insert(function);
  function.setPrivate();
  builder.setInsertionPointToStart(function.addEntryBlock());
  return function;
}

static LogicalResult refuseTaken(Operation *taken, StringRef what) {
  if (taken)
    return taken->emitError("has the name that ") << what << " will have; rename it";
  return success();
}
LogicalResult train::checkNameIsFree(ModuleOp module, StringRef name, StringRef what) {
  return refuseTaken(module.lookupSymbol(name), what);
}
LogicalResult train::checkNameIsFree(const SymbolTable &symbols, StringRef name, StringRef what) {
  return refuseTaken(symbols.lookup(name), what);
}

void train::finishFunction(func::FuncOp function, OpBuilder &builder, ValueRange values) {
  func::ReturnOp::create(builder, function.getLoc(), values);
  function.setType(
      builder.getFunctionType(function.getBody().getArgumentTypes(), values.getTypes()));
}

SmallVector<Value> train::inlineBody(func::FuncOp function, OpBuilder &builder,
                                     ValueRange arguments) {
  IRMapping map;
  map.map(function.getArguments(), arguments);
  for (auto [from, to] : llvm::zip_equal(function.getArguments(), arguments))
    if (auto argument = dyn_cast_if_present<BlockArgument>(to))
      argument.setLoc(from.getLoc());
  Block &body = function.getBody().front();
  for (Operation &op : body.without_terminator())
    builder.clone(op, map);
  return llvm::map_to_vector(body.getTerminator()->getOperands(),
                             [&](Value value) { return map.lookupOrDefault(value); });
}

void train::copyArgumentAttrs(func::FuncOp from, func::FuncOp to) {
  for (unsigned i = 0; i < from.getNumArguments(); ++i) {
    if (DictionaryAttr attrs = function_interface_impl::getArgAttrDict(from, i))
      function_interface_impl::setArgAttrs(to, i, attrs);
    to.getArgument(i).setLoc(from.getArgument(i).getLoc());
  }
}

Location train::nameLocation(StringRef name, Location location) {
  return NameLoc::get(StringAttr::get(location.getContext(), name), location);
}

BlockArgument train::inputNamed(func::FuncOp function, StringRef name) {
  for (BlockArgument argument : function.getArguments())
    if (inputName(argument) == name)
      return argument;
  return {};
}

Value train::zeros(OpBuilder &builder, Location loc, Type type) {
  return FillOp::create(builder, loc, type, builder.getF64FloatAttr(0.0));
}

DenseSet<Operation *> train::routersIn(func::FuncOp layer) {
  DenseSet<Operation *> routers;
  DenseSet<Value> seen;
  SmallVector<Value> decided;
  layer.walk([&](TopKOp op) { decided.push_back(op.getX()); });
  while (!decided.empty()) {
    Value value = decided.pop_back_val();
    Operation *op = value.getDefiningOp();
    if (!op || !seen.insert(value).second)
      continue;
    if (isa<ContractionOpInterface>(op))
      routers.insert(op);
    else
      llvm::append_range(decided, op->getOperands());
  }
  return routers;
}

} // namespace meshwright
