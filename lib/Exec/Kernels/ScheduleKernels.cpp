//===- ScheduleKernels.cpp - exec-schedule-kernels --------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Schedule.h"

#include "Exec/Passes.h"
#include "meshwright/KernelLoops.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::exec;

namespace meshwright::exec {
#define GEN_PASS_DEF_EXECSCHEDULEKERNELS
#include "Exec/Passes.h.inc"
} // namespace meshwright::exec

LogicalResult exec::scheduleKernel(func::FuncOp kernel, const ScheduleLimits &limits) {
  kernel->removeAttr(chunksAttr);
  auto kernelLoops = codegen::buildKernelLoops(kernel, limits);
  if (failed(kernelLoops))
    return failure();
  Builder b(kernel.getContext());
  SmallVector<Attribute> templates, inplace;
  SmallVector<int64_t> iterations, chunks;
  for (const codegen::LoopNest &nest : kernelLoops->nests) {
    templates.push_back(b.getStringAttr(nest.getTemplate()));
    iterations.push_back(nest.iterations);
    chunks.push_back(nest.chunks);
  }
  for (auto [argument, result] : kernelLoops->inplace)
    inplace.push_back(b.getI64ArrayAttr({argument, result}));
  kernel->setAttr(templateAttr, b.getArrayAttr(templates));
  kernel->setAttr(iterationsAttr, b.getDenseI64ArrayAttr(iterations));
  kernel->setAttr(chunksAttr, b.getDenseI64ArrayAttr(chunks));
  kernel->setAttr(workspaceAttr, b.getI64IntegerAttr(kernelLoops->workspace));
  kernel->setAttr(inplaceAttr, b.getArrayAttr(inplace));
  return success();
}

namespace {
struct ExecScheduleKernels : exec::impl::ExecScheduleKernelsBase<ExecScheduleKernels> {
  using ExecScheduleKernelsBase::ExecScheduleKernelsBase;

  void runOnModule() override {
    ScheduleLimits options = targetOf(getOperation()).getTarget().getScheduleLimits();
    if (maxChunks)
      options.maxChunks = maxChunks;
    if (chunkWork)
      options.chunkWork = chunkWork;
    for (auto kernel : getOperation().getOps<func::FuncOp>())
      if (kernel->hasAttr(kernelAttr) && failed(scheduleKernel(kernel, options)))
        return signalPassFailure();
  }
};
} // namespace
