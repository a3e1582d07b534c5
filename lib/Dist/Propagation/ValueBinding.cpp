//===- ValueBinding.cpp - where values cross functions, variables and the outside ---===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Dist/Propagation/ValueBinding.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::dist;

/// The function that a call or repetition names, as an attribute; null for
/// other ops.
static FlatSymbolRefAttr calleeOf(Operation *op) {
  if (auto repeat = dyn_cast<train::RepeatOp>(op))
    return repeat.getCalleeAttr();
  if (auto call = dyn_cast<func::CallOp>(op))
    return call.getCalleeAttr();
  return {};
}

static void setCallee(Operation *op, FlatSymbolRefAttr callee) {
  if (auto repeat = dyn_cast<train::RepeatOp>(op))
    repeat.setCalleeAttr(callee);
  else
    cast<func::CallOp>(op).setCalleeAttr(callee);
}

/// Visits functions so that callees come before callers.
static LogicalResult order(func::FuncOp function, SymbolTable &symbols,
                           llvm::SetVector<Operation *> &done,
                           llvm::SetVector<Operation *> &active) {
  if (done.contains(function))
    return success();
  if (!active.insert(function))
    return function.emitOpError("calls itself, directly or through others");
  WalkResult result = function.walk([&](Operation *op) {
    FlatSymbolRefAttr name = calleeOf(op);
    if (!name)
      return WalkResult::advance();
    auto callee = symbols.lookup<func::FuncOp>(name.getValue());
    if (!callee || callee.isExternal()) {
      op->emitOpError("calls ") << name << ", which is not a function with a body";
      return WalkResult::interrupt();
    }
    return failed(order(callee, symbols, done, active)) ? WalkResult::interrupt()
                                                        : WalkResult::advance();
  });
  active.pop_back();
  done.insert(function);
  return failure(result.wasInterrupted());
}

static FailureOr<SmallVector<func::FuncOp>> orderedFunctions(ModuleOp module,
                                                             SymbolTable &symbols) {
  llvm::SetVector<Operation *> done, active;
  for (auto function : module.getOps<func::FuncOp>())
    if (!function.isExternal() && failed(order(function, symbols, done, active)))
      return failure();
  return llvm::map_to_vector(done, [](Operation *op) { return cast<func::FuncOp>(op); });
}

FailureOr<Structure> dist::structureOf(ModuleOp module) {
  Structure s;
  SymbolTable symbols(module);
  FailureOr<SmallVector<func::FuncOp>> functions = orderedFunctions(module, symbols);
  if (failed(functions))
    return failure();
  s.functions = std::move(*functions);

  llvm::SmallPtrSet<Operation *, 8> called;
  auto bind = [&](OpOperand &use, Value to, int leading) {
    s.bindings.push_back({&use, to, {}, leading});
  };
  for (func::FuncOp function : s.functions)
    function.walk([&](Operation *op) {
      func::FuncOp callee;
      if (FlatSymbolRefAttr name = calleeOf(op)) {
        callee = symbols.lookup<func::FuncOp>(name.getValue());
        called.insert(callee);
      }
      if (auto repeat = dyn_cast<train::RepeatOp>(op)) {
        size_t carried = repeat.getCarry().size(), each = carried + repeat.getEach().size();
        if (repeat.getIndexed())
          s.inputs.push_back(callee.getArgument(0));
        if (repeat.getTimes())
          bind(op->getOpOperands().back(), {}, 0);
        for (OpOperand &use : op->getOpOperands().take_front(repeat.getPassed().size())) {
          unsigned i = use.getOperandNumber();
          bind(use, callee.getArgument(repeat.getCalleeArgument(i)), i >= carried && i < each);
        }
        for (OpOperand &use : callee.getBody().front().getTerminator()->getOpOperands()) {
          unsigned i = use.getOperandNumber();
          bind(use, repeat.getResult(i), i < carried ? 0 : -1);
          if (i < carried)
            s.carried.push_back(
                {callee.getArgument(repeat.getCalleeArgument(i)), repeat.getResult(i)});
        }
      } else if (callee) {
        for (OpOperand &use : op->getOpOperands())
          bind(use, callee.getArgument(use.getOperandNumber()), 0);
        for (OpOperand &use : callee.getBody().front().getTerminator()->getOpOperands())
          bind(use, op->getResult(use.getOperandNumber()), 0);
      } else if (auto set = dyn_cast<train::SetOp>(op)) {
        s.bindings.push_back(
            {&set.getValueMutable(), {}, symbols.lookup<train::VariableOp>(set.getVariable()), 0});
      } else if (auto get = dyn_cast<train::GetOp>(op)) {
        s.reads.push_back({get, symbols.lookup<train::VariableOp>(get.getVariable())});
      } else if (auto constrain = dyn_cast<ConstrainOp>(op)) {
        bind(constrain.getXMutable(), constrain, 0);
      }
    });
  for (func::FuncOp function : s.functions) {
    if (called.contains(function))
      continue;
    llvm::append_range(s.inputs, function.getArguments());
    for (OpOperand &use : function.getBody().front().getTerminator()->getOpOperands())
      s.bindings.push_back({&use, {}, {}, 0});
  }
  return s;
}

