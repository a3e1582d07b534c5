//===- StageParts.h - what of a training step belongs to which pipeline chunk ===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// Dataflow over the ops of one microbatch. The layers of a chunk are whole train.repeat
// ops, which say their chunk and whether they are forward or backward; the parts of all
// other ops follow from them:
//
// - forward ops are those that the layers and the loss need; an op before the layers
//   belongs to the first chunk that reads its result, an op after layers to their chunk;
// - a loop that computes a loss with its gradients is backward, with what reads the loss;
// - all other ops are backward; an op belongs to the chunk that its cotangent has reached;
// - an op that needs no layer and does not combine data and variables (a read of a
//   variable, rotary tables, masks, parts of the tokens) is free: it is repeated
//   wherever its result is read.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_LIB_DIST_STAGEPARTS_H
#define MESHWRIGHT_LIB_DIST_STAGEPARTS_H

#include "Dist/Dist.h"
#include "meshwright/PipelineSchedule.h"

#include "llvm/ADT/DenseMap.h"

namespace meshwright::dist {

/// A chunk's forward, backward or weight gradients: what becomes one function.
struct Part {
  int64_t chunk = 0;
  schedule::TaskKind kind = schedule::TaskKind::forward;

  bool operator==(const Part &other) const { return chunk == other.chunk && kind == other.kind; }
  bool operator<(const Part &other) const {
    return std::tie(chunk, kind) < std::tie(other.chunk, other.kind);
  }
};

/// The ops of one microbatch of @step or @eval, or of what @step counts beforehand.
struct MicrobatchOps {
  mlir::func::FuncOp function;
  /// The loop over microbatches, whose callee holds the ops; null where there is one
  /// microbatch, whose ops stand in `function` itself before what comes after them.
  train::RepeatOp loop;
  mlir::Block *block = nullptr;
  /// Of ops that are neither free nor after the last microbatch.
  llvm::DenseMap<mlir::Operation *, Part> parts;

  int64_t count() const { return loop ? const_cast<train::RepeatOp &>(loop).getCount() : 1; }
  /// The part that computes a value, or nothing: an argument, or free. It is a copy, because
  /// `parts` moves as it grows.
  std::optional<Part> partOf(mlir::Value value) const;
  /// Whether an op of the block or of `function` may be repeated where it is read.
  bool isFree(mlir::Operation *op) const { return free.contains(op); }
  /// Whether `value` is computed from an optimizer's state and variables alone: once a step and outside of tasks, since
  /// such states may be elsewhere than on the device.
  bool isOfState(mlir::Value value) const;

  llvm::DenseSet<mlir::Operation *> free;
};

/// The reads of variables from which a loop's operand is computed, but not by another loop.
llvm::SmallVector<train::GetOp> readsBehind(mlir::Value operand);

/// The loop over microbatches of `function` with this role, or null.
train::RepeatOp findLoop(mlir::func::FuncOp function, train::Role role);

/// Finds the parts; each of the `chunks` has some. Gradients of a variable that several
/// chunks read (tied embeddings) get one accumulator a chunk, added up after the last
/// microbatch. Refuses layers that do not say their chunk. `role`: of the loop whose microbatches
/// are meant, `microbatch` or `count`, which the last chunks need not be part of.
mlir::FailureOr<MicrobatchOps> findParts(mlir::func::FuncOp function, int64_t chunks,
                                         train::Role role = train::Role::Microbatch);

/// Takes the ops that only gradients of weights need out of the backward parts, into
/// weight parts; also out of the layers, which become two functions.
void splitWeights(MicrobatchOps &ops);

} // namespace meshwright::dist

#endif // MESHWRIGHT_LIB_DIST_STAGEPARTS_H
