//===- Interpreter.cpp - walks functions ------------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "meshwright/Interpreter.h"

#include "Interpreter/World.h"

#include "mlir/Interfaces/CallInterfaces.h"
#include "llvm/ADT/ScopeExit.h"

#include <thread>

using namespace mlir;
using namespace meshwright;
using namespace meshwright::interp;

#include "Interpreter/InterpreterInterfaces.cpp.inc"

/// Checks a value against the type the IR gives it, and rounds it if wanted.
static LogicalResult settle(Operation *op, const Twine &what, Type type, Precision precision,
                            Tensor &value) {
  auto shaped = dyn_cast<RankedTensorType>(type);
  ArrayRef<int64_t> shape = shaped ? shaped.getShape() : ArrayRef<int64_t>();
  Type element = getElementTypeOrSelf(type);
  if (!value || value.shape() != shape || value.elementType() != element) {
    auto error = op->emitError() << what << " should be " << type << ", but the interpreter has ";
    if (value)
      error << value.type();
    else
      error << "no value";
    return error;
  }
  bool is8Bits = isa<FloatType>(element) && element.getIntOrFloatBitWidth() == 8;
  if (precision == Precision::Typed || (precision == Precision::Quantized && is8Bits))
    value.round();
  return success();
}

/// For each operation the values of its block that nothing later uses, so that
/// they can be dropped.
const RankContext::LastUses &RankContext::lastUsesIn(Block &block) {
  auto [at, isNew] = lastUses.try_emplace(&block);
  if (!isNew)
    return at->second;
  llvm::DenseSet<Value> seen;
  for (Operation &op : llvm::reverse(block))
    op.walk([&](Operation *inner) { // What regions use is used by the op.
      for (Value operand : inner->getOperands())
        if (operand.getParentBlock() == &block && seen.insert(operand).second)
          at->second[&op].push_back(operand);
    });
  return at->second;
}

LogicalResult RankContext::call(FunctionOpInterface function, ArrayRef<Tensor> arguments,
                                TensorList &results) {
  if (function.isExternal() || !function.getFunctionBody().hasOneBlock())
    return function.emitError("cannot be interpreted: it needs a body of one block");
  return run(function.getFunctionBody().front(), arguments, results);
}

LogicalResult RankContext::run(Block &block, ArrayRef<Tensor> arguments, TensorList &results) {
  Operation *owner = block.getParentOp();
  if (arguments.size() != block.getNumArguments())
    return owner->emitError() << "takes " << block.getNumArguments() << " arguments, found "
                              << arguments.size();
  llvm::DenseMap<Value, Tensor> values;
  for (auto [i, argument] : llvm::enumerate(arguments)) {
    Tensor value = argument;
    if (failed(settle(owner, "argument " + Twine(i), block.getArgument(i).getType(),
                      world.precision, value)))
      return failure();
    values[block.getArgument(i)] = value;
  }
  frames.push_back(&values);
  llvm::scope_exit leave([&] { frames.pop_back(); });
  auto lookup = [&](Value value) {
    for (auto *frame : llvm::reverse(frames))
      if (auto found = frame->find(value); found != frame->end())
        return found->second;
    return Tensor();
  };
  for (Operation &op : block) {
    TensorList operands, produced;
    for (Value operand : op.getOperands())
      operands.push_back(lookup(operand));
    if (op.hasTrait<OpTrait::IsTerminator>()) {
      results = std::move(operands);
      return success();
    }
    // Looked up at each use: a block that runs inside of `op` adds its own to the map.
    auto dropLastUses = [&] {
      const LastUses &uses = lastUsesIn(block);
      if (auto last = uses.find(&op); last != uses.end())
        for (Value value : last->second)
          values.erase(value);
    };
    // What regions of the op use stays until it has run.
    bool hasRegions = op.getNumRegions() > 0;
    if (!hasRegions)
      dropLastUses();
    if (failed(evaluate(&op, operands, produced)))
      return failure();
    if (hasRegions)
      dropLastUses();
    for (auto [result, value] : llvm::zip(op.getResults(), produced))
      values[result] = std::move(value);
  }
  return owner->emitError("has no return");
}

LogicalResult RankContext::evaluate(Operation *op, TensorList &operands, TensorList &results) {
  if (!world.observer)
    return compute(op, operands, results);
  TensorList kept = operands;
  if (failed(compute(op, operands, results)))
    return failure();
  return world.observer(*this, op, kept, results);
}

LogicalResult RankContext::compute(Operation *op, TensorList &operands, TensorList &results) {
  LogicalResult done = success();
  if (auto model = dyn_cast<InterpretableOpInterface>(op)) {
    done = model.interpret(operands, results, *this);
  } else if (isa<InterpretableCollectiveOpInterface>(op)) {
    done = meet(op, operands, results);
  } else if (auto callOp = dyn_cast<CallOpInterface>(op)) {
    auto callee =
        dyn_cast_or_null<FunctionOpInterface>(callOp.resolveCallableInTable(&symbolTables));
    if (!callee)
      return op->emitError("calls a function that the module does not have");
    done = call(callee, operands, results);
  } else {
    return op->emitError() << "the interpreter has no model of '" << op->getName()
                           << "'; attach one as lib/Interpreter/Model.h shows";
  }
  if (failed(done))
    return failure();
  if (results.size() != op->getNumResults())
    return op->emitError() << "has " << op->getNumResults() << " results, its model gave "
                           << results.size();
  for (auto [i, value] : llvm::enumerate(results))
    if (failed(
            settle(op, "result " + Twine(i), op->getResult(i).getType(), world.precision, value)))
      return failure();
  return success();
}

Interpreter::Interpreter(ModuleOp module, int64_t ranks, Precision precision)
    : world(std::make_unique<World>(module, ranks, precision)) {}
Interpreter::~Interpreter() = default;

int64_t Interpreter::ranks() const { return world->ranks; }
State &Interpreter::state(int64_t rank) { return world->states[rank]; }
void Interpreter::observe(Observer observer) { world->observer = std::move(observer); }

LogicalResult Interpreter::run(FunctionOpInterface function, ArrayRef<TensorList> arguments,
                               SmallVectorImpl<TensorList> &results) {
  return run(SmallVector<FunctionOpInterface>(ranks(), function), arguments, results);
}

LogicalResult Interpreter::run(ArrayRef<FunctionOpInterface> functions,
                               ArrayRef<TensorList> arguments,
                               SmallVectorImpl<TensorList> &results) {
  assert(int64_t(functions.size()) == ranks() && functions.size() == arguments.size() &&
         "one function and one list of arguments per rank");
  world->reset();
  results.assign(ranks(), {});
  auto runRank = [&](int64_t rank) {
    std::unique_lock<std::mutex> lock(world->mutex);
    RankContext context(*world, rank);
    LogicalResult done =
        world->failed ? failure() : context.call(functions[rank], arguments[rank], results[rank]);
    world->finish(done);
  };
  std::vector<std::thread> threads;
  for (int64_t rank = 1; rank < ranks(); ++rank)
    threads.emplace_back(runRank, rank);
  runRank(0);
  for (std::thread &thread : threads)
    thread.join();
  return success(!world->failed);
}
