//===- Pipeline.h - from a model to an executable ----------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_PIPELINE_H
#define MESHWRIGHT_PIPELINE_H

#include "meshwright/Options.h"
#include "meshwright/StagedPass.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/Pass/PassManager.h"

namespace meshwright {

/// What a pipeline needs to know; the flags of the same names.
struct PipelineOptions {
  std::string mesh, optimizer = "adamw";
  int64_t zero = 0;
  bool sequenceParallel = false, tensor2d = false;
  std::string explainSharding; ///< a variable or input; empty: none
  std::string precision = "f32", gradDtype = "f32";
  std::string schedule = "1f1b", cuts;
  std::string dataSync = "all-reduce";
  std::string target; ///< empty: the default target
  exec::FlagValues targetFlags;
  std::string collectiveAlgorithm = "native";
  std::string collectiveMatmul = "off";
  std::string overlap = "off";
  std::string remat = "none"; ///< policies, one for all stages or one for each
  bool replay = false;
  std::string offload; ///< what is on the host: optimizer, activations or both
  int64_t offloadBytes = 32 << 20; ///< of the largest part of a state that passes through the device
};

/// The stage called `name` by --emit, or nothing (llvm, object, exe).
std::optional<Stage> stageNamed(llvm::StringRef name);
/// What --emit calls `stage`.
llvm::StringRef nameOf(Stage stage);

/// The stage IR is at: what the module's attribute `meshwright.stage` says, or
/// `train`.
llvm::Expected<Stage> stageOf(mlir::ModuleOp module);

/// Appends the passes after `from` up to `to`. The one definition of their order.
llvm::Error buildPipeline(mlir::OpPassManager &manager, const PipelineOptions &options, Stage from,
                          Stage to);

/// The policies of rematerialization, one for each stage of the pipeline, with the least
/// recomputation whose plans need at most `budget` bytes a rank, for a module at stage
/// `from`. Candidates of each stage are compiled, cheapest first, until one fits. Says what
/// it found to `log`. An error, with the smallest budget that could be met, if none does.
llvm::Expected<std::string> chooseRemat(mlir::ModuleOp module, PipelineOptions options, Stage from,
                                        double budget, llvm::raw_ostream &log);

/// Makes buildPipeline known as `--meshwright-pipeline`, with options mesh,
/// optimizer, zero, sequence-parallel, tensor-2d, precision, grad-dtype, schedule, cuts,
/// target, target-flags, collective-algorithm, collective-matmul, overlap, remat, replay, offload,
/// offload-bytes, from and to.
void registerPipeline();

/// Makes `manager` write the module after each pass to `directory`/NN-pass.mlir.
llvm::Error dumpIrTo(mlir::PassManager &manager, llvm::StringRef directory);

/// The model description as a module: imports a config.json, parses .mlir.
llvm::Expected<mlir::OwningOpRef<mlir::ModuleOp>> loadModel(const CompileOptions &options,
                                                            mlir::MLIRContext &context);

/// The model compiled as `options` say, as far as stage `to`. Remarks that they ask
/// for go to `log`.
llvm::Expected<mlir::OwningOpRef<mlir::ModuleOp>> compileTo(Stage to, const CompileOptions &options,
                                                            mlir::MLIRContext &context,
                                                            llvm::raw_ostream &log);

/// All of `meshwright compile`: writes what --emit asks for. `log` gets the
/// compiler's summary (arena, time).
llvm::Error compile(const CompileOptions &options, mlir::MLIRContext &context,
                    llvm::raw_ostream &log);

/// `meshwright fit MODEL --largest QUANTITY ...`: the largest batch, sequence or depth
/// whose plan is within `--memory-limit`. Writes each try and the answer to `os`.
llvm::Error fit(llvm::ArrayRef<std::string> args, mlir::MLIRContext &context,
                llvm::raw_ostream &os);

/// `meshwright inspect EXE`: the executable's plan as tables or as JSON, or its kernels.
llvm::Error inspect(llvm::ArrayRef<std::string> args, llvm::raw_ostream &os);

/// `meshwright schedule NAME --stages P --microbatches M ...`: what each stage of a
/// pipeline does when.
llvm::Error showSchedule(llvm::ArrayRef<std::string> args, llvm::raw_ostream &os);

/// `meshwright diff A B`: what the plans of two executables or report files say
/// differently, as tables; true if they differ.
llvm::Expected<bool> diff(llvm::StringRef a, llvm::StringRef b, llvm::raw_ostream &os);

/// `meshwright replay DIR`: runs the program of a dumped step in the interpreter from the
/// same inputs, and says which op is the first whose value diverges; true if one does.
llvm::Expected<bool> replay(llvm::StringRef directory, mlir::MLIRContext &context,
                            llvm::raw_ostream &os);

/// `meshwright run -n N EXE ARGS...`: replaces this process by the launched one;
/// returns only on failure.
llvm::Error run(llvm::ArrayRef<std::string> args);

} // namespace meshwright

#endif // MESHWRIGHT_PIPELINE_H
