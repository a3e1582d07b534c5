//===- CertifyCommand.cpp - `meshwright certify` and `compile --certify` -----===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "CertifyCommand.h"

#include "DiagnosticCollector.h"
#include "ModuleText.h"
#include "meshwright/Certify.h"
#include "meshwright/EmbeddedIr.h"
#include "meshwright/Options.h"
#include "meshwright/Pipeline.h"

#include "mlir/IR/Verifier.h"
#include "mlir/Pass/PassInstrumentation.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using llvm::createStringError;
using llvm::Error;
using llvm::Expected;

namespace meshwright {

/// The pass that makes the program of a rank.
static constexpr StringRef partition = "dist-partition";

namespace {
/// Keeps the global graph when the passes have reached phase step, and checks the program of a rank
/// against it when dist-partition has made it.
class CertifyPhases : public PassInstrumentation {
public:
  CertifyPhases(ModuleOp module, llvm::raw_ostream &log, std::string *kept) : log(log), kept(kept) {
    keepGlobal(module);
  }
  /// With a global graph that is at hand.
  CertifyPhases(OwningOpRef<ModuleOp> global, llvm::raw_ostream &log)
      : log(log), global(std::move(global)), isKept(true) {}

  void runAfterPass(Pass *pass, Operation *op) override {
    auto module = dyn_cast<ModuleOp>(op);
    if (!module || module->getParentOp())
      return;
    keepGlobal(module);
    if (pass->getArgument() != partition || !global)
      return;
    if (auto certificate = certify::certify(*global, module); succeeded(certificate)) {
      certify::print(*certificate, log);
      if (kept) {
        llvm::raw_string_ostream os(*kept);
        certificate->seconds.reset();
        certify::print(*certificate, os);
      }
    }
    global = {};
  }

private:
  void keepGlobal(ModuleOp module) {
    auto phase = module->getAttrOfType<StringAttr>(phaseAttr);
    if (!isKept && phase && phase.getValue() == nameOf(Phase::step)) {
      global = module.clone();
      isKept = true;
    }
  }

  llvm::raw_ostream &log;
  std::string *kept = nullptr;
  OwningOpRef<ModuleOp> global;
  bool isKept = false;
};
} // namespace

void certifyPhases(PassManager &manager, ModuleOp module, llvm::raw_ostream &log,
                   std::string *kept) {
  manager.addInstrumentation(std::make_unique<CertifyPhases>(module, log, kept));
}

/// The IR of a phase that an executable carries.
static Expected<OwningOpRef<ModuleOp>> readCarried(const PhaseTexts &texts, Phase phase,
                                                   StringRef file, MLIRContext &context) {
  auto found = texts.find(phase);
  if (found == texts.end())
    return createStringError("'" + file + "' carries no IR of phase " + nameOf(phase) +
                             "; an executable of 'meshwright compile' of a model does");
  DiagnosticCollector diagnostics(context);
  OwningOpRef<ModuleOp> module =
      parseModule(llvm::MemoryBuffer::getMemBufferCopy(found->second, file), context);
  if (!module)
    return diagnostics.take("the IR in '" + file + "' is damaged; compile the model again");
  return module;
}

/// The lines of a certificate's text that name both modules by their hashes.
static std::string hashesOf(StringRef certificate) {
  std::string found;
  for (StringRef line : llvm::split(certificate, '\n')) {
    if (!line.starts_with("  global graph ") && !line.starts_with("  program of a rank "))
      continue;
    SmallVector<StringRef> words;
    llvm::SplitString(line, words);
    found += (found.empty() ? "" : " and ") + llvm::join(words, " ");
  }
  return found.empty() ? "no hashes" : found;
}

/// An executable carries the graph and its shardings: partitioning makes the ranks' program of them
/// again, which is the one that the executable was made of. A certificate that it carries must be of
/// the same modules.
static Error certifyExecutable(StringRef file, MLIRContext &context, llvm::raw_ostream &os) {
  Expected<PhaseTexts> texts = readEmbeddedIr(file);
  if (!texts)
    return texts.takeError();
  auto global = readCarried(*texts, Phase::step, file, context);
  if (!global)
    return global.takeError();
  auto sharded = readCarried(*texts, Phase::dist, file, context);
  if (!sharded)
    return sharded.takeError();
  Expected<std::string> carried = readCertificate(file);
  if (!carried)
    return carried.takeError();
  PassManager manager(&context);
  if (Error error = buildPipeline(manager, CompileOptions(), Phase::dist, Phase::local))
    return error;
  std::string proved;
  llvm::raw_string_ostream log(proved);
  manager.addInstrumentation(std::make_unique<CertifyPhases>(std::move(*global), log));
  DiagnosticCollector diagnostics(context);
  if (failed(manager.run(**sharded)) || diagnostics.hasErrors())
    return diagnostics.take("not proved");
  if (!carried->empty() && hashesOf(*carried) != hashesOf(proved))
    return createStringError("'" + file + "' carries a certificate of " + hashesOf(*carried) +
                             ", but its IR, which is proved, is " + hashesOf(proved) +
                             "; compile the model again with --certify");
  os << proved;
  return Error::success();
}

/// A file of IR at a phase; `dumped`: or as --dump-ir wrote it after a pass.
static Expected<OwningOpRef<ModuleOp>> readPhase(StringRef path, Phase wanted, StringRef dumped,
                                                 MLIRContext &context) {
  DiagnosticCollector diagnostics(context);
  OwningOpRef<ModuleOp> module = readModule(path, context);
  if (!module)
    return diagnostics.take("cannot read '" + path + "'");
  Expected<Phase> phase = phaseOf(*module);
  if (!phase)
    return phase.takeError();
  auto after = (*module)->getAttrOfType<StringAttr>(dumpedAfterAttr);
  if (after ? after.getValue() != dumped : *phase != wanted)
    return createStringError("'" + path + "' is not IR at phase " + nameOf(wanted) +
                             "; `meshwright compile --emit " + nameOf(wanted) + "` writes it");
  return module;
}

Error certifyFiles(llvm::ArrayRef<std::string> files, MLIRContext &context, llvm::raw_ostream &os) {
  if (files.size() == 1)
    return certifyExecutable(files[0], context, os);
  auto global = readPhase(files[0], Phase::step, "", context);
  if (!global)
    return global.takeError();
  auto local = readPhase(files[1], Phase::local, partition, context);
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
