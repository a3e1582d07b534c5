//===- Verify.cpp - closes floor 1 ------------------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "FunctionUtils.h"
#include "Train/Passes.h"

#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::train;

namespace meshwright::train {
#define GEN_PASS_DEF_TRAINVERIFY
#include "Train/Passes.h.inc"
} // namespace meshwright::train

/// The function called `name` with all inputs and outputs named.
static FailureOr<func::FuncOp> programNamed(ModuleOp module, StringRef name) {
  auto function = module.lookupSymbol<func::FuncOp>(name);
  if (!function)
    return module.emitError("has no program @") << name;
  for (unsigned i = 0; i < function.getNumArguments(); ++i)
    if (!function.getArgAttrOfType<StringAttr>(i, inputAttr))
      return function.emitError("argument ") << i << " has no " << inputAttr;
  for (unsigned i = 0; i < function.getNumResults(); ++i)
    if (!function.getResultAttrOfType<StringAttr>(i, outputAttr))
      return function.emitError("result ") << i << " has no " << outputAttr;
  return function;
}

/// Names of the variables that `function`, or what it calls, writes.
static void collectWrites(func::FuncOp function, llvm::StringSet<> &names,
                          SymbolTableCollection &symbols) {
  function.walk([&](Operation *op) {
    if (auto set = dyn_cast<SetOp>(op))
      names.insert(set.getVariable());
    else if (auto repeat = dyn_cast<RepeatOp>(op))
      collectWrites(repeat.lookupCallee(symbols), names, symbols);
  });
}

namespace {
struct TrainVerify : train::impl::TrainVerifyBase<TrainVerify> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    FailureOr<func::FuncOp> step = programNamed(module, "step"),
                            eval = programNamed(module, "eval");
    if (failed(step) || failed(eval))
      return signalPassFailure();
    SymbolTableCollection symbols;
    llvm::StringSet<> written, evalWrites;
    collectWrites(*step, written, symbols);
    collectWrites(*eval, evalWrites, symbols);
    for (auto variable : module.getOps<VariableOp>())
      if (!written.contains(variable.getSymName())) {
        variable.emitError("is never written by @step: does the loss depend on it?");
        return signalPassFailure();
      }
    if (!evalWrites.empty()) {
      eval->emitError("writes @") << evalWrites.begin()->getKey();
      return signalPassFailure();
    }
    WalkResult result = module.walk([&](Operation *op) {
      StringRef dialect = op->getDialect() ? op->getDialect()->getNamespace() : "";
      if (llvm::is_contained({"builtin", "func", "train"}, dialect))
        return WalkResult::advance();
      op->emitError("does not belong on floor 1");
      return WalkResult::interrupt();
    });
    if (result.wasInterrupted())
      signalPassFailure();
  }
};
} // namespace
