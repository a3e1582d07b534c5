//===- LayerPairs.h - repeated layers and their backwards --------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// What rematerialization works on: a forward repeat that stacks what a backward repeat
// of the same length reads, slice by slice, and nobody else does. Differentiation makes
// such pairs of the layers of a model.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_LIB_DIST_LAYERPAIRS_H
#define MESHWRIGHT_LIB_DIST_LAYERPAIRS_H

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
  /// Whether nobody but `backward` uses this result of `forward`, a stack.
  bool isHanded(mlir::Value stack) const;
};

/// The pairs in all functions of `module`.
llvm::SmallVector<LayerPair> findLayerPairs(mlir::ModuleOp module);

/// The chunks of a pipeline that the layers of `module` are cut into; 1 if they are not.
int64_t chunkCount(mlir::ModuleOp module);

/// What running an op again costs in FLOPs; infinity if it cannot.
double costOfOp(mlir::Operation *op);
/// ... all of a function.
double costOfFunction(mlir::func::FuncOp function);

/// A layer's forward as the graph of what may be kept or run again for its backward.
struct LayerGraph {
  explicit LayerGraph(const LayerPair &pair);

  RecomputeGraph graph;
  llvm::MapVector<mlir::Value, unsigned> values; ///< of the forward function
  llvm::SmallVector<mlir::Operation *> ops;
  int64_t residualBytes = 0; ///< handed to the backward today
  int64_t carryBytes = 0;    ///< what an iteration starts from
};

/// Keeps what `choice` says in place of what `pair` hands over today, and runs the
/// rest again at the start of the backward function. `pair` becomes the new one.
void applyChoice(LayerPair &pair, const LayerGraph &layer, const RecomputeChoice &choice);

/// Makes of both repeats repeats over groups of `size` layers, of which the forward
/// keeps what each starts from; the backward of a group first runs its layers
/// forward again. `pair` becomes the pair inside that. `size` divides the count.
void groupLayers(LayerPair &pair, int64_t size);

/// Copies `function` under a new name that begins with `name`.
mlir::func::FuncOp copyFunction(mlir::func::FuncOp function, llvm::StringRef name);
/// Makes the function's type that of its arguments and of what it returns.
void updateType(mlir::func::FuncOp function);
/// Removes `function` if nothing calls it any more.
void eraseIfUnused(mlir::func::FuncOp function);
/// Replaces `old` by a repeat of `callee` that differs as said; not its uses.
train::RepeatOp rebuildRepeat(train::RepeatOp old, mlir::func::FuncOp callee,
                              mlir::ValueRange each, mlir::ValueRange shared, bool indexed);

} // namespace meshwright::dist

#endif // MESHWRIGHT_LIB_DIST_LAYERPAIRS_H
