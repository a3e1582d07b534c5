//===- Compile.cpp - a model, through the passes, to IR of a phase ------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "CertifyCommand.h"
#include "DiagnosticCollector.h"
#include "Dist/Dist.h"
#include "Dist/Programs.h"
#include "Dist/Wire.h"
#include "Exec/Exec.h"
#include "ModuleText.h"
#include "PhaseTexts.h"
#include "Remedies.h"
#include "Train/Redistribution.h"
#include "Train/Train.h"
#include "meshwright/Frontend.h"
#include "meshwright/InputFile.h"
#include "meshwright/IrText.h"
#include "meshwright/Pipeline.h"
#include "meshwright/Remat.h"

#include "mlir/Pass/PassInstrumentation.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Path.h"

using namespace mlir;
using llvm::createStringError;
using llvm::Error;
using llvm::Expected;

namespace meshwright {

/// What IR that has reached a phase holds, for flags that are decided there.
static StringRef heldFrom(Phase phase) {
  switch (phase) {
  case Phase::train:
    return "whose operations and parameters hold what it decides; change the file";
  case Phase::step:
    return "whose layers are split and differentiated already; leave the flag out";
  case Phase::dist:
    return "whose tensors are sharded already; leave the flag out";
  case Phase::local:
    return "which is one device's program already; leave the flag out";
  case Phase::stages:
    return "whose recomputation is already decided; leave the flag out";
  case Phase::schedule:
    return "whose tasks and collectives are in order already; leave the flag out";
  case Phase::exec:
    return "whose memory is assigned already; leave the flag out";
  }
  llvm_unreachable("all stages are listed");
}

/// Refuses flags of earlier phases.
static Error checkUndecided(const CompileOptions &options, Phase phase) {
  for (const Flag &flag : compileFlags())
    if (flag.decided && phase >= *flag.decided && options.given.count(flag.name))
      return createStringError("--" + llvm::Twine(flag.name) + " cannot change '" + options.model +
                               "', " + heldFrom(*flag.decided));
  return Error::success();
}

/// Whether sequences of the program hold several documents.
static bool isPacked(ModuleOp module) {
  return module
      .walk([](FunctionOpInterface function) {
        for (unsigned i = 0; i < function.getNumArguments(); ++i)
          if (train::inputName(function, i) == "positions")
            return WalkResult::interrupt();
        return WalkResult::advance();
      })
      .wasInterrupted();
}

/// Refuses IR between two phases, which names only the last phase that it has reached.
static Error checkComplete(StringRef path, ModuleOp module) {
  auto pass = module->getAttrOfType<StringAttr>(dumpedAfterAttr);
  if (!pass)
    return Error::success();
  return createStringError("'" + path + "' was written by --dump-ir after " + pass.getValue() +
                           ", between phases, and cannot be compiled; --emit PHASE writes files "
                           "that can");
}

/// IR has its sizes in its types, and what earlier phases decided in its ops: a
/// flag that says otherwise must not be dropped silently.
static Error checkAgreement(const CompileOptions &options, ModuleOp module) {
  Expected<Phase> phase = phaseOf(module);
  if (!phase)
    return phase.takeError();
  auto check = [&](StringRef flag, const llvm::Twine &asked, const llvm::Twine &found) -> Error {
    if (!options.given.count(flag.str()) || asked.str() == found.str())
      return Error::success();
    return createStringError("--" + flag + " " + asked + " cannot change '" + options.model +
                             "', which is written for " + flag + " " + found +
                             "; leave the flag out or change the file");
  };
  auto size = [&](StringRef name) {
    std::optional<int64_t> size = train::moduleSize(module, name);
    return size ? std::to_string(*size) : "unknown";
  };
  if (Error error = checkUndecided(options, *phase))
    return error;
  if (Error error = check("batch", llvm::Twine(options.batch), size(train::batchAttr)))
    return error;
  if (Error error = check("seq", llvm::Twine(options.sequence), size(train::sequenceAttr)))
    return error;
  if (Error error = check("source-seq", llvm::Twine(options.sourceSequence), size(train::sourceSequenceAttr)))
    return error;
  if (Error error = check("microbatches", llvm::Twine(options.microbatches), size(train::microbatchesAttr)))
    return error;
  auto share = module->getAttrOfType<FloatAttr>(train::maskedShareAttr);
  if (Error error = check("mlm", optionText(options.maskedShare),
                          share ? optionText(Probability{share.getValueAsDouble()}) : "nothing"))
    return error;
  auto beta = module->getAttrOfType<FloatAttr>(train::dpoBetaAttr);
  if (Error error = check("loss", optionText(options.loss), optionText(beta ? Loss::dpo : Loss::crossEntropy)))
    return error;
  if (Error error = check("dpo-beta", optionText(options.dpoBeta),
                          beta ? optionText(Multiple{beta.getValueAsDouble()}) : "nothing"))
    return error;
  if (options.packed && !isPacked(module))
    return createStringError("--packed cannot change '" + options.model + "', whose @loss has no "
                             "input positions; leave the flag out, or compile the config.json with it");
  if (Error error = check("mask-id", optionText(options.maskToken), size(train::maskTokenAttr)))
    return error;
  if (*phase >= Phase::step) {
    auto optimizer = module->getAttrOfType<StringAttr>(train::optimizerAttr);
    if (Error error = check("optimizer", optionText(options.optimizer),
                            optimizer ? optimizer.str() : "no optimizer"))
      return error;
    auto precision = module->getAttrOfType<StringAttr>(train::precisionAttr);
    if (Error error =
            check("precision", optionText(options.precision), precision ? precision.str() : "f32"))
      return error;
    auto gradients = module->getAttrOfType<TypeAttr>(train::gradTypeAttr);
    bool narrow = gradients && gradients.getValue().isBF16();
    if (Error error = check("grad-dtype", optionText(options.gradDtype), narrow ? "bf16" : "f32"))
      return error;
  }
  if (*phase >= Phase::dist) {
    dist::Mesh mesh;
    for (auto op : module.getOps<dist::MeshOp>())
      mesh = op.getMesh();
    if (!dist::isRefinement(mesh, options.mesh))
      if (Error error = check("mesh", optionText(options.mesh), optionText(mesh)))
        return error;
    if (!options.seeds.empty())
      return createStringError("the recipe's seeds cannot change '" + options.model +
                               "', whose tensors are sharded already; leave them out");
  }
  StringRef target = exec::targetOf(dist::programsOf(module)[0]).getName();
  StringRef asked = options.getTarget().getName();
  if (*phase >= Phase::exec && asked != target)
    return createStringError("--target " + asked + " cannot change '" + options.model +
                             "', which is written for " + target + "; give --target " + target);
  return Error::success();
}

static Error checkText(StringRef path) {
  auto file = readInput(path, irInput, /*isText=*/true);
  if (!file)
    return createStringError("cannot read '" + path + "': " + toString(file.takeError()));
  return checkIrText(path, (*file)->getBuffer());
}

/// As in TRL's DPOTrainer.
static constexpr double defaultDpoBeta = 0.1;

Expected<OwningOpRef<ModuleOp>> loadModel(const CompileOptions &options, MLIRContext &context,
                                          llvm::raw_ostream &log) {
  DiagnosticCollector diagnostics(context, &log);
  if (llvm::sys::path::extension(options.model) == ".mlir") {
    if (Error error = checkText(options.model))
      return std::move(error);
    registerStableHLO(context);
    OwningOpRef<ModuleOp> module = readModule(options.model, context);
    if (!module)
      return diagnostics.take("cannot read '" + options.model + "'");
    if (isStableHLO(*module)) {
      ModelOptions model;
      model.microbatches = options.microbatches;
      FailureOr<OwningOpRef<ModuleOp>> imported = importStableHLO(*module, options.model, model);
      if (failed(imported))
        return diagnostics.take("cannot import '" + options.model + "'");
      module = std::move(*imported);
    }
    if (Error error = checkComplete(options.model, *module))
      return std::move(error);
    if (Error error = checkAgreement(options, *module))
      return std::move(error);
    return module;
  }
  ModelOptions model;
  model.batch = options.batch;
  model.sequence = options.sequence;
  model.tokens = options.tokensAtOnce;
  model.microbatches = options.microbatches;
  model.batchRamp = options.batchRamp;
  model.expertBlocks = options.mesh.size(options.mesh.named("expert"));
  model.contextParts = options.mesh.size(options.mesh.named("context"));
  model.sequenceParts = model.contextParts;
  if (options.sequenceParallel)
    model.sequenceParts *= options.mesh.size(options.mesh.named("tensor"));
  model.sourceSequence = options.sourceSequence;
  model.expertCapacity = options.expertCapacity.value;
  if (options.expertBuffer.value)
    model.expertBuffer = *options.expertBuffer.value;
  model.expertParts = options.expertParts;
  model.redundantExperts = options.redundantExperts;
  model.layers = options.layers;
  model.width = options.width;
  model.mupBase = options.mupBase;
  model.dropout = options.dropout.value;
  model.auxLoss = options.auxLoss;
  model.auxLossFactor = options.auxLossCoef.value;
  model.auxScope = options.auxScope;
  model.auxCountingPass = options.auxCountingPass;
  model.zLoss = options.zLoss.value;
  model.routerBiasRate = options.routerBiasRate.value;
  model.precision = options.precision;
  model.packed = options.packed;
  if (options.maskedShare.value)
    model.masked = {*options.maskedShare.value, options.maskToken.value.value_or(-1)};
  if (options.loss == Loss::dpo)
    model.dpoBeta = options.dpoBeta.value.value_or(defaultDpoBeta);
  if (model.batch == 0)
    model.batch = options.leastBatch();
  FailureOr<OwningOpRef<ModuleOp>> module = importHuggingFace(options.model, model, context);
  if (failed(module))
    return diagnostics.take("cannot import '" + options.model + "'");
  return std::move(*module);
}

/// The bytes that --remat auto, or else --memory-limit, gives a rank; without text if neither does.
static const Bytes &budgetOf(const CompileOptions &options) {
  const Bytes &own = options.remat.budget;
  return own.text.empty() ? options.memoryLimit : own;
}

/// What the backward finds in memory: what the user says, or for `auto` what compiling a copy of
/// `module`, which is at phase `from`, finds.
static Expected<ResidualChoice> residualsOf(const CompileOptions &options, ModuleOp module,
                                            Phase from, Phase to) {
  if (options.residuals != ResidualChoice::automatic || from > Phase::train || to < Phase::step ||
      budgetOf(options).text.empty())
    return options.residuals;
  DiagnosticCollector diagnostics(*module.getContext());
  auto chosen = chooseResiduals(module, options, budgetOf(options).count);
  if (chosen)
    return chosen;
  return diagnostics.take(toString(chosen.takeError()));
}

/// The policies of rematerialization: what the user says, or for `auto` what is found by
/// compiling copies of `module`, which is at phase `from`.
static Expected<std::vector<RematPolicy>> rematOf(const CompileOptions &options, ModuleOp module,
                                                  Phase from, Phase to, llvm::raw_ostream &log) {
  if (!options.remat.automatic)
    return options.remat.policies;
  const Bytes &budget = budgetOf(options);
  if (budget.text.empty())
    return createStringError("--remat auto needs the bytes a rank may use: --remat auto:70GiB or "
                             "--memory-limit 70GiB");
  if (from >= Phase::stages || to < Phase::stages)
    return options.remat.policies; // The pass is not among those that run.
  DiagnosticCollector diagnostics(*module.getContext());
  auto chosen = chooseRemat(module, options, from, budget.count, log);
  if (chosen)
    return chosen;
  Error error = chosen.takeError();
  if (error.isA<NothingFits>())
    return std::move(error);
  return diagnostics.take(toString(std::move(error)));
}

/// Whether something of each kind that --offload names is where it says, in any program.
static Error checkOffloaded(const Offload &offload, ModuleOp module) {
  bool states = false, stacks = false, layers = false;
  module.walk([&](exec::BufferOp buffer) {
    MemorySpace space = exec::spaceOf(buffer.getType());
    if (!isOffload(space))
      return;
    exec::Category category = buffer.getCategory();
    states |= category == exec::Category::Optimizer && space == offload.optimizer;
    stacks |= category == exec::Category::Activation && space == offload.activations;
    layers |= category == exec::Category::Parameter && space == offload.parameters;
  });
  if (isOffload(offload.optimizer) && !states) {
    auto keep = make_filter_range(train::optimizers(), [](auto *row) { return !row->states.empty(); });
    return createStringError(
        "--offload " + optionText(offload) + ": the optimizer keeps no state; of --optimizer " +
        llvm::join(map_range(keep, [](auto *row) -> StringRef { return row->name; }), ", ") +
        " do, and with --precision bf16 or fp16 all do");
  }
  if (isOffload(offload.activations) && !stacks)
    return createStringError("--offload " + optionText(offload) +
                             ": no layer saves activations that could be offloaded; leave "
                             "activations out");
  if (isOffload(offload.parameters) && !layers)
    return createStringError("--offload " + optionText(offload) +
                             ": no layer has parameters that could be offloaded; leave "
                             "parameters out");
  return Error::success();
}

/// Puts flags that only code generation reads into the target of a module at phase exec.
static Error changeTarget(ModuleOp module, const CompileOptions &options) {
  if (options.targetFlags.empty())
    return Error::success();
  const exec::Target &target = options.getTarget();
  auto parsed = target.parse(options.targetFlags, *module.getContext());
  if (!parsed)
    return parsed.takeError();
  NamedAttrList parameters(exec::targetOf(module).getParameters());
  for (const exec::TargetFlag &flag : target.getFlags())
    if (options.targetFlags.count(flag.name))
      if (Attribute value = parsed->get(flag.parameter))
        parameters.set(flag.parameter, value);
  module->setAttr(exec::targetAttr,
                  exec::TargetAttr::get(module.getContext(), target.getName(),
                                        parameters.getDictionary(module.getContext())));
  return Error::success();
}

namespace {
/// Prints the module when it has reached one of the phases that readers ask for.
class RecordPhases : public PassInstrumentation {
public:
  /// With `certify`, also the program that a certificate is of.
  RecordPhases(ModuleOp module, Certify certify, PhaseTexts &texts)
      : certify(certify), texts(texts) {
    record(module);
  }

