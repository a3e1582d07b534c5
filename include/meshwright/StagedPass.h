//===- StagedPass.h - stages of IR, and passes that know theirs -------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_STAGEDPASS_H
#define MESHWRIGHT_STAGEDPASS_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace meshwright {

/// Where IR can be taken out and put in again, in the order of the passes.
enum class Stage { train, step, dist, local, stages, schedule, exec };

inline constexpr llvm::StringLiteral stageAttr = "meshwright.stage";
inline constexpr llvm::StringLiteral stageNames[] = {"train",  "step",     "dist", "local",
                                                     "stages", "schedule", "exec"};

/// Refuses a module that is past stage `to`, which `pass` leads to: its ops are not those that
/// the pass works on.
inline llvm::LogicalResult checkNotPast(mlir::ModuleOp module, Stage to, llvm::StringRef pass) {
  llvm::StringRef leads = stageNames[unsigned(to)];
  auto name = module->getAttrOfType<mlir::StringAttr>(stageAttr);
  const auto *stage = name ? llvm::find(stageNames, name.getValue()) : std::end(stageNames);
  if (stage != std::end(stageNames) && stage - std::begin(stageNames) > unsigned(to))
    return module.emitError() << "the module is at stage " << name.getValue() << ", past "
                              << pass << ", which leads to stage " << leads;
  // Text may have lost its attributes.
  if (to < Stage::stages && !module.getOps<mlir::ModuleOp>().empty())
    return module.emitError() << "the module holds a program for each kind of device, as from "
                              << "stage stages on, past " << pass << ", which leads to stage "
                              << leads;
  return mlir::success();
}

/// A pass on the way to stage `to`. All passes are, so none forgets the check.
template <Stage to> class StagedPass : public mlir::OperationPass<mlir::ModuleOp> {
protected:
  using OperationPass::OperationPass;

  virtual void runOnModule() = 0;

private:
  void runOnOperation() final {
    if (failed(checkNotPast(getOperation(), to, getArgument())))
      return signalPassFailure();
    runOnModule();
  }
};

} // namespace meshwright

#endif // MESHWRIGHT_STAGEDPASS_H
