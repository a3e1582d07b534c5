//===- Pipeline.h - from a model to an executable ----------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_PIPELINE_H
#define MESHWRIGHT_PIPELINE_H

#include "meshwright/Options.h"
#include "meshwright/PhasePass.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/Pass/PassManager.h"

namespace meshwright {

/// The phase called `name` by --emit, or nothing (llvm, object, exe).
std::optional<Phase> phaseNamed(llvm::StringRef name);
/// The name of `phase` for --emit.
llvm::StringRef nameOf(Phase phase);

/// The phase of a module: that in its attribute `meshwright.phase`, or
/// `train`.
llvm::Expected<Phase> phaseOf(mlir::ModuleOp module);

/// Appends the passes after `from` up to `to`, behind the verifier of `from`.
llvm::Error buildPipeline(mlir::OpPassManager &manager, const CompileOptions &options, Phase from,
                          Phase to);

/// Appends a part of the pipeline: the passes from `first` to `last`, which are names.
llvm::Error buildPipeline(mlir::OpPassManager &manager, const CompileOptions &options,
                          llvm::StringRef first, llvm::StringRef last);

/// Refuses passes inserted at places that a compile from one phase to another does not come by.
llvm::Error checkInsertedPasses(const CompileOptions &options, Phase from, Phase to);

/// Writes the order of the passes: a line for each phase, with what each pass depends on.
void printPassOrder(llvm::raw_ostream &os);

/// The policies of rematerialization, one for all stages of the pipeline or one for each, with the
/// least recomputation whose plans need at most `budget` bytes a rank, for a module at phase
/// `from`. Candidates of each stage are compiled, cheapest first, until one fits. Says what
/// it found to `log`. An error, with the smallest budget that could be met, if none does.
llvm::Expected<std::vector<RematPolicy>> chooseRemat(mlir::ModuleOp module, CompileOptions options,
                                                     Phase from, double budget,
                                                     llvm::raw_ostream &log);

/// What `--residuals auto` is for a module at phase `train`: written if the plan with these
/// residuals needs at most `budget` bytes a rank, otherwise least.
llvm::Expected<ResidualChoice> chooseResiduals(mlir::ModuleOp module, CompileOptions options,
                                               double budget);

/// Makes buildPipeline known as `--meshwright-pipeline`, with the flags that passes read and
/// `from` and `to` as options.
void registerPipeline();

/// Writes the module, and makes `manager` write it after each pass that changes it, to
/// `directory`/NN-pass.mlir; passes.txt beside them lists all passes.
llvm::Error dumpIrTo(mlir::PassManager &manager, llvm::StringRef directory, mlir::ModuleOp module);

/// The model description as a module: imports a config.json, parses .mlir.
llvm::Expected<mlir::OwningOpRef<mlir::ModuleOp>>
loadModel(const CompileOptions &options, mlir::MLIRContext &context, llvm::raw_ostream &log);

/// The model compiled as `options` say, as far as phase `to`. Remarks that they ask
/// for go to `log`.
llvm::Expected<mlir::OwningOpRef<mlir::ModuleOp>> compileTo(Phase to, const CompileOptions &options,
                                                            mlir::MLIRContext &context,
                                                            llvm::raw_ostream &log);

/// All of `meshwright compile`: writes what --emit asks for. `out` gets the
/// compiler's summary (arena, time) and notes, unless what --emit asks for is written there.
llvm::Error compile(const CompileOptions &options, mlir::MLIRContext &context,
                    llvm::raw_ostream &out);

/// `meshwright plot`: draws what files of --metrics say.
llvm::Error plot(llvm::ArrayRef<std::string> args, llvm::raw_ostream &os);

/// `meshwright fit MODEL --largest QUANTITY ...`: the largest batch, sequence or depth
/// whose plan is within `--memory-limit`. Writes each try and the answer to `os`.
llvm::Error fit(llvm::ArrayRef<std::string> args, mlir::MLIRContext &context,
                llvm::raw_ostream &os);

/// `meshwright predict MODEL --cluster CLUSTER ...`: how long a step takes there, and why.
llvm::Error predict(llvm::ArrayRef<std::string> args, mlir::MLIRContext &context,
                    llvm::raw_ostream &os);

/// `meshwright calibrate -o FILE`: measures this machine and writes it as a cluster file.
llvm::Error calibrateMachine(llvm::ArrayRef<std::string> args, mlir::MLIRContext &context,
                      llvm::raw_ostream &os);

/// `meshwright topology FILE --device NAME -o CLUSTER.toml`: a machine's links as a cluster file.
llvm::Error convertTopology(llvm::ArrayRef<std::string> args, llvm::raw_ostream &os);

/// `meshwright plan MODEL --cluster CLUSTER --devices N ...`: the layouts whose steps take least.
llvm::Error planLayout(llvm::ArrayRef<std::string> args, mlir::MLIRContext &context,
                       llvm::raw_ostream &os);

/// The options with the layout that `--plan auto` finds, which `log` is told of; without that flag as
/// they are.
llvm::Expected<CompileOptions> withPlan(const CompileOptions &options, mlir::MLIRContext &context,
                                        llvm::raw_ostream &log);

/// `meshwright convert SETTINGS`: flags for the settings of another training system.
llvm::Error convertSettings(llvm::ArrayRef<std::string> args, llvm::raw_ostream &os);

/// `meshwright inspect EXE`: the executable's plan as tables or as JSON, or its kernels.
llvm::Error inspect(llvm::ArrayRef<std::string> args, llvm::raw_ostream &os);

/// `meshwright schedule NAME --stages P --microbatches M ...`: the tasks of each
/// stage of a pipeline, and their times.
llvm::Error showSchedule(llvm::ArrayRef<std::string> args, llvm::raw_ostream &os);

/// `meshwright diff A B`: the differences of the plans of two executables
/// or report files, as tables; true if there are any.
llvm::Expected<bool> diff(llvm::StringRef a, llvm::StringRef b, llvm::raw_ostream &os);

/// `meshwright replay DIR`: runs the program of a dumped step in the interpreter from the
/// same inputs, and says which op is the first whose value diverges; true if one does.
llvm::Expected<bool> replay(llvm::StringRef directory, mlir::MLIRContext &context,
                            llvm::raw_ostream &os);

/// `meshwright coord-check MODEL --widths W1,W2,.. [--mup-base CONFIG] ...`: how large activations are at
/// several widths, as tables; true if some grow with the width.
llvm::Expected<bool> checkCoordinates(llvm::ArrayRef<std::string> args, mlir::MLIRContext &context,
                                      llvm::raw_ostream &os);

/// `meshwright verify MODEL ...`: trains a small model with the compiled program and with the sequential one, and prints
/// what differs; true if something does.
llvm::Expected<bool> verifyTraining(llvm::ArrayRef<std::string> args, mlir::MLIRContext &context,
                                    llvm::raw_ostream &os);

/// `meshwright run -n N EXE ARGS...`: replaces this process by the launched one;
/// returns only on failure.
llvm::Error run(llvm::ArrayRef<std::string> args);

/// The `checkpoint` command. `found` says whether it has found a difference or damage.
llvm::Error useCheckpoints(llvm::ArrayRef<std::string> args, bool &found);

} // namespace meshwright

#endif // MESHWRIGHT_PIPELINE_H
