//===- StageFunctions.cpp - a function for each part of a microbatch -----===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "StagePrograms.h"

#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::dist;

static std::string nameOf(const Part &part) {
  static constexpr StringRef names[] = {"forward.", "backward.", "weight."};
  return (names[unsigned(part.kind)] + Twine(part.chunk)).str();
}

namespace {
/// Clones the ops of one part, and free ops where they are read.
class FunctionMaker {
public:
  FunctionMaker(MicrobatchOps &ops, func::FuncOp function)
      : ops(ops), builder(OpBuilder::atBlockBegin(function.addEntryBlock())),
        block(function.getBody().front()) {}

  void clone(Operation &op) {
    for (Value operand : op.getOperands())
      bring(operand);
    builder.clone(op, map);
  }
  Value lookup(Value value) { return map.lookup(value); }

  SmallVector<Value> arguments;

private:
  void bring(Value value) {
    if (map.contains(value))
      return;
    if (Operation *op = value.getDefiningOp(); op && ops.isFree(op) && !ops.isOfState(value))
      return clone(*op);
    arguments.push_back(value);
    map.map(value, block.addArgument(value.getType(), value.getLoc()));
  }

  MicrobatchOps &ops;
  OpBuilder builder;
  Block &block;
  IRMapping map;
};
} // namespace

PartFunctions dist::makeFunctions(MicrobatchOps &ops, StringRef prefix) {
  std::map<Part, SmallVector<Operation *>> members;
  for (Operation &op : ops.block->without_terminator())
    if (auto part = ops.parts.find(&op); part != ops.parts.end())
      members[part->second].push_back(&op);
  PartFunctions made;
  auto module = ops.function->getParentOfType<ModuleOp>();
  SymbolTable symbols(module);
  OpBuilder builder(module.getContext());
  for (auto &entryOf : members) {
    const Part &part = entryOf.first;
    PartFunction &entry = made[part];
    entry.function = func::FuncOp::create(ops.function.getLoc(), (prefix + nameOf(part)).str(),
                                          builder.getFunctionType({}, {}));
    symbols.insert(entry.function);
    entry.function.setPrivate();
    FunctionMaker maker(ops, entry.function);
    SmallVector<Value> returned;
    for (Operation *op : entryOf.second) {
      maker.clone(*op);
      for (Value result : op->getResults())
        if (llvm::any_of(result.getUsers(), [&](Operation *user) {
              auto other = ops.parts.find(user);
              return other == ops.parts.end() || !(other->second == part);
            })) {
          entry.results.push_back(result);
          returned.push_back(maker.lookup(result));
        }
    }
    entry.arguments = std::move(maker.arguments);
    builder.setInsertionPointToEnd(&entry.function.getBody().front());
    func::ReturnOp::create(builder, entry.function.getLoc(), returned);
    entry.function.setType(builder.getFunctionType(entry.function.getBody().getArgumentTypes(),
                                                   TypeRange(ValueRange(returned))));
  }
  return made;
}
