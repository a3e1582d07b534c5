//===- Lowering.cpp - exec module to GPU module to PTX ----------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Codegen/CUDA/KernelEmitter.h"
#include "Codegen/VectorMath.h"
#include "Exec/Exec.h"
#include "meshwright/Codegen.h"

#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/GPUToNVVM/GPUToNVVMPass.h"
#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Conversion/MemRefToLLVM/MemRefToLLVM.h"
#include "mlir/Conversion/Passes.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Target/LLVMIR/Dialect/GPU/GPUToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/NVVM/NVVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"

#include <numeric>

using namespace mlir;
using namespace meshwright;
using namespace meshwright::codegen;

void meshwright::registerCUDACodegen(DialectRegistry &registry) {
  registry.insert<LLVM::LLVMDialect, NVVM::NVVMDialect, gpu::GPUDialect, memref::MemRefDialect,
                  scf::SCFDialect, vector::VectorDialect, cf::ControlFlowDialect>();
  registerGPUDialectTranslation(registry);
  registerNVVMDialectTranslation(registry);
}

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

/// To how many bytes, at most 16, memory of a program is aligned.
static int64_t alignmentOf(Value memory) {
  return llvm::TypeSwitch<Operation *, int64_t>(memory.getDefiningOp())
      .Case<exec::SlotOp, exec::WindowOp>([](auto op) {
        return std::gcd(alignmentOf(op.getBase()),
                        exec::bytesOf(cast<MemRefType>(op->getResult(0).getType())));
      })
      .Case<exec::ViewOp>([](exec::ViewOp op) { return alignmentOf(op.getBase()); })
      .Default([](Operation *) { return int64_t(16); }); // buffers begin at multiples of 64
}

/// What every launch of each kernel keeps to. A kernel nobody launches gets whole
/// tensors.
static llvm::StringMap<SmallVector<int64_t>> alignmentsIn(ModuleOp module) {
  llvm::StringMap<SmallVector<int64_t>> found;
  for (auto kernel : module.getOps<func::FuncOp>())
    found[kernel.getName()].assign(kernel.getNumArguments() + kernel.getNumResults(), 16);
  module.walk([&](exec::LaunchOp launch) {
    SmallVector<Value> memory(launch.getInputs());
    llvm::append_range(memory, launch.getOutputs());
    for (auto [known, value] : llvm::zip(found[launch.getKernel()], memory))
      known = std::gcd(known, alignmentOf(value));
  });
  return found;
}

FailureOr<OwningOpRef<ModuleOp>> meshwright::emitGPUKernels(ModuleOp module) {
  // Ops of these are created outside of passes, which would load them.
  module.getContext()
      ->loadDialect<LLVM::LLVMDialect, NVVM::NVVMDialect, gpu::GPUDialect, memref::MemRefDialect,
                    scf::SCFDialect, vector::VectorDialect, cf::ControlFlowDialect>();
  // Planning may rewrite kernels: work on a copy.
  OwningOpRef<ModuleOp> source = module.clone(), result = ModuleOp::create(module.getLoc());
  OpBuilder b = OpBuilder::atBlockBegin(result->getBody());
  auto kernels = gpu::GPUModuleOp::create(b, module.getLoc(), "kernels");
  auto alignments = alignmentsIn(*source);
  for (auto kernel : source->getOps<func::FuncOp>()) {
    if (!kernel->hasAttr("exec.kernel"))
      continue;
    normalizeKernel(kernel);
    FailureOr<KernelPlan> plan = planKernel(kernel, ScheduleOptions::cuda());
    if (failed(plan) || failed(cuda::emitKernel(*plan, kernels, alignments[kernel.getName()])))
      return failure();
  }
  expandMath(*result);
  expandTrigonometry(*result);
  PassManager pm(module.getContext());
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createCSEPass());
  if (failed(pm.run(*result)))
    return failure();
  return result;
}

//===----------------------------------------------------------------------===//
// PTX
//===----------------------------------------------------------------------===//

namespace {
/// To the LLVM and NVVM dialects. MLIR's own pass would make roots calls of
/// libdevice, which LLVM's instructions are exact without.
struct ConvertKernels : PassWrapper<ConvertKernels, OperationPass<gpu::GPUModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(ConvertKernels)

