//===- HostCode.cpp - what the host runs, to LLVM IR ------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Codegen/HostCode.h"
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
#include "llvm/IR/Module.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Passes/StandardInstrumentations.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/TargetParser/Host.h"
#include "llvm/Transforms/IPO/MergeFunctions.h"
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

unsigned codegen::vectorLanes(const llvm::TargetMachine &machine) {
  if (!machine.getTargetTriple().isX86())
    return 4;
  auto *subtarget = machine.getMCSubtargetInfo();
  if (subtarget->checkFeatures("+avx512f,+avx512vl,+avx512dq,+avx512bw"))
    return 16;
  return subtarget->checkFeatures("+avx2,+fma") ? 8 : 4;
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

void codegen::disableOptimization(LLVM::LLVMFuncOp function) {
  function.setOptimizeNone(true);
  function.setNoInline(true); // LLVM asks for it where it does not optimize.
}

static bool isOptimized(LLVM::LLVMFuncOp function) {
  return !function.isExternal() && !function.getOptimizeNone().value_or(false);
}

bool codegen::isUnoptimized(ModuleOp module) {
  return llvm::none_of(module.getOps<LLVM::LLVMFuncOp>(), isOptimized);
}

namespace {
/// Simplifies the functions that are optimized.
struct SimplifyFunctions : PassWrapper<SimplifyFunctions, OperationPass<LLVM::LLVMFuncOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(SimplifyFunctions)

  SimplifyFunctions() : pipeline(LLVM::LLVMFuncOp::getOperationName()) {
    pipeline.addPass(createCanonicalizerPass());
    pipeline.addPass(createCSEPass());
  }
  void getDependentDialects(DialectRegistry &registry) const override {
    pipeline.getDependentDialects(registry);
  }
  void runOnOperation() override {
    LLVM::LLVMFuncOp function = getOperation();
    if (isOptimized(function) && failed(runPipeline(pipeline, function)))
      signalPassFailure();
  }

  OpPassManager pipeline;
};
} // namespace

LogicalResult codegen::convertToLLVMDialect(ModuleOp module) {
  PassManager pm(module.getContext());
  pm.addNestedPass<LLVM::LLVMFuncOp>(std::make_unique<SimplifyFunctions>());
  pm.addPass(createSCFToControlFlowPass());
  pm.addPass(createConvertVectorToLLVMPass());
  // Sines and cosines, only of small tables, end as calls of libm.
  pm.addPass(createConvertMathToLLVMPass());
  pm.addPass(createConvertControlFlowToLLVMPass());
  pm.addPass(createArithToLLVMConversionPass());
  pm.addPass(createConvertFuncToLLVMPass());
  pm.addPass(createReconcileUnrealizedCastsPass());
  return pm.run(module);
}

/// What the executable must find in the processor that it runs on.
static std::string neededFeatures(const llvm::TargetMachine &machine) {
  std::string names;
  if (!machine.getTargetTriple().isX86())
    return names;
  for (const char *name : {
#define MW_FEATURE(name) name,
#include "meshwright/runtime/ProcessorFeatures.def"
#undef MW_FEATURE
       })
    if (machine.getMCSubtargetInfo()->checkFeatures(std::string("+") + name))
      names += std::string(name) + " ";
  return names;
}

FailureOr<std::unique_ptr<llvm::Module>> meshwright::translateToLLVM(ModuleOp lowered,
                                                                     llvm::LLVMContext &context,
                                                                     llvm::TargetMachine &machine,
                                                                     bool isDecoder) {
  std::unique_ptr<llvm::Module> result = translateModuleToLLVMIR(lowered, context, "step");
  if (!result)
    return lowered.emitError("translation to LLVM IR failed");
  // The linker keeps the plan whether or not anything reads it.
  if (llvm::GlobalVariable *plan = result->getNamedGlobal("meshwright_plan")) {
    llvm::appendToUsed(*result, {plan});
    llvm::Constant *features = llvm::ConstantDataArray::getString(context, neededFeatures(machine));
    new llvm::GlobalVariable(*result, features->getType(), /*isConstant=*/true,
                             llvm::GlobalValue::ExternalLinkage, features, "meshwright_processor");
  }
  result->setTargetTriple(machine.getTargetTriple());
  result->setDataLayout(machine.createDataLayout());
  for (llvm::Function &function : *result) {
    if (function.isDeclaration())
      continue;
    function.addFnAttr("target-cpu", machine.getTargetCPU());
    function.addFnAttr("target-features", machine.getTargetFeatureString());
    // Vectors are as wide as they are written.
    function.addFnAttr("prefer-vector-width", std::to_string(vectorLanes(machine) * 32));
    function.addFnAttr(llvm::Attribute::NoUnwind);
  }

  if (isDecoder) {
    for (llvm::GlobalVariable &text : result->globals())
      if (StringRef name = text.getSection(); name.consume_front(".meshwright."))
        text.setSection(".meshwright.decoder_" + name.str());
    for (llvm::GlobalValue &symbol : result->global_values())
      if (StringRef name = symbol.getName();
          !symbol.isDeclaration() && name.consume_front("meshwright_"))
        symbol.setName("meshwright_decoder_" + name.str());
  }

  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager components;
  llvm::ModuleAnalysisManager modules;
  llvm::PipelineTuningOptions tuning;
  // Kernels are vector loops already.
  tuning.LoopVectorization = tuning.SLPVectorization = false;
  // Without these callbacks, passes run on functions that are not to be optimized as well.
  llvm::PassInstrumentationCallbacks callbacks;
  llvm::OptNoneInstrumentation unoptimized(/*DebugLogging=*/false);
  unoptimized.registerCallbacks(callbacks);
  llvm::PassBuilder builder(&machine, tuning, std::nullopt, &callbacks);
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(components);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, components, modules);
  if (machine.getOptLevel() == llvm::CodeGenOptLevel::None) {
    builder.buildPerModuleDefaultPipeline(llvm::OptimizationLevel::O0).run(*result, modules);
    return result;
  }
  // Kernels of buffers of other shapes are often the same once they are simplified: these are unrolled and made code of once.
  builder.registerOptimizerEarlyEPCallback([](llvm::ModulePassManager &passes, llvm::OptimizationLevel, llvm::ThinOrFullLTOPhase) {
    passes.addPass(llvm::MergeFunctionsPass());
  });
  builder.buildPerModuleDefaultPipeline(llvm::OptimizationLevel::O2).run(*result, modules);
  return result;
}
