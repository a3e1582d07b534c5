//===- Freeze.cpp - parameters that steps do not change ---------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "ParameterPatterns.h"
#include "Train/Passes.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::train;

namespace meshwright::train {
#define GEN_PASS_DEF_TRAINFREEZE
#include "Train/Passes.h.inc"
} // namespace meshwright::train

static constexpr StringLiteral freezeFlag = "--freeze";

static bool isFrozen(VariableOp variable) { return variable->hasAttr(frozenAttr); }

/// Whether gradients would change it, if it is not frozen.
static bool isTrained(VariableOp variable) {
  return variable.isParameter() && !isFrozen(variable) && !variable->hasAttr(balanceRateAttr) &&
         isa<FloatType>(variable.getTensorType().getElementType());
}

namespace {
struct TrainFreeze : train::impl::TrainFreezeBase<TrainFreeze> {
  using TrainFreezeBase::TrainFreezeBase;

  void runOnModule() override {
    ModuleOp module = getOperation();
    for (const std::string &pattern : patterns.getValue().patterns) {
      FailureOr<SmallVector<VariableOp>> matching = parametersMatching(module, pattern, freezeFlag);
      if (failed(matching) || (matching->empty() && failed(emitNoMatch(module, pattern, freezeFlag))))
        return signalPassFailure();
      if (llvm::all_of(*matching, isFrozen)) {
        emitPatternError(module, pattern, freezeFlag)
            << "matches only parameters that are frozen already; leave it out";
        return signalPassFailure();
      }
      for (VariableOp variable : *matching)
        variable->setAttr(frozenAttr, UnitAttr::get(&getContext()));
    }
    if (llvm::any_of(module.getOps<VariableOp>(), isTrained))
      return;
    module.emitError(freezeFlag) << ": '" << optionText(patterns.getValue())
                           << "' leaves no parameter to train; name fewer";
    signalPassFailure();
  }
};
} // namespace
