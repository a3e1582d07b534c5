//===- Target.cpp - processors as a target -----------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Codegen/CPU/Lowering.h"
#include "Exec/Exec.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::codegen;

static constexpr StringLiteral processorParameter = "processor";

namespace {
class CPUTarget : public exec::Target {
public:
  StringRef getName() const override { return "cpu"; }
  bool isDefault() const override { return true; }

  ArrayRef<exec::TargetFlag> getFlags() const override {
    static const exec::TargetFlag flags[] = {
        {"cpu", "NAME",
         "CPU to generate code for, as LLVM names it (-mcpu); native: the CPU of this machine",
         "native", "processor", /*planned=*/false}};
    return flags;
  }
  LogicalResult verify(EmitError emitError, Parameters parameters) const override {
    for (NamedAttribute parameter : parameters)
      if (parameter.getName() != processorParameter || !isa<StringAttr>(parameter.getValue()))
        return emitError() << "target cpu has the parameter " << processorParameter
                           << ", a string, not " << parameter.getName() << " = "
                           << parameter.getValue();
    return success();
  }

  exec::ScheduleLimits getScheduleLimits() const override { return cpu::scheduleLimits; }

  int64_t getProductWorkspace(const exec::ProductShape &p) const override {
    return p.mixed ? mw_matmul_mixed_workspace(p.m, p.n, p.k, p.batch) : 0;
  }
  int64_t getGroupedWorkspace(const exec::ProductShape &p, const exec::GroupShape &,
                              bool gradient) const override {
    // Factors that are as wide as the result are narrow with it.
    int32_t result = p.result.isF32() ? MW_F32 : MW_BF16, factor = p.mixed ? MW_BF16 : MW_F32;
    return gradient ? mw_grouped_matmul_grad_workspace(p.k, p.m, p.n, factor, result)
                    : getProductWorkspace(p);
  }
  bool hasPartialAttention() const override { return true; }
  int64_t getAttentionWorkspace(const MwAttention &shape, bool backward,
                                Attribute) const override {
    return backward ? mw_attention_backward_workspace(&shape)
                    : mw_attention_forward_workspace(&shape);
  }

  StringRef getDefaultDevice(Parameters) const override { return "epyc-9654"; }

  FailureOr<OwningOpRef<ModuleOp>> lower(ModuleOp module, const CodegenOptions &options,
                                         Parameters, llvm::raw_ostream &) const override {
    return cpu::lower(module, options);
  }
  std::string getHostProcessor(Parameters parameters) const override {
    auto processor = parameters ? parameters.getAs<StringAttr>(processorParameter) : StringAttr();
    return processor ? processor.str() : "";
  }
  exec::RuntimeFiles getRuntimeFiles() const override {
    return {"libmeshwright_runtime.a", "link.txt", ""};
  }
  bool generates() const override { return true; }

protected:
  llvm::Expected<Parameters> parseFlags(const exec::FlagValues &values,
                                        MLIRContext &context) const override {
    Builder b(&context);
    const std::string &processor = values.at("cpu");
    if (processor == "native")
      return b.getDictionaryAttr({});
    return b.getDictionaryAttr(b.getNamedAttr(processorParameter, b.getStringAttr(processor)));
  }
};
} // namespace

namespace meshwright {
void registerCPUTarget() { exec::registerTarget(std::make_unique<CPUTarget>()); }
} // namespace meshwright
