//===- Lowering.cpp - exec module to GPU module to PTX ----------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Codegen/CUDA/Lowering.h"
#include "Codegen/CUDA/Alignments.h"
#include "Codegen/CUDA/Epilogues.h"
#include "Codegen/CUDA/Exchange.h"
#include "Codegen/CUDA/KernelEmitter.h"
#include "Codegen/VectorMath.h"
#include "Dist/Programs.h"
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

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

/// What every launch of each kernel, by the name it is emitted with, keeps to. A
/// kernel nobody launches gets whole tensors.
static llvm::StringMap<SmallVector<int64_t>> alignmentsIn(ModuleKernels &kernels,
                                                          cuda::Alignments &alignments) {
  llvm::StringMap<SmallVector<int64_t>> found;
  for (const KernelLoops *kernelLoops : kernels.distinct) {
    func::FuncOp kernel = kernelLoops->function;
    found[kernel.getName()].assign(kernel.getNumArguments() + kernel.getNumResults(), 16);
  }
  for (auto [program, scheduled] :
       llvm::zip_equal(dist::programsOf(*kernels.module), kernels.programs))
    for (auto entry : program.getOps<exec::ProgramOp>())
      entry.walk([&](exec::LaunchOp launch) {
        auto kernelLoops = scheduled.find(launch.getKernel());
        if (kernelLoops == scheduled.end())
          return;
        SmallVector<Value> memory(launch.getInputs());
        llvm::append_range(memory, launch.getOutputs());
        func::FuncOp kernel = kernelLoops->second.function;
        for (auto [known, value] : llvm::zip(found[kernel.getName()], memory))
          known = std::gcd(known, alignments.of(value));
      });
  return found;
}

/// LLVM believes that large arrays without an alignment are aligned to 16 bytes, and makes
/// one access of several by that, but in PTX they are to their elements.
static void alignShared(gpu::GPUModuleOp module) {
  Builder b(module.getContext());
  for (auto function : module.getOps<gpu::GPUFuncOp>())
    for (unsigned i = 0; i < function.getNumWorkgroupAttributions(); ++i)
      function.setWorkgroupAttributionAttr(i, LLVM::LLVMDialect::getAlignAttrName(),
                                           b.getI64IntegerAttr(16));
}

/// Codes of optimizer states come from IR alone: the flag is refused. They are made; those of weights are only read.
static LogicalResult checkNoCodes(func::FuncOp kernel) {
  bool makes = false;
  kernel.walk([&](arith::TruncIOp op) { makes |= getElementTypeOrSelf(op.getType()).isInteger(8); });
  if (!makes)
    return success();
  return kernel.emitError("kernel @") << kernel.getName()
                                      << " has states of 8 bits, for which --target cuda has no kernels yet; "
                                         "--target cpu has, and --optimizer adamw works";
}

FailureOr<OwningOpRef<ModuleOp>> cuda::emitKernels(ModuleKernels &kernels,
                                                   CallKernels &ofCalls) {
  OwningOpRef<ModuleOp> result = ModuleOp::create(kernels.module->getLoc());
  OpBuilder b = OpBuilder::atBlockBegin(result->getBody());
  auto target = gpu::GPUModuleOp::create(b, result->getLoc(), kernelModule);
  cuda::Alignments alignments(*kernels.module);
  auto ofKernels = alignmentsIn(kernels, alignments);
  for (const KernelLoops *kernelLoops : kernels.distinct)
    if (failed(checkNoCodes(kernelLoops->function)) ||
        failed(emitKernel(*kernelLoops, target,
                          ofKernels[func::FuncOp(kernelLoops->function).getName()])))
      return failure();
  WalkResult walked = kernels.module->walk([&](Operation *op) {
    bool aligned = alignments.ofAll(op->getOperands()) == 16;
    LogicalResult added =
        llvm::TypeSwitch<Operation *, LogicalResult>(op)
            .Case<exec::AttentionOp, exec::AttentionGradOp>(
                [&](auto op) { return ofCalls.attention.add(op, aligned, target); })
            .Case<exec::RouteOp, exec::RoundsOp, exec::RowsOfRoundOp, exec::GroupedMatmulOp,
                  exec::GroupedMatmulGradOp>(
                [&](auto op) { return ofCalls.experts.add(op, aligned, target); })
            .Case<exec::ExchangeOp>([&](auto op) { return addExchangeKernel(op, target); })
            .Case<exec::MatmulOp>([&](auto op) { return addEpilogueKernels(op, target), success(); })
            .Default([](Operation *) { return success(); });
    return failed(added) ? WalkResult::interrupt() : WalkResult::advance();
  });
  if (walked.wasInterrupted())
    return failure();
  alignShared(target);
  expandMath(*result, Exponential::PowerOfTwo);
  expandTrigonometry(*result);
  PassManager pm(result->getContext());
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createCSEPass());
  if (failed(pm.run(*result)))
    return failure();
  return result;
}

