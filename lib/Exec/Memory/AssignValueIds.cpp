//===- AssignValueIds.cpp - exec-assign-value-ids ---------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Exec/Passes.h"
#include "InsertCopies.h"

#include "Dist/Dist.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::exec;

namespace meshwright::exec {
#define GEN_PASS_DEF_EXECASSIGNVALUEIDS
#include "Exec/Passes.h.inc"
} // namespace meshwright::exec

/// Whether the op makes values of its own, rather than naming, moving or grouping others.
static bool computes(Operation *op) {
  return op->getNumResults() > 0 && !isView(op) &&
         !isa<LoopOp, CopyOp, IndexOp, train::GetOp, dist::ConcatOp, dist::OffsetOp, func::CallOp>(
             op);
}

namespace {
struct ExecAssignValueIds : exec::impl::ExecAssignValueIdsBase<ExecAssignValueIds> {
  void runOnModule() override {
    ModuleOp module = getOperation();
    Builder b(&getContext());
    int64_t count = 0;
    for (auto function : module.getOps<func::FuncOp>()) {
      if (function->hasAttr(kernelAttr))
        continue;
      function.walk([&](Operation *op) {
        if (op != function && computes(op))
          op->setAttr(valueIdAttr, b.getI64IntegerAttr(count++));
      });
    }
    module->removeAttr(tensorFormAttr);
    std::string text;
    llvm::raw_string_ostream os(text);
    OpPrintingFlags flags;
    flags.enableDebugInfo();
    if (module->getParentOp())
      flags.useLocalScope(); // Other programs may be changing meanwhile.
    module.print(os, flags);
    module->setAttr(tensorFormAttr, b.getStringAttr(text));
  }
};
} // namespace
