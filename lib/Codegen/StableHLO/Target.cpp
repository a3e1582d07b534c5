//===- Target.cpp - StableHLO text as a target -------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// What leaves before memory is assigned: the global program with Shardy's shardings, or the
// partitioned one with its collectives, for compilers that read StableHLO.
//
//===----------------------------------------------------------------------===//
#include "Codegen/StableHLO/Export.h"
#include "Exec/Exec.h"

using namespace mlir;
using namespace meshwright;

namespace {
class StableHLOTarget : public exec::Target {
public:
  StringRef getName() const override { return "stablehlo"; }
  // The compilers that read the text know their devices; the partitioned program is as for this
  // one.
  StringRef getDefaultDevice(Parameters) const override { return "a100-sxm"; }
  ArrayRef<StringLiteral> getExits() const override {
    static constexpr StringLiteral exits[] = {"step", "dist", "local"};
    return exits;
  }
  FailureOr<std::string> emit(StringRef, ModuleOp module, Parameters) const override {
    return codegen::stablehlo::exportStep(module);
  }
};
} // namespace

namespace meshwright {
void registerStableHLOTarget() { exec::registerTarget(std::make_unique<StableHLOTarget>()); }
} // namespace meshwright