FailureOr<ModuleKernels> cuda::buildKernels(ModuleOp module) {
  // Ops of these are created outside of passes, which would load them.
  module.getContext()
      ->loadDialect<LLVM::LLVMDialect, NVVM::NVVMDialect, gpu::GPUDialect, memref::MemRefDialect,
                    scf::SCFDialect, vector::VectorDialect, cf::ControlFlowDialect>();
  return ModuleKernels::build(module, scheduleLimits);
}

FailureOr<OwningOpRef<ModuleOp>> cuda::emitKernels(ModuleOp module) {
  auto kernels = cuda::buildKernels(module);
  if (failed(kernels))
    return failure();
  cuda::CallKernels ofCalls;
  return cuda::emitKernels(*kernels, ofCalls);
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

FailureOr<unsigned> cuda::archNumber(ModuleOp module, StringRef arch) {
  auto machine = createMachine(module, arch);
  unsigned number = 0;
  if (failed(machine))
    return failure();
  if (arch.drop_front(3).getAsInteger(10, number))
    return module.emitError("--gpu-arch ")
           << arch << " is of one chip alone; executables are for all of an architecture: "
           << arch.drop_back();
  return number;
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

LogicalResult cuda::convertKernels(ModuleOp kernels) {
  PassManager pm(kernels.getContext());
  OpPassManager &inKernels = pm.nest<gpu::GPUModuleOp>();
  inKernels.addPass(createSCFToControlFlowPass());
  inKernels.addPass(createConvertVectorToLLVMPass());
  inKernels.addPass(std::make_unique<ConvertKernels>());
  inKernels.addPass(createReconcileUnrealizedCastsPass());
  return pm.run(kernels);
}

FailureOr<std::string> cuda::writePTX(ModuleOp converted, StringRef arch) {
  auto machine = createMachine(converted, arch);
  if (failed(machine))
    return failure();
  llvm::LLVMContext context;
  auto inner = *converted.getOps<gpu::GPUModuleOp>().begin();
  std::unique_ptr<llvm::Module> translated = translateModuleToLLVMIR(inner, context, "kernels");
  if (!translated)
    return converted.emitError("translation of kernels to LLVM IR failed");
  translated->setTargetTriple((*machine)->getTargetTriple());
  translated->setDataLayout((*machine)->createDataLayout());
  optimize(*translated, **machine);

  llvm::SmallVector<char, 0> bytes;
  llvm::raw_svector_ostream os(bytes);
  llvm::legacy::PassManager passes;
  if ((*machine)->addPassesToEmitFile(passes, os, nullptr, llvm::CodeGenFileType::AssemblyFile))
    return converted.emitError("LLVM cannot write PTX for ") << arch;
  passes.run(*translated);
  return std::string(bytes.begin(), bytes.end());
}

FailureOr<std::string> cuda::emitPTX(ModuleOp module, StringRef arch) {
  // Asked first: it is what is wrong most often.
  if (failed(createMachine(module, arch)))
    return failure();
  auto kernels = emitKernels(module);
  if (failed(kernels) || failed(cuda::convertKernels(**kernels)))
    return failure();
  return cuda::writePTX(**kernels, arch);
}
