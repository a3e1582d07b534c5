//===- Lowering.cpp - exec module to LLVM dialect to LLVM IR ----------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Codegen/CPU/KernelEmitter.h"
#include "Codegen/CPU/ProgramEmitter.h"
#include "Codegen/VectorMath.h"
#include "Dist/Programs.h"
#include "meshwright/Codegen.h"

#include "mlir/Conversion/Passes.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/TargetParser/Host.h"
#include "llvm/Transforms/Utils/ModuleUtils.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::codegen;

//===----------------------------------------------------------------------===//
// Target
//===----------------------------------------------------------------------===//

std::unique_ptr<llvm::TargetMachine> meshwright::createTargetMachine(const CodegenOptions &options,
                                                                     std::string &error) {
  llvm::InitializeNativeTarget();
  llvm::InitializeNativeTargetAsmPrinter();
  llvm::Triple triple(llvm::sys::getDefaultTargetTriple());
  const llvm::Target *target = llvm::TargetRegistry::lookupTarget(triple, error);
  if (!target)
    return nullptr;
  std::string cpu = options.cpu, features;
  if (cpu.empty()) {
    // A virtual machine may hide features of its processor: list what is there.
    cpu = llvm::sys::getHostCPUName().str();
    for (auto &[name, enabled] : llvm::sys::getHostCPUFeatures())
      features += (features.empty() ? "" : ",") + std::string(enabled ? "+" : "-") + name.str();
  }
  // Asked first: a machine made for an unknown processor prints complaints.
  std::unique_ptr<llvm::MCSubtargetInfo> any(target->createMCSubtargetInfo(triple, "", ""));
  if (any && !any->isCPUStringValid(cpu)) {
    error = "unknown processor '" + cpu + "' for " + triple.str() +
            "; `llc -mcpu=help` lists the names";
    return nullptr;
  }
  llvm::TargetOptions targetOptions;
  std::unique_ptr<llvm::TargetMachine> machine(
      target->createTargetMachine(triple, cpu, features, targetOptions, llvm::Reloc::PIC_,
                                  std::nullopt, llvm::CodeGenOptLevel::Default));
  return machine;
}

static cpu::VectorTarget vectorsOf(llvm::TargetMachine &machine) {
  auto *subtarget = machine.getMCSubtargetInfo();
  cpu::VectorTarget target{4};
  if (!machine.getTargetTriple().isX86())
    return target;
  bool wide = subtarget->checkFeatures("+avx512f,+avx512vl,+avx512dq,+avx512bw");
  target.lanes = wide ? 16 : subtarget->checkFeatures("+avx2,+fma") ? 8 : 4;
  target.convertsF16 = subtarget->checkFeatures("+f16c");
  target.convertsBF16 = wide && subtarget->checkFeatures("+avx512bf16");
  return target;
}

void meshwright::registerCodegen(DialectRegistry &registry) {
  registry
      .insert<LLVM::LLVMDialect, scf::SCFDialect, vector::VectorDialect, cf::ControlFlowDialect>();
  registerBuiltinDialectTranslation(registry);
  registerLLVMDialectTranslation(registry);
}

//===----------------------------------------------------------------------===//
// Lowering
//===----------------------------------------------------------------------===//

namespace {
/// Names kernels of several programs: equal ones alike, so that stages which do the same
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

static FailureOr<OwningOpRef<ModuleOp>> lower(ModuleOp module, const CodegenOptions &options,
                                              const cpu::VectorTarget &target) {
  // Ops of these are created outside of passes, which would load them.
  module.getContext()
      ->loadDialect<LLVM::LLVMDialect, scf::SCFDialect, vector::VectorDialect,
                    cf::ControlFlowDialect>();
  // Planning may rewrite kernels: work on a copy.
  OwningOpRef<ModuleOp> source = module.clone();
  OwningOpRef<ModuleOp> result = ModuleOp::create(module.getLoc());
  std::deque<llvm::StringMap<KernelPlan>> plans;
  KernelNames names;
  for (ModuleOp program : dist::programsOf(*source)) {
    auto &kernels = plans.emplace_back();
    for (auto kernel : llvm::make_early_inc_range(program.getOps<func::FuncOp>())) {
      if (!kernel->hasAttr("exec.kernel"))
        continue;
      normalizeKernel(kernel);
      std::string symbol = kernel.getName().str();
      bool isNew = names.rename(kernel);
      FailureOr<KernelPlan> plan = planKernel(kernel, ScheduleOptions::cpu());
      if (failed(plan) || (isNew && failed(cpu::emitKernel(*plan, *result, target))))
        return failure();
      kernels[symbol] = std::move(*plan);
    }
  }
  if (failed(cpu::emitPrograms(*source, *result, plans)))
    return failure();
  expandMath(*result);

  PassManager pm(module.getContext());
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createCSEPass());
  pm.addPass(createSCFToControlFlowPass());
  pm.addPass(createConvertVectorToLLVMPass());
  // Sines and cosines, only of small tables, end as calls of libm.
  pm.addPass(createConvertMathToLLVMPass());
  pm.addPass(createConvertControlFlowToLLVMPass());
  pm.addPass(createArithToLLVMConversionPass());
  pm.addPass(createConvertFuncToLLVMPass());
  pm.addPass(createReconcileUnrealizedCastsPass());
  if (failed(pm.run(*result)))
    return failure();
  cpu::emitPlan(*result, options.plan);
  return result;
}

FailureOr<OwningOpRef<ModuleOp>> meshwright::lowerToLLVMDialect(ModuleOp module,
                                                                const CodegenOptions &options) {
  std::string error;
  auto machine = createTargetMachine(options, error);
  if (!machine)
    return module.emitError(error);
  return lower(module, options, vectorsOf(*machine));
}

FailureOr<std::unique_ptr<llvm::Module>> meshwright::lowerToLLVM(ModuleOp module,
                                                                 llvm::LLVMContext &context,
                                                                 llvm::TargetMachine &machine,
                                                                 const CodegenOptions &options) {
  cpu::VectorTarget target = vectorsOf(machine);
  auto lowered = lower(module, options, target);
  if (failed(lowered))
    return failure();
  std::unique_ptr<llvm::Module> result = translateModuleToLLVMIR(lowered->get(), context, "step");
  if (!result)
    return module.emitError("translation to LLVM IR failed");
  // The linker keeps the plan whether or not anything reads it.
  if (llvm::GlobalVariable *plan = result->getNamedGlobal("meshwright_plan"))
    llvm::appendToUsed(*result, {plan});
  result->setTargetTriple(machine.getTargetTriple());
  result->setDataLayout(machine.createDataLayout());
  for (llvm::Function &function : *result) {
    if (function.isDeclaration())
      continue;
    function.addFnAttr("target-cpu", machine.getTargetCPU());
    function.addFnAttr("target-features", machine.getTargetFeatureString());
    // Vectors are as wide as they are written.
    function.addFnAttr("prefer-vector-width", std::to_string(target.lanes * 32));
    function.addFnAttr(llvm::Attribute::NoUnwind);
  }

  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager components;
  llvm::ModuleAnalysisManager modules;
  llvm::PipelineTuningOptions tuning;
  // Kernels are vector loops already.
  tuning.LoopVectorization = tuning.SLPVectorization = false;
  llvm::PassBuilder builder(&machine, tuning);
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(components);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, components, modules);
  builder.buildPerModuleDefaultPipeline(llvm::OptimizationLevel::O2).run(*result, modules);
  return result;
}
