//===- Compile.cpp - the `compile` command -----------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "meshwright/Codegen.h"
#include "meshwright/Frontend.h"
#include "meshwright/Pipeline.h"
#include "meshwright/Report.h"
#include "meshwright/Strategy.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/ToolOutputFile.h"

#include <chrono>

using namespace mlir;
using llvm::createStringError;
using llvm::Error;
using llvm::Expected;

namespace meshwright {

/// Collects what MLIR reports while alive, so that it becomes one error.
namespace {
class DiagnosticCollector {
public:
  explicit DiagnosticCollector(MLIRContext &context)
      : handler(&context, [this](Diagnostic &diagnostic) {
          llvm::raw_string_ostream os(text);
          if (diagnostic.getSeverity() == DiagnosticSeverity::Error ||
              diagnostic.getSeverity() == DiagnosticSeverity::Note) {
            if (!isa<UnknownLoc>(diagnostic.getLocation()))
              os << diagnostic.getLocation() << ": ";
            os << diagnostic << "\n";
          }
          return success();
        }) {}

  Error take(const llvm::Twine &otherwise) {
    std::string message = StringRef(text).rtrim().str();
    return createStringError(message.empty() ? otherwise.str() : message);
  }

private:
  std::string text;
  ScopedDiagnosticHandler handler;
};
} // namespace

/// The batch when none is given: one sequence a rank of the batch and microbatch.
static Expected<int64_t> defaultBatch(const CompileOptions &options) {
  Expected<dist::Mesh> mesh = dist::parseMesh(options.mesh);
  if (!mesh)
    return mesh.takeError();
  return dist::batchParts(*mesh) * options.microbatches;
}

Expected<OwningOpRef<ModuleOp>> loadModel(const CompileOptions &options, MLIRContext &context) {
  DiagnosticCollector diagnostics(context);
  if (llvm::sys::path::extension(options.model) == ".mlir") {
    OwningOpRef<ModuleOp> module = parseSourceFile<ModuleOp>(options.model, &context);
    if (!module)
      return diagnostics.take("cannot read '" + options.model + "'");
    return module;
  }
  ModelOptions model;
  model.batch = options.batch;
  model.sequence = options.sequence;
  model.microbatches = options.microbatches;
  if (!options.dropout.empty()) {
    double rate = 0;
    if (StringRef(options.dropout).getAsDouble(rate) || rate < 0 || rate >= 1)
      return createStringError("--dropout '" + options.dropout + "' must be a number in [0, 1)");
    model.dropout = rate;
  }
  if (model.batch == 0) {
    Expected<int64_t> batch = defaultBatch(options);
    if (!batch)
      return batch.takeError();
    model.batch = *batch;
  }
  FailureOr<OwningOpRef<ModuleOp>> module = importHuggingFace(options.model, model, context);
  if (failed(module))
    return diagnostics.take("cannot import '" + options.model + "'");
  return std::move(*module);
}

/// Writes text completely or not at all.
static Error writeFile(StringRef path, StringRef text) {
  std::error_code error;
  llvm::ToolOutputFile file(path, error, llvm::sys::fs::OF_None);
  if (error)
    return createStringError("cannot write '" + path + "': " + error.message());
  file.os() << text;
  file.os().flush();
  if (file.os().has_error()) {
    error = file.os().error();
    file.os().clear_error();
    return createStringError("cannot write '" + path + "': " + error.message());
  }
  file.keep();
  return Error::success();
}

static std::string outputPath(const CompileOptions &options) {
  if (!options.output.empty())
    return options.output;
  return options.emit == "exe" ? llvm::sys::path::stem(options.model).str() : "-";
}

Error compile(const CompileOptions &options, MLIRContext &context, llvm::raw_ostream &log) {
  auto begin = std::chrono::steady_clock::now();
  if (Error error = checkSupported(options))
    return error;
  Expected<OwningOpRef<ModuleOp>> loaded = loadModel(options, context);
  if (!loaded)
    return loaded.takeError();
  ModuleOp module = **loaded;

  Expected<Stage> from = stageOf(module);
  if (!from)
    return from.takeError();
  Stage to = stageNamed(options.emit).value_or(Stage::exec);
  if (*from > to)
    return createStringError("'" + options.model + "' is already at stage " + nameOf(*from) +
                             ", past --emit " + options.emit);
  PipelineOptions pipeline{options.mesh, options.optimizer};
  PassManager manager(&context);
  if (Error error = buildPipeline(manager, pipeline, *from, to))
    return error;
  if (!options.dumpIr.empty())
    if (Error error = dumpIrTo(manager, options.dumpIr))
      return error;
  {
    DiagnosticCollector diagnostics(context);
    if (failed(manager.run(module)))
      return diagnostics.take("compilation failed");
  }

  std::string output = outputPath(options);
  if (stageNamed(options.emit)) {
    std::string text;
    llvm::raw_string_ostream os(text);
    module.print(os);
    os << "\n";
    return writeFile(output, text);
  }
  Expected<Plan> plan = buildPlan(module);
  if (!plan)
    return plan.takeError();
  if (!options.report.empty())
    if (Error error = writeReport(*plan, options.report))
      return error;
  for (const std::string &condition : options.assertions)
    if (Error error = checkAssertion(*plan, condition))
      return error;

  CodegenOptions target;
  target.cpu = options.cpu == "native" ? "" : options.cpu;
  target.plan = plan->json;
  DiagnosticCollector diagnostics(context);
  if (options.emit == "llvm") {
    FailureOr<std::string> text = emitLLVM(module, target);
    return failed(text) ? diagnostics.take("code generation failed") : writeFile(output, *text);
  }
  FailureOr<std::string> object = emitObject(module, target);
  if (failed(object))
    return diagnostics.take("code generation failed");
  if (options.emit == "object")
    return writeFileAtomically(*object, output);
  if (Error error = linkExecutable(*object, output))
    return error;
  double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  log << llvm::formatv("{0}: {1} ranks, arena {2:N0} bytes a rank, compiled in {3:f1} s\n", output,
                       plan->ranks, plan->arenaBytes, seconds);
  return Error::success();
}

} // namespace meshwright
