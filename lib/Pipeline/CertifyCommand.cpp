//===- CertifyCommand.cpp - `meshwright certify` and `compile --certify` -----===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "CertifyCommand.h"

#include "DiagnosticCollector.h"
#include "Dist/Programs.h"
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

bool hasServers(ModuleOp module) {
  return dist::hasPrograms(module) &&
         llvm::any_of(dist::programsOf(module),
                      [](ModuleOp program) { return !program->hasAttr(dist::heldAttr); });
}

namespace {
/// Keeps the global graph when the passes have reached phase step, and checks the program of a rank
/// against it at phase local, and at the last phase of floor 2 that the compile reaches, but for
/// parameter servers, which then have programs of their own. The proof of the later one counts.
class CertifyPhases : public PassInstrumentation {
public:
  CertifyPhases(ModuleOp module, Phase to, llvm::raw_ostream &log, std::string *kept)
      : last(std::min(to, Phase::schedule)), log(log), kept(kept) {
    keepGlobal(module);
  }
  /// With a global graph that is at hand.
  CertifyPhases(OwningOpRef<ModuleOp> global, llvm::raw_ostream &log)
      : log(log), global(std::move(global)), isKept(true) {}

  void runAfterPass(Pass *, Operation *op) override {
    auto module = dyn_cast<ModuleOp>(op);
    if (!module || module->getParentOp())
      return;
    keepGlobal(module);
    Expected<Phase> phase = phaseOf(module);
    if (!phase) {
      llvm::consumeError(phase.takeError());
      return;
    }
    if (!global || *phase == reached)
      return;
    reached = *phase;
    if (reached == Phase::local || (reached == last && !hasServers(module))) {
      ScopedDiagnosticHandler handler(module.getContext(), [&](Diagnostic &diagnostic) {
        if (certificate && diagnostic.getSeverity() == DiagnosticSeverity::Error)
          diagnostic << "; the program that dist-partition made, at phase local, is proved, and "
                        "--certify=local proves that alone";
        return failure(); // the handlers around this one print it
      });
      auto made = certify::certify(*global, module);
      if (succeeded(made))
        certificate = *made;
      else
        global = {};
    }
    if (reached == last && certificate && global)
      report();
  }

private:
  void report() {
    certify::print(*certificate, log);
    if (kept) {
      llvm::raw_string_ostream os(*kept);
      certificate->seconds.reset();
      certify::print(*certificate, os);
    }
    global = {};
  }
  void keepGlobal(ModuleOp module) {
    auto phase = module->getAttrOfType<StringAttr>(phaseAttr);
    if (!isKept && phase && phase.getValue() == nameOf(Phase::step)) {
      global = module.clone();
      isKept = true;
    }
  }

  Phase last = Phase::local, reached = Phase::train;
  std::optional<certify::Certificate> certificate;
  llvm::raw_ostream &log;
  std::string *kept = nullptr;
  OwningOpRef<ModuleOp> global;
  bool isKept = false;
};
} // namespace

void certifyPhases(PassManager &manager, ModuleOp module, Phase to, llvm::raw_ostream &log,
                   std::string *kept) {
  manager.addInstrumentation(std::make_unique<CertifyPhases>(module, to, log, kept));
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

/// Prints what was proved, which must be of the modules that a certificate names.
static Error compareHashes(StringRef file, StringRef carried, StringRef proved,
                           llvm::raw_ostream &os) {
  if (!carried.empty() && hashesOf(carried) != hashesOf(proved))
    return createStringError("'" + file + "' carries a certificate of " + hashesOf(carried) +
                             ", but its IR, which is proved, is " + hashesOf(proved) +
                             "; compile the model again with --certify");
  os << proved;
  return Error::success();
}

/// An executable that was certified carries the graph and the program of a rank. Others carry the graph's
/// shardings, of which the passes make the program at phase local again. A certificate that it carries must
/// be of the same modules.
static Error certifyExecutable(StringRef file, MLIRContext &context, llvm::raw_ostream &os) {
  Expected<PhaseTexts> texts = readEmbeddedIr(file);
  if (!texts)
    return texts.takeError();
  auto global = readCarried(*texts, Phase::step, file, context);
  if (!global)
    return global.takeError();
  Expected<std::string> carried = readCertificate(file);
  if (!carried)
    return carried.takeError();
  std::string proved;
  llvm::raw_string_ostream log(proved);
  Phase last = texts->rbegin()->first;
  auto program = readCarried(*texts, last < Phase::local ? Phase::dist : last, file, context);
  if (!program)
    return program.takeError();
  DiagnosticCollector diagnostics(context);
  if (last >= Phase::local) {
    auto certificate = certify::certify(**global, **program);
    if (failed(certificate))
      return diagnostics.take("not proved");
    certify::print(*certificate, log);
    return compareHashes(file, *carried, proved, os);
  }
  PassManager manager(&context);
  if (Error error = buildPipeline(manager, CompileOptions(), Phase::dist, Phase::local))
    return error;
  manager.addInstrumentation(std::make_unique<CertifyPhases>(std::move(*global), log));
  if (failed(manager.run(**program)) || diagnostics.hasErrors())
    return diagnostics.take("not proved");
  return compareHashes(file, *carried, proved, os);
}

/// A file of IR at one of the phases from `first` to `last`.
static Expected<OwningOpRef<ModuleOp>> readPhase(StringRef path, Phase first, Phase last,
                                                 MLIRContext &context) {
  DiagnosticCollector diagnostics(context);
  OwningOpRef<ModuleOp> module = readModule(path, context);
  if (!module)
    return diagnostics.take("cannot read '" + path + "'");
  Expected<Phase> phase = phaseOf(*module);
  if (!phase)
    return phase.takeError();
  // --dump-ir writes programs as dist-partition makes them, between phases.
  auto after = (*module)->getAttrOfType<StringAttr>(dumpedAfterAttr);
  bool isPartitioned = after && after.getValue() == "dist-partition" && first == Phase::local;
  if (after ? !isPartitioned : *phase < first || *phase > last)
    return createStringError("'" + path + "' is not IR at phase " + nameOf(first) +
                             (first == last ? "" : llvm::Twine(" to ") + nameOf(last)) +
                             "; `meshwright compile --emit " + nameOf(first) + "` writes it");
  return module;
}

Error certifyFiles(llvm::ArrayRef<std::string> files, MLIRContext &context, llvm::raw_ostream &os) {
  if (files.size() == 1)
    return certifyExecutable(files[0], context, os);
  auto global = readPhase(files[0], Phase::step, Phase::step, context);
  if (!global)
    return global.takeError();
  auto local = readPhase(files[1], Phase::local, Phase::schedule, context);
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
