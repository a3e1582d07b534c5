//===- Target.cpp - NVIDIA's GPUs as a target --------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Codegen/CUDA/Allowances.h"
#include "Codegen/CUDA/Attentions.h"
#include "Codegen/CUDA/DefaultDevice.h"
#include "Codegen/CUDA/Experts.h"
#include "Codegen/CUDA/Lowering.h"
#include "meshwright/runtime/cuda/ABI.h"

#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Target/LLVMIR/Dialect/GPU/GPUToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/NVVM/NVVMToLLVMIRTranslation.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::codegen;
using exec::Epilogue;

//===----------------------------------------------------------------------===//
// Parameters
//===----------------------------------------------------------------------===//

/// Epilogues by Epilogue::Kind.
static constexpr StringLiteral epilogueNames[] = {"addend", "bias", "gelu", "gelu-grad",
                                                  "bias-grad"};

static std::vector<std::string> strings(Attribute list) {
  std::vector<std::string> result;
  for (Attribute entry : cast<ArrayAttr>(list))
    result.push_back(cast<StringAttr>(entry).str());
  return result;
}

static bool isStrings(Attribute attribute) {
  auto list = dyn_cast<ArrayAttr>(attribute);
  return list && llvm::all_of(list, [](Attribute entry) { return isa<StringAttr>(entry); });
}

/// Those that pay on all of `archs`. Before Hopper cuBLASLt's kernels with gelu are slower than
/// a product and a kernel of its own (karpathy/llm.c measured that).
static std::vector<std::string> payingEpilogues(ArrayRef<std::string> archs) {
  bool withGelu = llvm::all_of(archs, [](StringRef arch) {
    unsigned number = 0;
    return arch.consume_front("sm_") && !arch.consumeInteger(10, number) && number >= 90;
  });
  std::vector<std::string> names;
  for (StringRef name : epilogueNames)
    if (withGelu || !name.contains("gelu"))
      names.push_back(name.str());
  return names;
}

namespace {
/// The parameters of `#exec.target<"cuda", ..>`.
struct CUDAParameters {
  explicit CUDAParameters(DictionaryAttr given) {
    auto find = [&](StringRef name) { return given ? given.get(name) : Attribute(); };
    if (Attribute list = find("archs"))
      archs = strings(list);
    if (Attribute text = find("attention"))
      attention = cast<StringAttr>(text).str();
    if (Attribute flag = find("deterministic"))
      deterministic = cast<BoolAttr>(flag).getValue();
    if (Attribute list = find("epilogues"))
      epilogues = strings(list);
    else
      epilogues = payingEpilogues(archs);
  }

  std::vector<std::string> archs = {"sm_90"};
  std::vector<std::string> epilogues;
  std::string attention = "auto";
  bool deterministic = false;
};
} // namespace

/// The list of --epilogues where it is not auto.
static llvm::Expected<SmallVector<StringRef>> epiloguesOf(StringRef text) {
  SmallVector<StringRef> names;
  if (text != "none")
    text.split(names, ',');
  for (auto [i, name] : llvm::enumerate(names)) {
    if (llvm::is_contained(ArrayRef(names).take_front(i), name))
      return llvm::createStringError("--epilogues " + text + " names " + name +
                                     " twice; name it once");
    if (!llvm::is_contained(epilogueNames, name))
      return llvm::createStringError("--epilogues " + text +
                                     " is not supported; there are bias, addend, gelu, gelu-grad "
                                     "and bias-grad, or auto or none");
  }
  return names;
}

//===----------------------------------------------------------------------===//
// The target
//===----------------------------------------------------------------------===//

namespace {
class CUDATarget : public exec::Target {
public:
  StringRef getName() const override { return "cuda"; }

  void registerDialects(DialectRegistry &registry) const override {
    registry.insert<LLVM::LLVMDialect, NVVM::NVVMDialect, gpu::GPUDialect, memref::MemRefDialect,
                    scf::SCFDialect, vector::VectorDialect, cf::ControlFlowDialect>();
    registerGPUDialectTranslation(registry);
    registerNVVMDialectTranslation(registry);
  }

