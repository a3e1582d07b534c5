//===- Candidate.cpp - a layout that was compiled and simulated -------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Candidate.h"

#include "meshwright/Pipeline.h"
#include "meshwright/Register.h"
#include "meshwright/Report.h"

#include "mlir/IR/MLIRContext.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::planner;

CompileOptions planner::optionsOf(const CompileOptions &given, int64_t batch,
                                  const Layout &layout) {
  CompileOptions options = given;
  options.batch = batch;
  options.given.insert("batch");
  // The layout is the plan.
  options.plan.clear();
  options.devices = 0;
  options.given.erase("plan");
  options.given.erase("devices");
  for (const auto &entry : layout.flags()) {
    const Flag *flag =
        llvm::find_if(compileFlags(), [&](const Flag &f) { return entry.first == f.name; });
    options.given.insert(entry.first);
    llvm::cantFail(flag->read(entry.second, options));
  }
  return options;
}

/// Calls `use` with the compiled program and its plan.
static llvm::Error withProgram(const CompileOptions &options,
                               llvm::function_ref<llvm::Error(ModuleOp, const CompiledPlan &)> use) {
  DialectRegistry registry;
  registerDialects(registry);
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  context.loadAllAvailableDialects();
  context.printOpOnDiagnostic(false);
  llvm::raw_null_ostream log;
  auto module = compileTo(Phase::exec, options, context, log);
  if (!module)
    return module.takeError();
  llvm::Expected<CompiledPlan> plan = buildPlan(**module);
  return plan ? use(**module, *plan) : plan.takeError();
}

/// Bytes that a step copies from and to offload spaces.
static int64_t copiedBytes(const plan::Program &program) {
  int64_t bytes = 0;
  if (program.copiedBytes)
    if (auto step = program.copiedBytes->find("step"); step != program.copiedBytes->end())
      for (const auto &one : step->second.bytes)
        bytes += one.value_or(0);
  return bytes;
}

Candidate planner::simulate(const CompileOptions &options, const cost::Cluster &cluster) {
  return simulate(options, &cluster);
}

Candidate planner::simulate(const CompileOptions &options, const cost::Cluster *cluster) {
  Candidate candidate;
  auto use = [&](ModuleOp module, const CompiledPlan &plan) -> llvm::Error {
    candidate.bytes = plan.deviceBytes;
    candidate.needed = neededBytes(plan);
    candidate.flops = plan.flops - plan.recomputedFlops;
    candidate.recomputed = plan.recomputedFlops;
    for (const plan::Program &program : plan.programs)
      candidate.copied = std::max(candidate.copied, copiedBytes(program));
    if (!cluster)
      return llvm::Error::success();
    llvm::Expected<StepTime> step = predictStep(module, *cluster);
    if (!step)
      return step.takeError();
    candidate.seconds = step->seconds;
    candidate.parts = step->mean();
    return llvm::Error::success();
  };
  if (llvm::Error error = withProgram(options, use))
    candidate.refused = toString(std::move(error));
  return candidate;
}

Candidate planner::compileLayout(const Problem &problem, const Layout &layout) {
  Candidate candidate = simulate(optionsOf(problem.options, problem.batch, layout), problem.cluster);
  candidate.layout = layout;
  return candidate;
}

std::optional<int64_t> planner::bytesOf(const CompileOptions &options) {
  std::optional<int64_t> bytes;
  llvm::consumeError(withProgram(options, [&](ModuleOp, const CompiledPlan &plan) {
    bytes = plan.deviceBytes;
    return llvm::Error::success();
  }));
  return bytes;
}
