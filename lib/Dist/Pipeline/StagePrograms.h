//===- StagePrograms.h - a program for each pipeline stage -------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_LIB_DIST_STAGEPROGRAMS_H
#define MESHWRIGHT_LIB_DIST_STAGEPROGRAMS_H

#include "meshwright/Cost/Device.h"
#include "StageParts.h"

#include "llvm/ADT/SetVector.h"

#include <map>

namespace meshwright::dist {

/// A part as a function of its own.
struct PartFunction {
  mlir::func::FuncOp function;
  /// Its arguments and results, as values of the microbatch's ops.
  llvm::SmallVector<mlir::Value> arguments, results;
};
using PartFunctions = std::map<Part, PartFunction>;

/// Makes a function of each part, called `prefix` and the part's name.
PartFunctions makeFunctions(MicrobatchOps &ops, llvm::StringRef prefix);

/// The stages that run the ops after the last microbatch. An op that reads results of one
/// stage runs on that stage; an op that reads results of several runs on every stage that
/// needs its result. Stages send each other the operands.
struct StageAssignment {
  static constexpr int64_t everywhere = -1;

  /// The stage that computes a value, or `everywhere`; nothing for free values.
  std::optional<int64_t> homeOf(mlir::Value value) const;
  /// A stage that holds the operands of `value`.
  int64_t ownerOf(mlir::Value value) const { return owner.lookup(value); }

  llvm::DenseMap<mlir::Value, int64_t> home, owner;
  std::vector<llvm::SetVector<mlir::Operation *>> ops; ///< by stage
  /// The stages to which the home of a value sends it.
  llvm::DenseMap<mlir::Value, llvm::SmallSetVector<int64_t, 2>> sentTo;
};

/// `holders`: the stages that hold a variable.
StageAssignment assignStages(MicrobatchOps &ops, mlir::ArrayRef<int64_t> stageOf, int64_t stages,
                             llvm::function_ref<mlir::ArrayRef<int64_t>(llvm::StringRef)> holders);

/// The facts from which `emitStage` makes the programs of all stages.
struct StageInputs {
  MicrobatchOps &ops;
  const PartFunctions &functions;
  const StageAssignment *after; ///< null: nothing comes after them but the microbatches they count for
  mlir::ArrayRef<int64_t> stageOf; ///< of each chunk
  int64_t stages;
  GroupAttr group; ///< the devices along the pipeline
  /// How devices with a replicated value divide sending it to another stage; a value of
  /// which each device sends a whole copy has no entry.
  struct Shares {
    GroupAttr group;
    int64_t dim;
  };
  const llvm::DenseMap<mlir::Value, Shares> &shares;
  const StageInputs *counts = nullptr; ///< of the microbatches that count beforehand, if some do
  int64_t firstChannel = 0;
};

/// How long a message to another stage takes, in seconds.
struct StageLinks {
  cost::Link between, inside; ///< to another stage, and among the devices of one

  /// Each device sends the whole value.
  double whole(double bytes) const;
  /// Each device sends one part of the replicated value; the receivers gather it in a ring.
  double shared(double bytes, int64_t devices) const;
};

/// For each value that one part passes to another and that devices should send in parts: the
/// first dimension that their number divides. Without `links` all values that can be divided.
llvm::DenseMap<mlir::Value, StageInputs::Shares> findShares(const PartFunctions &functions,
                                                            MeshOp mesh, GroupAttr pipeline,
                                                            std::optional<StageLinks> links);

/// Adds the function of `stage` to its program: one call for each part and microbatch. Ops
/// carry the name of their task.
void emitStage(const StageInputs &inputs, int64_t stage, mlir::ModuleOp program);

} // namespace meshwright::dist

#endif // MESHWRIGHT_LIB_DIST_STAGEPROGRAMS_H
