//===- CompileCommand.cpp - the `compile` command ----------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Decoder.h"
#include "DiagnosticCollector.h"
#include "Dist/Programs.h"
#include "Exec/Exec.h"
#include "ModuleText.h"
#include "Numbers.h"
#include "OutputFiles.h"
#include "PhaseTexts.h"
#include "Remedies.h"
#include "ReplayFiles.h"
#include "meshwright/AtomicFile.h"
#include "meshwright/Codegen.h"
#include "meshwright/ExecutionTrace.h"
#include "meshwright/Pipeline.h"
#include "meshwright/Remat.h"
#include "meshwright/Report.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"

#include <chrono>

using namespace mlir;
using llvm::createStringError;
using llvm::Error;
using llvm::Expected;

namespace meshwright {

/// Writes text completely or not at all; "-" is standard output. A file is named on standard error,
/// and `what` it holds.
static Error writeFile(StringRef path, StringRef text, const llvm::Twine &what) {
  if (path != "-") {
    Error error = writeFileAtomically(text, path);
    if (!error && llvm::sys::fs::is_regular_file(path))
      llvm::errs() << llvm::formatv("{0}: {1}, {2:N0} bytes\n", path, what.str(), text.size());
    return error;
  }
  llvm::outs() << text;
  llvm::outs().flush();
  std::error_code error = llvm::outs().error();
  llvm::outs().clear_error();
  return error ? createStringError("cannot write the standard output: " + error.message())
               : Error::success();
}

namespace {
/// One run of the command. Its stages are called in the order of their declarations.
class CompileCommand {
public:
  CompileCommand(const CompileOptions &options, MLIRContext &context, llvm::raw_ostream &out)
      : options(options), context(context), begin(std::chrono::steady_clock::now()),
        output(outputPath(options)),
        // What is said must not get into what is written.
        log(output == "-" ? llvm::errs() : out), emittedPhase(phaseNamed(options.emit)),
        to(emittedPhase.value_or(Phase::exec)) {}

  /// Refuses output that cannot be written, before anything is computed.
  Error prepareOutput() const;
  /// Imports the model and runs the passes; what does not fit is refused with remedies.
  Error runPasses();
  /// Refuses flags that need more of the IR than --emit asks for.
  Error checkPhase() const;
  /// Makes the plan and the report, and checks the plan against the limit and the assertions.
  Error checkPlan();
  /// Writes IR, text of a target, execution traces, an object or the executable.
  Error emit();

private:
  Error emitTraces();
  Error emitCode();
  Expected<std::string> emitDecoder();
  Error link(ArrayRef<std::string> objects);

  /// What --remat auto chose is within the device's limit already.
  BySpace<Bytes> budgets() const {
    BySpace<Bytes> budgets = options.budgets();
    if (options.remat.automatic)
      budgets[MemorySpace::Device] = {};
    return budgets;
  }
  bool hasLimit() const {
    return llvm::any_of(budgets().values, [](const Bytes &budget) { return !budget.text.empty(); });
  }
  exec::TargetAttr target() { return exec::targetOf(dist::programsOf(*module).front()); }
  /// Text that only this target has may be of kernels, in a module without anything else.
  bool isTargetText() {
    return llvm::is_contained(target().getTarget().getEmissions(), options.emit);
  }