  ArrayRef<exec::TargetFlag> getFlags() const override {
    static const exec::TargetFlag flags[] = {
        {"gpu-arch", "ARCHS", "GPU architectures, e.g. sm_90,sm_80", "sm_90", "archs",
         /*planned=*/false},
        {"attention",
         "HOW",
         "implementation of flash attention on GPUs: cudnn, generated kernels, or auto (cudnn where "
         "it can, generated kernels elsewhere)",
         "auto",
         "attention",
         /*planned=*/true,
         {"auto", "cudnn", "generated"}},
        {"deterministic",
         "HOW",
         "reproducibility of attention gradients: on: bitwise equal in every run; off: cudnn may "
         "accumulate them in any order, which needs less time and memory (gradients that several "
         "ranks compute redundantly stay deterministic)",
         "off",
         "deterministic",
         /*planned=*/true,
         {"on", "off"}},
        {"epilogues", "LIST",
         "epilogues that cuBLASLt fuses into matrix products, comma-separated: bias, addend, gelu, "
         "gelu-grad, bias-grad, or none; auto: all for sm_90 and later, those without gelu for "
         "earlier ones",
         "auto", "epilogues"}};
    return flags;
  }

  LogicalResult verify(EmitError emitError, DictionaryAttr parameters) const override {
    for (NamedAttribute entry : parameters) {
      StringRef name = entry.getName();
      Attribute value = entry.getValue();
      bool good = name == "archs" || name == "epilogues" ? isStrings(value)
                  : name == "attention"                  ? isa<StringAttr>(value)
                  : name == "deterministic"              ? isa<BoolAttr>(value)
                                                         : false;
      if (!good)
        return emitError() << "target cuda has the parameters archs and epilogues, lists of "
                              "strings, attention, a string, and deterministic, a truth value; not "
                           << name << " = " << value;
    }
    return success();
  }

  exec::ScheduleLimits getScheduleLimits() const override { return cuda::scheduleLimits; }
  int64_t getRowAlignment() const override { return 16; }
  /// What communicates needs no core that computes.
  bool overlapsByDefault() const override { return true; }
  /// The parameters of a kernel are 4 KiB.
  unsigned getMostLaunchOperands() const override { return 480; }

  bool canFuse(const Epilogue &epilogue, const exec::ProductShape &p) const override {
    switch (epilogue.kind) {
    case Epilogue::Addend:
    case Epilogue::Bias:
      return true;
    case Epilogue::Gelu:
    case Epilogue::GeluGrad:
      // cuBLASLt has the tanh form, in arithmetic that is good enough for narrow results
      // only; what it keeps has rows of 16 bytes.
      return epilogue.tanh && p.result.getIntOrFloatBitWidth() == 16 && p.ldc % 8 == 0;
    case Epilogue::BiasGrad:
      // Of a factor that is stored k first, and of more than one row or column.
      return (epilogue.factor == 0 ? p.transA : !p.transB) &&
             (epilogue.factor == 0 ? p.m : p.n) > 1 && p.k > 1 && p.batch == 1;
    }
    llvm_unreachable("every epilogue is above");
  }
  bool shouldFuse(Epilogue::Kind kind, DictionaryAttr parameters) const override {
    return llvm::is_contained(CUDAParameters(parameters).epilogues, epilogueNames[kind]);
  }

  LogicalResult chooseLibrary(Operation *op, DictionaryAttr parameters) const override {
    CUDAParameters own(parameters);
    return cuda::chooseAttention(op, own.attention, own.deterministic, own.archs);
  }
  LogicalResult verifyLibrary(EmitError emitError, Attribute library) const override {
    if (cuda::libraryOf(library))
      return success();
    return emitError() << "has library " << library
                       << "; target cuda has {name = \"cudnn\", workspace = BYTES : i64}, which may "
                          "also hold fallback and deterministic";
  }

