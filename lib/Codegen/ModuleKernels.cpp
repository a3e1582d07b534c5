//===- ModuleKernels.cpp - all kernels of a module, scheduled ---------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Codegen/ModuleKernels.h"
#include "Dist/Programs.h"
#include "Exec/Exec.h"

#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::codegen;

namespace {
/// Names kernels of several programs: equal ones alike, so that loop nests which do the same
/// are compiled once, and different ones apart.
class KernelNames {
public:
  /// Gives `kernel` its name; whether it is the first one of this name.
  bool rename(func::FuncOp kernel) {
    std::string own = kernel.getName().str(), text;
    kernel.setSymName("kernel");
    llvm::raw_string_ostream os(text);
    kernel->print(os, OpPrintingFlags().printGenericOpForm().useLocalScope());
    std::string &name = names[text];
    bool isNew = name.empty();
    for (unsigned i = 1; name.empty(); ++i)
      if (std::string free = i == 1 ? own : own + "_" + std::to_string(i); taken.insert(free).second)
        name = free;
    kernel.setSymName(name);
    return isNew;
  }

private:
  llvm::StringMap<std::string> names; ///< by text
  llvm::StringSet<> taken;
};
} // namespace

FailureOr<ModuleKernels> ModuleKernels::build(ModuleOp module,
                                              const exec::ScheduleLimits &options) {
  ModuleKernels result;
  result.module = module.clone();
  KernelNames names;
  cost::FlopCounter flops;
  for (ModuleOp program : dist::programsOf(*result.module))
    result.rows.emplace_back(program, flops);
  for (ModuleOp program : dist::programsOf(*result.module)) {
    ScheduledKernels &kernels = result.programs.emplace_back();
    for (auto kernel : program.getOps<func::FuncOp>()) {
      if (!kernel->hasAttr("exec.kernel"))
        continue;
      std::string symbol = kernel.getName().str();
      bool isNew = names.rename(kernel);
      FailureOr<KernelLoops> kernelLoops = buildKernelLoops(kernel, options);
      if (failed(kernelLoops))
        return failure();
      KernelLoops &entry = kernels[symbol] = std::move(*kernelLoops);
      if (isNew)
        result.distinct.push_back(&entry);
    }
  }
  return result;
}

bool ModuleKernels::hasPrograms() const {
  return llvm::any_of(dist::programsOf(*module), [](ModuleOp program) {
    return !program.getOps<exec::ProgramOp>().empty();
  });
}
