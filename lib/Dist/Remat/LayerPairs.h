//===- LayerPairs.h - repeated layers and their backwards --------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// Rematerialization works on pairs of repeats: a forward repeat stacks values that only a
// backward repeat of the same length reads, slice by slice. Differentiation makes such
// pairs of the layers of a model.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_LIB_DIST_LAYERPAIRS_H
#define MESHWRIGHT_LIB_DIST_LAYERPAIRS_H

#include "meshwright/Cost/Device.h"
#include "Dist/Dist.h"
#include "RecomputeGraph.h"

#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/MapVector.h"

namespace meshwright::dist {

struct LayerPair {
  train::RepeatOp forward, backward;
  int64_t chunk = 0; ///< of the pipeline

  int64_t count() const { return train::RepeatOp(forward).getCount(); }
  mlir::func::FuncOp forwardFunction() const;
  mlir::func::FuncOp backwardFunction() const;
  /// Whether only `backward` uses this result of `forward`, a stack.
  bool isPassed(mlir::Value stack) const;
};

/// The pairs in all functions of `module`.
llvm::SmallVector<LayerPair> findLayerPairs(mlir::ModuleOp module);

/// The number of pipeline chunks into which the layers of `module` are split; 1 without chunks.
int64_t chunkCount(mlir::ModuleOp module);

/// The bytes of a tensor of this type.
int64_t bytesOf(mlir::Type type);

/// What running an op again costs on `device` in FLOPs, bytes that it sends by what those are worth;
/// infinity if it cannot.
double costOfOp(mlir::Operation *op, const cost::Device &device);
/// ... all of a function.
double costOfFunction(mlir::func::FuncOp function, const cost::Device &device);

/// A layer's forward as the graph of what may be kept or run again for its backward.
struct LayerGraph {
  LayerGraph(const LayerPair &pair, const cost::Device &device);

  RecomputeGraph graph;
  llvm::MapVector<mlir::Value, unsigned> values; ///< of the forward function
  llvm::SmallVector<mlir::Operation *> ops;
  int64_t residualBytes = 0; ///< of the residuals before any choice
  int64_t carryBytes = 0;    ///< of the carried values at the start of an iteration
};

/// Marks `op` as one that runs again, where its work is counted. `why` is a value of
/// `train.recomputed`, none for --remat.
void markRecomputed(mlir::Operation *op, llvm::StringRef why = "");

/// Keeps the residuals that `choice` names instead of the present ones, and recomputes all
/// others at the start of the backward function. `pair` becomes the new pair.
void applyChoice(LayerPair &pair, const LayerGraph &layer, const RecomputeChoice &choice,
                 llvm::StringRef why = "");

/// Turns both repeats into repeats over groups of `size` layers. The forward keeps the input
/// of each group; the backward of a group first runs the forward of its layers again. `pair`
/// becomes the pair inside of a group. `size` divides the number of layers.
void groupLayers(LayerPair &pair, int64_t size);

/// Copies `function` under a new name that begins with `name`.
mlir::func::FuncOp copyFunction(mlir::func::FuncOp function, llvm::StringRef name);
/// Sets the function's type from its arguments and its return.
void updateType(mlir::func::FuncOp function);
/// Erases `function` if it has no calls left.
void eraseIfUnused(mlir::func::FuncOp function);
/// A repeat of `callee` like `old` but for the given operands; does not replace uses.
train::RepeatOp rebuildRepeat(train::RepeatOp old, mlir::func::FuncOp callee,
                              mlir::ValueRange each, mlir::ValueRange shared, bool indexed);

} // namespace meshwright::dist

#endif // MESHWRIGHT_LIB_DIST_LAYERPAIRS_H
