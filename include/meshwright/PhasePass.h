//===- PhasePass.h - passes that know the phase they lead to ----------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_PHASEPASS_H
#define MESHWRIGHT_PHASEPASS_H

#include "meshwright/Phase.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace meshwright {

/// Refuses a module that is past phase `to`, which `pass` leads to: its ops are not those that
/// the pass works on.
inline llvm::LogicalResult checkNotPast(mlir::ModuleOp module, Phase to, llvm::StringRef pass) {
  llvm::StringRef leads = phaseNames[unsigned(to)];
  auto name = module->getAttrOfType<mlir::StringAttr>(phaseAttr);
  const auto *phase = name ? llvm::find(phaseNames, name.getValue()) : std::end(phaseNames);
  if (phase != std::end(phaseNames) && phase - std::begin(phaseNames) > unsigned(to))
    return module.emitError() << "the module is at phase " << name.getValue() << ", past "
                              << pass << ", which leads to phase " << leads;
  // An edit of the text may have removed the attribute.
  if (to < Phase::stages && !module.getOps<mlir::ModuleOp>().empty())
    return module.emitError() << "the module holds a program for each kind of device, as from "
                              << "phase stages on, past " << pass << ", which leads to phase "
                              << leads;
  return mlir::success();
}

/// The base of all passes, each on the way to phase `to`, so that none forgets the check.
template <Phase to> class PhasePass : public mlir::OperationPass<mlir::ModuleOp> {
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

#endif // MESHWRIGHT_PHASEPASS_H
