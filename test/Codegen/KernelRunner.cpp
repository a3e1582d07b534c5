//===- KernelRunner.cpp - compiles a kernel and runs it in this process -----===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Codegen/CPU/Lowering.h"
#include "KernelRunner.h"

#include "Codegen/CPU/KernelEmitter.h"
#include "meshwright/Codegen.h"

#include "llvm/ExecutionEngine/Orc/ThreadSafeModule.h"
#include "llvm/IR/Module.h"
#include "llvm/Target/TargetMachine.h"

#include <thread>

using namespace mlir;
using namespace meshwright;
using namespace meshwright::test;

KernelRunner::KernelRunner(StringRef text, int64_t chunks, StringRef cpu)
    : KernelInput(text, codegen::cpu::scheduleLimits, chunks) {
  if (!kernelLoops)
    return;
  CodegenOptions codegen;
  codegen.cpu = cpu.str();
  std::string error;
  auto machine = createTargetMachine(codegen, error);
  auto llvmContext = std::make_unique<llvm::LLVMContext>();
  auto dialect = codegen::cpu::lower(*module, codegen);
  if (failed(dialect))
    return;
  auto lowered = translateToLLVM(**dialect, *llvmContext, *machine);
  if (failed(lowered))
    return;
  if (getenv("MW_DUMP"))
    (*lowered)->print(llvm::errs(), nullptr);
  llvm::orc::LLJITBuilder builder;
  llvm::orc::JITTargetMachineBuilder target(machine->getTargetTriple());
  target.setCPU(machine->getTargetCPU().str());
  target.getFeatures() = llvm::SubtargetFeatures(machine->getTargetFeatureString());
  builder.setJITTargetMachineBuilder(target);
  auto made2 = builder.create();
  if (!made2)
    return;
  jit = std::move(*made2);
  llvm::cantFail(
      jit->addIRModule(llvm::orc::ThreadSafeModule(std::move(*lowered), std::move(llvmContext))));
  for (unsigned i = 0; i < kernelLoops->nests.size(); ++i)
    nests.push_back(
        llvm::cantFail(jit->lookup(codegen::cpu::loopNestName(getFunction().getName(), i)))
            .toPtr<LoopNest>());
  workspace.emplace(kernelLoops->workspace / 4);
}

void KernelRunner::run(ArrayRef<float *> operands, Order order) {
  SmallVector<void *> buffers(operands.begin(), operands.end());
  buffers.push_back(workspace->data);
  for (auto [i, nest] : llvm::enumerate(kernelLoops->nests)) {
    // As mw_launch splits.
    int64_t size = llvm::divideCeil(nest.iterations, nest.chunks);
    auto chunk = [&, i = i, &nest = nest](int64_t c) {
      if (c * size < nest.iterations)
        nests[i](buffers.data(), c * size, std::min(nest.iterations, (c + 1) * size));
    };
    if (order == TwoThreads) {
      std::thread other([&, &nest = nest] {
        for (int64_t c = 1; c < nest.chunks; c += 2)
          chunk(c);
      });
      for (int64_t c = 0; c < nest.chunks; c += 2)
        chunk(c);
      other.join();
      continue;
    }
    for (int64_t c = 0; c < nest.chunks; ++c)
      chunk(order == Forward ? c : nest.chunks - 1 - c);
  }
}

std::vector<Memory> KernelRunner::run(const std::vector<Memory> &arguments, Order order) {
  std::vector<Memory> results = makeResults();
  SmallVector<float *> operands;
  for (const Memory &memory : arguments)
    operands.push_back(memory.data);
  for (const Memory &memory : results)
    operands.push_back(memory.data);
  run(operands, order);
  return results;
}