  const CompileOptions &options;
  MLIRContext &context;
  std::chrono::steady_clock::time_point begin;
  std::string output;
  llvm::raw_ostream &log;
  std::optional<Phase> emittedPhase; ///< nothing where --emit is of code
  Phase to;                          ///< the last phase whose passes run
  OwningOpRef<ModuleOp> module;
  std::optional<CompiledPlan> plan;
  Record record; ///< of an executable
};
} // namespace

Error CompileCommand::prepareOutput() const {
  if (options.output.empty() && options.emit != "exe") {
    if (options.emit == "chakra")
      return createStringError("--emit chakra writes a file for each rank; name their folder with -o DIR");
    if (options.emit == "object")
      return createStringError("--emit object writes a file that is no text; name it with -o FILE");
    if (llvm::outs().is_displayed())
      return createStringError("--emit " + options.emit +
                               " would fill the terminal; give -o FILE, or send it through a "
                               "pipe, e.g. '| less'");
  }
  if (Error error = checkFiles(options))
    return error;
  if (options.emit == "chakra")
    if (Error error = prepareFolder("output", options.output))
      return error;
  for (auto [flag, folder] : {std::pair("report", &options.report), {"dump-ir", &options.dumpIr}})
    if (!folder->empty())
      if (Error error = prepareFolder(flag, *folder))
        return error;
  return Error::success();
}

Error CompileCommand::runPasses() {
  // Only executables carry IR and a certificate.
  Expected<OwningOpRef<ModuleOp>> compiled =
      compileRecording(to, options, context, log, options.emit == "exe" ? &record : nullptr);
  if (!compiled)
    return llvm::handleErrors(compiled.takeError(), [&](std::unique_ptr<NothingFits> refused) {
      refused->message += describeRemedies(options, *refused, context);
      return Error(std::move(refused));
    });
  module = std::move(*compiled);
  return Error::success();
}

Error CompileCommand::checkPhase() const {
  // A recipe is of an executable, whose earlier phases one may want to see all the same.
  auto isAsked = [&](const char *flag) {
    return options.given.count(flag) && !options.fromRecipe.count(flag);
  };
  for (const char *flag : {"report", "assert", "memory-limit"})
    if (to != Phase::exec && isAsked(flag) && (hasLimit() || flag != StringRef("memory-limit")))
      return createStringError("--" + llvm::Twine(flag) +
                               " needs the plan, which IR has from phase exec on; use --emit "
                               "exec, llvm, object or exe");
  if (to < Phase::dist && isAsked("explain-sharding"))
    return createStringError("--explain-sharding needs shardings, which IR has from phase dist on; use "
                             "--emit dist or a later phase");
  return Error::success();
}

Error CompileCommand::checkPlan() {
  bool isChecked = !options.report.empty() || !options.assertions.empty() || hasLimit();
  if (!(to == Phase::exec && isChecked) && (emittedPhase || isTargetText()))
    return Error::success();
  Expected<plan::List<plan::Setting>> numbers = numbersOf(options, *module);
  if (!numbers)
    return numbers.takeError();
  Expected<CompiledPlan> built =
      buildPlan(*module, !options.report.empty(), options.cluster.cluster.get(), std::move(*numbers));
  if (!built)
    return built.takeError();
  plan = std::move(*built);
  if (options.emit == "exe")
    if (Error error = checkReplaced(options, *plan))
      return error;
  if (const Bytes &budget = budgets()[MemorySpace::Device]; !budget.text.empty()) {
    plan->limit = budget.count;
    plan->limitSource = spaceRow(MemorySpace::Device).budgetFlag;
  }
  if (!options.report.empty())
    if (Error error = writeReport(*plan, options.report))
      return error;
  BySpace<int64_t> needed = neededBytes(*plan);
  if (std::optional<MemorySpace> space = exceeded(needed, budgets())) {
    bool isDevice = *space == MemorySpace::Device;
    std::string where = isDevice ? "" : std::string(" on ") + spaceRow(*space).text;
    if (isDevice && plan->deviceBytes > plan->arenaBytes)
      where = llvm::formatv(", {0:N0} for the arena and the rest for libraries and drivers",
                            plan->arenaBytes);
    // A number alone is bytes, which is rarely what was meant by a small one.
    std::string budget = budgets()[*space].text;
    bool lacksUnit = budgets()[*space].count < (1 << 20) && llvm::all_of(budget, llvm::isDigit);
    return createStringError(llvm::formatv(
        "the plan needs {0:N0} bytes a rank{1}, more than {2} {3}; {4}", needed[*space], where, spaceRow(*space).budgetFlag, budget,
        lacksUnit ? "without a unit it is bytes; write e.g. " + budget + "GiB"
                  : "--remat auto searches for activation checkpointing that fits"));
  }
  for (const std::string &condition : options.assertions)
    if (Error error = checkAssertion(*plan, condition))
      return error;
  return Error::success();
}

Error CompileCommand::emit() {
  DiagnosticCollector diagnostics(context);
  auto textOf = [&](const exec::Target &by, DictionaryAttr parameters,
                    const llvm::Twine &what) -> Error {
    FailureOr<std::string> text = by.emit(options.emit, *module, parameters);
    return failed(text) ? diagnostics.take("code generation failed")
                        : writeFile(output, *text, what);
  };
  const exec::Target &asked = options.getTarget();
  if (llvm::is_contained(asked.getExits(), options.emit))
    return textOf(asked, {}, options.emit + " for " + asked.getName());
  if (emittedPhase) {
    std::string text;
    llvm::raw_string_ostream os(text);
    printModule(*module, os);
    return writeFile(output, text, "IR at phase " + llvm::Twine(options.emit));
  }
  if (isTargetText())
    return textOf(target().getTarget(), target().getParameters(), options.emit);
  if (options.emit == "chakra")
    return emitTraces();
  return emitCode();
}

Error CompileCommand::emitTraces() {
  if (Error error = writeExecutionTraces(*module, options.cluster.cluster.get(), output))
    return error;
  log << llvm::formatv("{0}: step.RANK.et of {1} {2}, and groups.json{3}\n", output, ranksOf(*plan),
                       ranksOf(*plan) == 1 ? "rank" : "ranks",
                       options.cluster ? "" : "; without --cluster, nodes have FLOPs and bytes but no times");
  return Error::success();
}

Error CompileCommand::emitCode() {
  DiagnosticCollector diagnostics(context);
  const exec::Target &compiler = target().getTarget();
  CodegenOptions codegen;
  codegen.cpu = compiler.getHostProcessor(target().getParameters());
  codegen.plan = plan->json;
  Expected<std::string> program = tensorForm(*module);
  if (!program)
    return program.takeError();
  codegen.program = *program;
  std::vector<std::string> objects(1);
  if (options.emit == "exe") {
    Expected<std::string> decoder = emitDecoder();
    if (decoder)
      objects.push_back(std::move(*decoder));
    else
      codegen.noDecoder = toString(decoder.takeError());
  }
  auto lowered = compiler.lower(*module, codegen, target().getParameters(), log);
  if (failed(lowered))
    return diagnostics.take("code generation failed");
  embedIr(**lowered, record.texts);
  embedCertificate(**lowered, record.certificate);
  bool isText = options.emit == "llvm";
  FailureOr<std::string> code =
      isText ? emitLLVM(**lowered, codegen) : emitObject(**lowered, codegen);
  if (failed(code))
    return diagnostics.take("code generation failed");
  if (options.emit != "exe")
    return writeFile(output, *code, isText ? "LLVM IR" : "object");
  objects.front() = std::move(*code);
  return link(objects);
}

Expected<std::string> CompileCommand::emitDecoder() {
  const exec::Target &compiler = target().getTarget();
  if (!compiler.generates())
    return createStringError("executables for " + compiler.getName() +
                             " have no decoder; one for cpu generates from the same checkpoints");
  Expected<OwningOpRef<ModuleOp>> decoder = compileDecoder(options, plan->sequence, context);
  if (!decoder)
    return decoder.takeError();
  Expected<CompiledPlan> its = buildPlan(**decoder);
  if (!its)
    return its.takeError();
  DiagnosticCollector diagnostics(context);
  CodegenOptions codegen;
  codegen.cpu = compiler.getHostProcessor(target().getParameters());
  codegen.plan = its->json;
  codegen.isDecoder = true;
  auto lowered = compiler.lower(**decoder, codegen, target().getParameters(), log);
  if (failed(lowered))
    return diagnostics.take("code generation failed");
  FailureOr<std::string> object = emitObject(**lowered, codegen);
  if (failed(object))
    return diagnostics.take("code generation failed");
  return *object;
}

Error CompileCommand::link(ArrayRef<std::string> objects) {
  LinkOptions files;
  files.files = target().getTarget().getRuntimeFiles();
  if (Error error = linkExecutable(objects, output, files))
    return error;
  double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  log << llvm::formatv("{0}: {1} {2}, arena {3:N0} bytes a rank{4}, compiled in {5:f1} s\n", output,
                       ranksOf(*plan), ranksOf(*plan) == 1 ? "rank" : "ranks", plan->arenaBytes,
                       offloadedText(neededBytes(*plan)), seconds);
  return Error::success();
}

Error compile(const CompileOptions &given, MLIRContext &context, llvm::raw_ostream &out) {
  // What is said must not get into what is written.
  llvm::raw_ostream &log = outputPath(given) == "-" ? llvm::errs() : out;
  if (!given.plan.empty()) // A search takes a minute.
    if (Error error = CompileCommand(given, context, out).prepareOutput())
      return error;
  Expected<CompileOptions> options = withPlan(given, context, log);
  if (!options)
    return options.takeError();
  CompileCommand command(*options, context, out);
  if (Error error = command.prepareOutput())
    return error;
  if (Error error = command.runPasses())
    return error;
  if (Error error = command.checkPhase())
    return error;
  if (Error error = command.checkPlan())
    return error;
  return command.emit();
}

} // namespace meshwright