  bool hasPartialAttention() const override { return true; }
  int64_t getProductWorkspace(const exec::ProductShape &) const override {
    return MW_PRODUCT_WORKSPACE;
  }
  int64_t getRouteWorkspace(const exec::RouteShape &shape) const override {
    return cuda::routeWorkspace(shape);
  }
  int64_t getGroupedWorkspace(const exec::ProductShape &, const exec::GroupShape &groups,
                              bool gradient) const override {
    return gradient ? cuda::groupedGradWorkspace(groups) : 0;
  }
  int64_t getAttentionWorkspace(const MwAttention &shape, bool backward,
                                Attribute attribute) const override {
    // A number for each query of each head.
    int64_t generated =
        backward ? shape.batch * shape.heads * shape.queries * int64_t(sizeof(float)) : 0;
    std::optional<cuda::Library> library = cuda::libraryOf(attribute);
    return std::max(generated, library ? library->workspaceBytes : 0);
  }
  int64_t getAttentionScratchTraffic(const MwAttention &shape, bool backward, Attribute library,
                                     DictionaryAttr parameters) const override {
    return cuda::leastScratchTraffic(shape, backward, library, CUDAParameters(parameters).archs);
  }

  StringRef getDefaultDevice(DictionaryAttr parameters) const override {
    return cuda::deviceOf(CUDAParameters(parameters).archs.front());
  }

  std::vector<plan::Allowance> getAllowances(ModuleOp program,
                                             const Communication &communication) const override {
    return cuda::allowancesOf(program, communication);
  }
  void addToPlan(ModuleOp module, plan::Plan &plan) const override {
    plan.attentions = cuda::Attentions(module).all().vec();
  }

  FailureOr<OwningOpRef<ModuleOp>> lower(ModuleOp module, const CodegenOptions &options,
                                         DictionaryAttr parameters,
                                         llvm::raw_ostream &log) const override {
    return cuda::lower(module, CUDAParameters(parameters).archs, options, log);
  }
  /// The host of a GPU may be any.
  std::string getHostProcessor(DictionaryAttr) const override { return "generic"; }
  exec::RuntimeFiles getRuntimeFiles() const override {
    return {"libmeshwright_runtime_cuda.a", "link_cuda.txt",
            "the headers of CUDA 13, cuBLASLt and NCCL"};
  }

  ArrayRef<StringLiteral> getEmissions() const override {
    static constexpr StringLiteral emissions[] = {"ptx"};
    return emissions;
  }
  FailureOr<std::string> emit(StringRef, ModuleOp module,
                              DictionaryAttr parameters) const override {
    std::vector<std::string> archs = CUDAParameters(parameters).archs;
    if (archs.size() != 1)
      return module.emitError("--emit ptx with --gpu-arch ")
             << llvm::join(archs, ",")
             << " is not supported; PTX is one module: name one architecture";
    return cuda::emitPTX(module, archs[0]);
  }

protected:
  llvm::Expected<DictionaryAttr> parseFlags(const exec::FlagValues &values,
                                            MLIRContext &context) const override {
    if (values.at("deterministic") == "on" && values.at("attention") == "generated")
      return llvm::createStringError("--deterministic on changes nothing: kernels of --attention "
                                     "generated give the same bits in every run");
    SmallVector<StringRef> archs;
    StringRef(values.at("gpu-arch")).split(archs, ',');
    for (StringRef &arch : archs)
      arch = arch.trim();
    Builder b(&context);
    SmallVector<NamedAttribute> parameters{
        b.getNamedAttr("archs", b.getStrArrayAttr(archs)),
        b.getNamedAttr("attention", b.getStringAttr(values.at("attention"))),
        b.getNamedAttr("deterministic", b.getBoolAttr(values.at("deterministic") == "on"))};
    if (StringRef text = values.at("epilogues"); text != "auto") {
      llvm::Expected<SmallVector<StringRef>> epilogues = epiloguesOf(text);
      if (!epilogues)
        return epilogues.takeError();
      parameters.push_back(b.getNamedAttr("epilogues", b.getStrArrayAttr(*epilogues)));
    }
    return b.getDictionaryAttr(parameters);
  }
};
} // namespace

namespace meshwright {
void registerCUDATarget() { exec::registerTarget(std::make_unique<CUDATarget>()); }
} // namespace meshwright
