//===- Lowering.cpp - exec module to LLVM dialect ---------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Codegen/CPU/Lowering.h"
#include "Codegen/CPU/KernelEmitter.h"
#include "Codegen/CPU/ProgramEmitter.h"
#include "Codegen/HostCode.h"
#include "Codegen/VectorMath.h"

#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/Target/TargetMachine.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::codegen;

static cpu::VectorTarget vectorsOf(llvm::TargetMachine &machine) {
  cpu::VectorTarget target{vectorLanes(machine)};
  if (!machine.getTargetTriple().isX86())
    return target;
  auto *subtarget = machine.getMCSubtargetInfo();
  target.convertsF16 = subtarget->checkFeatures("+f16c");
  target.convertsBF16 = target.lanes == 16 && subtarget->checkFeatures("+avx512bf16");
  return target;
}

FailureOr<OwningOpRef<ModuleOp>> cpu::lower(ModuleOp module, const CodegenOptions &options) {
  std::string error;
  auto machine = createTargetMachine(options, error);
  if (!machine)
    return module.emitError(error);
  cpu::VectorTarget target = vectorsOf(*machine);
  // Ops of these are created outside of passes, which would load them.
  module.getContext()
      ->loadDialect<LLVM::LLVMDialect, scf::SCFDialect, vector::VectorDialect,
                    cf::ControlFlowDialect>();
  auto kernels = ModuleKernels::build(module, scheduleLimits);
  if (failed(kernels))
    return failure();
  OwningOpRef<ModuleOp> result = ModuleOp::create(module.getLoc());
  for (const KernelLoops *kernelLoops : kernels->distinct)
    if (failed(cpu::emitKernel(*kernelLoops, *result, target)))
      return failure();
  if (failed(cpu::emitPrograms(*kernels, *result)))
    return failure();
  expandMath(*result, Exponential::Polynomial);
  if (failed(convertToLLVMDialect(*result)))
    return failure();
  emitText(*result, "plan", options.plan);
  emitText(*result, "program", options.program);
  emitText(*result, "no_decoder", options.noDecoder);
  return result;
}
