//===- CertifyCommand.cpp - `meshwright certify` and `compile --certify` -----===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "CertifyCommand.h"

#include "DiagnosticCollector.h"
#include "ModuleText.h"
#include "meshwright/Certify.h"
#include "meshwright/Pipeline.h"

#include "mlir/IR/Verifier.h"
#include "mlir/Pass/PassInstrumentation.h"

using namespace mlir;
using llvm::createStringError;
using llvm::Error;
using llvm::Expected;

namespace meshwright {

namespace {
/// Keeps the global graph when the passes have reached phase step, and checks the program of a rank
/// against it when they have reached phase local.
class CertifyPhases : public PassInstrumentation {
public:
  CertifyPhases(ModuleOp module, llvm::raw_ostream &log) : log(log) { look(module); }

  void runAfterPass(Pass *, Operation *op) override {
    if (auto module = dyn_cast<ModuleOp>(op); module && !module->getParentOp())
      look(module);
  }

private:
  void look(ModuleOp module) {
    Expected<Phase> phase = phaseOf(module);
    if (!phase)
      return llvm::consumeError(phase.takeError());
    if (*phase == Phase::step && !global)
      global = module.clone();
    if (*phase != Phase::local || !global || isChecked)
      return;
    isChecked = true;
    if (auto certificate = certify::certify(*global, module); succeeded(certificate))
      certify::print(*certificate, log);
    global = {};
  }

  llvm::raw_ostream &log;
  OwningOpRef<ModuleOp> global;
  bool isChecked = false;
};
} // namespace

void certifyPhases(PassManager &manager, ModuleOp module, llvm::raw_ostream &log) {
  manager.addInstrumentation(std::make_unique<CertifyPhases>(module, log));
}

/// A file of IR at a phase.
static Expected<OwningOpRef<ModuleOp>> readPhase(StringRef path, Phase wanted, MLIRContext &context) {
  DiagnosticCollector diagnostics(context);
  OwningOpRef<ModuleOp> module = readModule(path, context);
  if (!module)
    return diagnostics.take("cannot read '" + path + "'");
  Expected<Phase> phase = phaseOf(*module);
  if (!phase)
    return phase.takeError();
  if (*phase != wanted || (*module)->hasAttr(dumpedAfterAttr))
    return createStringError("'" + path + "' is not IR at phase " + nameOf(wanted) +
                             "; `meshwright compile --emit " + nameOf(wanted) + "` writes it");
  return module;
}

Error certifyFiles(llvm::ArrayRef<std::string> files, MLIRContext &context, llvm::raw_ostream &os) {
  auto global = readPhase(files[0], Phase::step, context);
  if (!global)
    return global.takeError();
  auto local = readPhase(files[1], Phase::local, context);
  if (!local)
    return local.takeError();
  DiagnosticCollector diagnostics(context);
  auto certificate = certify::certify(**global, **local);
  if (failed(certificate))
    return diagnostics.take("not proved");
  certify::print(*certificate, os);
  return Error::success();
}

} // namespace meshwright
