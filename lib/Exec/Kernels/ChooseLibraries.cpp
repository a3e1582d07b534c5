//===- ChooseLibraries.cpp - exec-choose-libraries --------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Exec/Passes.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::exec;

namespace meshwright::exec {
#define GEN_PASS_DEF_EXECCHOOSELIBRARIES
#include "Exec/Passes.h.inc"
} // namespace meshwright::exec

namespace {
struct ExecChooseLibraries : exec::impl::ExecChooseLibrariesBase<ExecChooseLibraries> {
  void runOnModule() override {
    TargetAttr target = targetOf(getOperation());
    WalkResult walked = getOperation().walk([&](Operation *op) {
      if (!isa<train::AttentionOp, train::AttentionGradOp>(op))
        return WalkResult::advance();
      return WalkResult(target.getTarget().chooseLibrary(op, target.getParameters()));
    });
    if (walked.wasInterrupted())
      signalPassFailure();
  }
};
} // namespace