  void runOnOperation() override {
    MLIRContext *context = &getContext();
    LLVMTypeConverter converter(context);
    configureGpuToNVVMTypeConverter(converter);
    RewritePatternSet patterns(context);
    populateGpuToNVVMConversionPatterns(converter, patterns);
    arith::populateArithToLLVMConversionPatterns(converter, patterns);
    cf::populateControlFlowToLLVMConversionPatterns(converter, patterns);
    populateFinalizeMemRefToLLVMConversionPatterns(converter, patterns);
    populateMathToLLVMConversionPatterns(converter, patterns);
    ConversionTarget target(*context);
    target.addLegalDialect<LLVM::LLVMDialect, NVVM::NVVMDialect>();
    target.addIllegalDialect<gpu::GPUDialect, arith::ArithDialect, math::MathDialect,
                             memref::MemRefDialect, cf::ControlFlowDialect>();
    target.addLegalOp<gpu::GPUModuleOp>();
    if (failed(applyPartialConversion(getOperation(), target, std::move(patterns))))
      signalPassFailure();
  }
};
} // namespace

static FailureOr<std::unique_ptr<llvm::TargetMachine>> createMachine(ModuleOp module,
                                                                     StringRef arch) {
  LLVMInitializeNVPTXTargetInfo();
  LLVMInitializeNVPTXTarget();
  LLVMInitializeNVPTXTargetMC();
  LLVMInitializeNVPTXAsmPrinter();
  llvm::Triple triple("nvptx64-nvidia-cuda");
  std::string error;
  const llvm::Target *target = llvm::TargetRegistry::lookupTarget(triple, error);
  if (!target)
    return module.emitError(error);
  std::unique_ptr<llvm::MCSubtargetInfo> any(target->createMCSubtargetInfo(triple, "", ""));
  // bf16 conversions came with sm_80.
  unsigned version = 0;
  StringRef digits = arch;
  bool known = digits.consume_front("sm_") && !digits.consumeInteger(10, version) &&
               any->isCPUStringValid(arch);
  if (!known || version < 80)
    return module.emitError("--gpu-arch ")
           << arch << " is not supported; sm_80, sm_90, sm_100 and others from sm_80 on that LLVM "
           << LLVM_VERSION_STRING << " knows work";
  return std::unique_ptr<llvm::TargetMachine>(
      target->createTargetMachine(triple, arch, "", llvm::TargetOptions(), std::nullopt,
                                  std::nullopt, llvm::CodeGenOptLevel::Aggressive));
}

static void optimize(llvm::Module &module, llvm::TargetMachine &machine) {
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager components;
  llvm::ModuleAnalysisManager modules;
  llvm::PassBuilder builder(&machine);
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(components);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, components, modules);
  builder.buildPerModuleDefaultPipeline(llvm::OptimizationLevel::O3).run(module, modules);
}

FailureOr<std::string> meshwright::emitPTX(ModuleOp module, StringRef arch) {
  auto machine = createMachine(module, arch);
  if (failed(machine))
    return failure();
  auto kernels = emitGPUKernels(module);
  if (failed(kernels))
    return failure();
  PassManager pm(module.getContext());
  OpPassManager &inKernels = pm.nest<gpu::GPUModuleOp>();
  inKernels.addPass(createSCFToControlFlowPass());
  inKernels.addPass(createConvertVectorToLLVMPass());
  inKernels.addPass(std::make_unique<ConvertKernels>());
  inKernels.addPass(createReconcileUnrealizedCastsPass());
  if (failed(pm.run(**kernels)))
    return failure();

  llvm::LLVMContext context;
  auto inner = *(*kernels)->getOps<gpu::GPUModuleOp>().begin();
  std::unique_ptr<llvm::Module> translated = translateModuleToLLVMIR(inner, context, "kernels");
  if (!translated)
    return module.emitError("translation of kernels to LLVM IR failed");
  translated->setTargetTriple((*machine)->getTargetTriple());
  translated->setDataLayout((*machine)->createDataLayout());
  optimize(*translated, **machine);

  llvm::SmallVector<char, 0> bytes;
  llvm::raw_svector_ostream os(bytes);
  llvm::legacy::PassManager passes;
  if ((*machine)->addPassesToEmitFile(passes, os, nullptr, llvm::CodeGenFileType::AssemblyFile))
    return module.emitError("LLVM cannot write PTX for ") << arch;
  passes.run(*translated);
  return std::string(bytes.begin(), bytes.end());
}
