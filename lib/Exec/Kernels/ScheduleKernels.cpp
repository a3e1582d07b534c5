//===- ScheduleKernels.cpp - exec-schedule-kernels --------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Codegen/KernelPlan.h"
#include "Exec/Passes.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::exec;

namespace meshwright::exec {
#define GEN_PASS_DEF_EXECSCHEDULEKERNELS
#include "Exec/Passes.h.inc"
} // namespace meshwright::exec

namespace {
struct ExecScheduleKernels : exec::impl::ExecScheduleKernelsBase<ExecScheduleKernels> {
  using ExecScheduleKernelsBase::ExecScheduleKernelsBase;

  void runOnModule() override {
    ScheduleLimits options = targetOf(getOperation()).getTarget().getScheduleLimits();
    if (maxChunks)
      options.maxChunks = maxChunks;
    if (chunkWork)
      options.chunkWork = chunkWork;
    for (auto kernel : getOperation().getOps<func::FuncOp>()) {
      if (!kernel->hasAttr(kernelAttr))
        continue;
      kernel->removeAttr(chunksAttr);
      auto plan = codegen::planKernel(kernel, options);
      if (failed(plan))
        return signalPassFailure();
      write(kernel, *plan);
    }
  }

  static void write(func::FuncOp kernel, const codegen::KernelPlan &plan) {
    Builder b(kernel.getContext());
    SmallVector<Attribute> templates, inplace;
    SmallVector<int64_t> iterations, chunks;
    for (const codegen::Stage &stage : plan.stages) {
      templates.push_back(b.getStringAttr(stage.getTemplate()));
      iterations.push_back(stage.iterations);
      chunks.push_back(stage.chunks);
    }
    for (auto [argument, result] : plan.inplace)
      inplace.push_back(b.getI64ArrayAttr({argument, result}));
    kernel->setAttr(templateAttr, b.getArrayAttr(templates));
    kernel->setAttr(iterationsAttr, b.getDenseI64ArrayAttr(iterations));
    kernel->setAttr(chunksAttr, b.getDenseI64ArrayAttr(chunks));
    kernel->setAttr(workspaceAttr, b.getI64IntegerAttr(plan.workspace));
    kernel->setAttr(inplaceAttr, b.getArrayAttr(inplace));
  }
};
} // namespace
