//===- StagePrograms.h - a program for each pipeline stage -------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_LIB_DIST_STAGEPROGRAMS_H
#define MESHWRIGHT_LIB_DIST_STAGEPROGRAMS_H

#include "StageParts.h"

#include "llvm/ADT/SetVector.h"

#include <map>

namespace meshwright::dist {

/// A part as a function of its own.
struct PartFunction {
  mlir::func::FuncOp function;
  /// What it takes and gives, as values of the microbatch's ops.
  llvm::SmallVector<mlir::Value> arguments, results;
};
using PartFunctions = std::map<Part, PartFunction>;

/// Makes a function of each part, called `prefix` and the part's name.
PartFunctions makeFunctions(MicrobatchOps &ops, llvm::StringRef prefix);

/// Where the ops after the last microbatch run: those that read results of one stage
/// there, those where several meet on every stage that needs them. What the others
/// need is sent.
struct AfterPlan {
  static constexpr int64_t everywhere = -1;

  /// The stage that computes a value, or `everywhere`; nothing for what is free.
  std::optional<int64_t> homeOf(mlir::Value value) const;
  /// A stage that holds what `value` is made of.
  int64_t ownerOf(mlir::Value value) const { return owner.lookup(value); }

  llvm::DenseMap<mlir::Value, int64_t> home, owner;
  std::vector<llvm::SetVector<mlir::Operation *>> ops; ///< by stage
  /// Stages that a value is sent to from its home.
  llvm::DenseMap<mlir::Value, llvm::SmallSetVector<int64_t, 2>> sentTo;
};

/// `holders`: the stages that hold a variable.
AfterPlan planAfter(MicrobatchOps &ops, mlir::ArrayRef<int64_t> stageOf, int64_t stages,
                    llvm::function_ref<mlir::ArrayRef<int64_t>(llvm::StringRef)> holders);

/// What makes the programs of all stages from one function.
struct StagePlan {
  MicrobatchOps &ops;
  const PartFunctions &functions;
  const AfterPlan &after;
  mlir::ArrayRef<int64_t> stageOf; ///< of each chunk
  int64_t stages;
  GroupAttr group; ///< the devices along the pipeline
  /// How devices with copies of a value share out sending it to another stage: the
  /// value's key is absent where each sends all of it.
  struct Shares {
    GroupAttr group;
    int64_t dim;
  };
  const llvm::DenseMap<mlir::Value, Shares> &shares;
};

/// How long a message to another stage takes, in seconds.
struct LinkSpeeds {
  double between, inside; ///< bytes a second to another stage, and among the devices of one
  double latency;

  /// Each device sends the whole value.
  double whole(double bytes) const;
  /// Each of those with copies sends a part, which they gather in a ring.
  double shared(double bytes, int64_t devices) const;
};

/// For what one part hands to another, where devices with copies had better share it out: the
/// first dimension that they divide. Without `speeds` wherever they can.
llvm::DenseMap<mlir::Value, StagePlan::Shares> findShares(const PartFunctions &functions,
                                                          MeshOp mesh, GroupAttr pipeline,
                                                          std::optional<LinkSpeeds> speeds);

/// Adds the function of `stage` to its program: one call a part and microbatch, ops of
/// which carry the name of their task.
void emitStage(const StagePlan &plan, int64_t stage, mlir::ModuleOp program);

} // namespace meshwright::dist

#endif // MESHWRIGHT_LIB_DIST_STAGEPROGRAMS_H