  void runAfterPass(Pass *pass, Operation *op) override {
    if (auto module = dyn_cast<ModuleOp>(op); module && !op->getParentOp() && pass->getArgument() == "meshwright-phase")
      record(module);
  }

private:
  void record(ModuleOp module) {
    Expected<Phase> phase = phaseOf(module);
    bool isProved = phase && certify != Certify::none &&
                    (*phase == Phase::local || (*phase == Phase::schedule && certify == Certify::schedule &&
                                                !hasServers(module)));
    bool isWanted = phase && (*phase <= Phase::dist || isProved);
    if (isProved)
      texts.erase(Phase::local);
    if (isWanted) {
      std::string &text = texts[*phase];
      text.clear();
      llvm::raw_string_ostream os(text);
      printModule(module, os);
    }
    llvm::consumeError(phase.takeError());
  }

  Certify certify;
  PhaseTexts &texts;
};
} // namespace

Expected<OwningOpRef<ModuleOp>> compileTo(Phase to, const CompileOptions &options,
                                          MLIRContext &context, llvm::raw_ostream &log) {
  return compileRecording(to, options, context, log, /*record=*/nullptr);
}

/// Flags of attention change nothing for a model of recurrences alone, which axis `context` divides in a way of their own.
static Error checkAttends(const CompileOptions &options, ModuleOp module) {
  bool recurs = false, attends = false;
  module.walk([&](Operation *op) {
    auto slice = dyn_cast<train::SliceOp>(op);
    recurs |= slice && train::redistributes(slice);
    attends |= isa<train::AttentionOp>(op);
  });
  if (!recurs || attends)
    return Error::success();
  for (auto [flag, value] : {std::pair("context-parallel", optionText(options.contextParallel)),
                             std::pair("context-balance", optionText(options.contextBalance))})
    if (options.given.count(flag))
      return createStringError("--" + llvm::Twine(flag) + " " + value + " changes nothing: '" + options.model +
                               "' has no attention, and channels of recurrences and convolutions are divided along mesh axis "
                               "'context' whatever it says; leave the flag out");
  return Error::success();
}

Expected<OwningOpRef<ModuleOp>> compileRecording(Phase to, const CompileOptions &options,
                                                 MLIRContext &context, llvm::raw_ostream &log,
                                                 Record *record) {
  if (Error error = checkSupported(options))
    return std::move(error);
  Expected<OwningOpRef<ModuleOp>> loaded = loadModel(options, context, log);
  if (!loaded)
    return loaded;
  ModuleOp module = **loaded;

  Expected<Phase> from = phaseOf(module);
  if (!from)
    return from.takeError();
  if (*from > to)
    return createStringError("'" + options.model + "' is already at phase " + nameOf(*from) +
                             ", past --emit " + options.emit);
  bool certifies = options.certify != Certify::none;
  if (certifies && (*from > Phase::step || to < Phase::local))
    return createStringError("--certify compares the training graph with a rank's program: it needs a model, or IR "
                             "at phase train or step, and --emit local or a later phase");
  if (Error error = checkInsertedPasses(options, *from, to))
    return std::move(error);
  if (Error error = checkAttends(options, module))
    return std::move(error);
  if (!options.seeds.empty()) {
    Builder b(&context);
    auto entries = llvm::map_to_vector(options.seeds, [&](const auto &seed) -> Attribute {
      return b.getStrArrayAttr({seed.first, seed.second});
    });
    module->setAttr(dist::DistDialect::seedsAttr, b.getArrayAttr(entries));
  }
  if (options.gradReduceDtype != GradientWire::asSummed) {
    auto wire = StringAttr::get(&context, optionText(options.gradReduceDtype));
    if (auto has = module->getAttrOfType<StringAttr>(dist::gradientWireAttr); has && has != wire)
      return createStringError("--grad-reduce-dtype " + wire.getValue() + " cannot change '" + options.model + "', whose " +
                               dist::gradientWireAttr + " is " + has.getValue() + "; leave the flag out");
    module->setAttr(dist::gradientWireAttr, wire);
  }
  if (*from == Phase::exec)
    if (Error error = changeTarget(module, options))
      return std::move(error);
  CompileOptions asked = options;
  // IR that is sharded has its mesh, which need not be said again.
  if (*from >= Phase::dist)
    for (auto mesh : module.getOps<dist::MeshOp>())
      asked.mesh = mesh.getMesh();
  Expected<ResidualChoice> residuals = residualsOf(asked, module, *from, to);
  if (!residuals)
    return residuals.takeError();
  asked.residuals = *residuals;
  // Seeds of the program say what context shards.
  if (asked.contextParallel == ContextParallel::automatic &&
      llvm::any_of(dist::seededAxes(module), [](StringRef axis) { return axis.starts_with("context"); }))
    asked.contextParallel = ContextParallel::none;
  Expected<std::vector<RematPolicy>> remat = rematOf(asked, module, *from, to, log);
  if (!remat)
    return remat.takeError();
  asked.remat.policies = *remat;
  asked.remat.automatic = false;
  PassManager manager(&context);
  if (Error error = buildPipeline(manager, asked, *from, to))
    return std::move(error);
  if (!options.dumpIr.empty())
    if (Error error = dumpIrTo(manager, options.dumpIr, module))
      return std::move(error);
  if (certifies)
    certifyPhases(manager, module, options.certify == Certify::local ? Phase::local : to, log, record ? &record->certificate : nullptr);
  if (record)
    manager.addInstrumentation(std::make_unique<RecordPhases>(module, options.certify, record->texts));
  DiagnosticCollector diagnostics(context, &log);
  if (failed(manager.run(module)) || diagnostics.hasErrors())
    return diagnostics.take("compilation failed");
  if (to == Phase::exec && *from < Phase::exec)
    if (Error error = checkOffloaded(options.offload, module))
      return std::move(error);
  return loaded;
}

} // namespace meshwright