LogicalResult dist::separateCallees(ModuleOp module, llvm::DenseMap<Operation *, func::FuncOp> *originals) {
  SymbolTable symbols(module);
  FailureOr<SmallVector<func::FuncOp>> functions = orderedFunctions(module, symbols);
  if (failed(functions))
    return failure();
  // Callers first: a copy's own calls are separated when its turn comes.
  llvm::SmallPtrSet<Operation *, 8> claimed;
  SmallVector<func::FuncOp> work(llvm::reverse(*functions));
  for (size_t i = 0; i < work.size(); ++i)
    work[i].walk([&](Operation *op) {
      FlatSymbolRefAttr name = calleeOf(op);
      if (!name)
        return;
      auto callee = symbols.lookup<func::FuncOp>(name.getValue());
      if (claimed.insert(callee).second)
        return;
      func::FuncOp copy = callee.clone();
      copy.setPrivate();
      symbols.insert(copy, std::next(Block::iterator(callee)));
      setCallee(op, FlatSymbolRefAttr::get(copy));
      claimed.insert(copy);
      if (originals) {
        func::FuncOp original = originals->lookup(callee);
        originals->try_emplace(copy, original ? original : callee);
      }
      work.push_back(copy);
    });
  return success();
}

/// Equal but for the name.
static bool equal(func::FuncOp a, func::FuncOp b) {
  return a.getFunctionType() == b.getFunctionType() && train::roleOf(a) == train::roleOf(b) &&
         a.getAllArgAttrs() == b.getAllArgAttrs() &&
         a.getAllResultAttrs() == b.getAllResultAttrs() &&
         OperationEquivalence::isRegionEquivalentTo(&a.getBody(), &b.getBody(),
                                                    OperationEquivalence::IgnoreLocations);
}

LogicalResult dist::mergeEqualCallees(ModuleOp module) {
  SymbolTable symbols(module);
  FailureOr<SmallVector<func::FuncOp>> functions = orderedFunctions(module, symbols);
  if (failed(functions))
    return failure();
  llvm::MapVector<Operation *, SmallVector<Operation *>> calls;
  for (func::FuncOp function : *functions)
    function.walk([&](Operation *op) {
      if (FlatSymbolRefAttr name = calleeOf(op))
        calls[symbols.lookup(name.getValue())].push_back(op);
    });
  // Callees first, so that what they call has one name already. A public one
  // stays, else the one with the shorter name, the original.
  SmallVector<func::FuncOp> kept;
  for (func::FuncOp function : *functions) {
    auto same = llvm::find_if(kept, [&](func::FuncOp other) { return equal(other, function); });
    if (same == kept.end() || (same->isPublic() && function.isPublic()) ||
        calls[function].empty() || calls[*same].empty()) {
      kept.push_back(function);
      continue;
    }
    func::FuncOp stays = *same, goes = function;
    bool shorter = goes.getSymName().size() < stays.getSymName().size();
    if (goes.isPublic() || (shorter && stays.isPrivate())) {
      std::swap(stays, goes);
      *same = stays;
    }
    for (Operation *op : calls[goes])
      setCallee(op, FlatSymbolRefAttr::get(stays));
    llvm::append_range(calls[stays], calls[goes]);
    SmallVector<Operation *> inside;
    goes.walk([&](Operation *op) {
      if (calleeOf(op))
        inside.push_back(op);
    });
    for (auto &[callee, ops] : calls)
      llvm::erase_if(ops, [&](Operation *op) { return llvm::is_contained(inside, op); });
    symbols.erase(goes);
  }
  return success();
}

std::string dist::describe(Value value) {
  std::string text;
  llvm::raw_string_ostream os(text);
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    auto function = dyn_cast<func::FuncOp>(argument.getOwner()->getParentOp());
    os << "argument ";
    if (StringRef name = train::inputName(argument); !name.empty())
      os << "'" << name << "'";
    else
      os << argument.getArgNumber();
    if (function)
      os << " of @" << function.getSymName();
    return text;
  }
  Operation *op = value.getDefiningOp();
  if (auto get = dyn_cast<train::GetOp>(op))
    return ("@" + get.getVariable()).str();
  os << "result " << cast<OpResult>(value).getResultNumber() << " of " << op->getName();
  if (FlatSymbolRefAttr callee = calleeOf(op))
    os << " " << callee;
  if (auto function = op->getParentOfType<func::FuncOp>())
    os << " in @" << function.getSymName();
  return text;
}
