//===- Seeds.h - strategies as seeds on index classes -----------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// The pieces of dist-apply-strategy. A strategy looks at no op and no model: it
// cuts classes of indices (IndexClasses.h). The residual stream is what the layers
// carry; every other index of a parameter that no op needs whole is an inner one:
// heads, groups of heads, the MLP's inner dimension.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_LIB_DIST_SEEDS_H
#define MESHWRIGHT_LIB_DIST_SEEDS_H

#include "Dist/Strategy/IndexClasses.h"
#include "meshwright/Strategy.h"

namespace meshwright::dist {

/// Which part of an axis cuts an index: of the axis' n devices, those whose number
/// divided by n/end, modulo end/begin, differs. [1, n) is the whole axis.
struct AxisPart {
  int64_t begin = 1, end = 1;
};

/// What tensor parallelism cuts.
struct TensorPlan {
  /// For each inner class its part of the inner axis.
  llvm::DenseMap<unsigned, AxisPart> inner;
  llvm::DenseSet<unsigned> residual;
};

/// Plans tensor parallelism of `inner` devices over all parameters that have no
/// seed. Refuses a program without anything to divide.
mlir::FailureOr<TensorPlan> planTensor(mlir::ModuleOp module, const IndexClasses &classes,
                                       int64_t inner);

/// Makes axis `name` one of parts name.0, name.1 where the plan cuts indices along
/// parts of it.
mlir::LogicalResult splitAxis(mlir::ModuleOp module, const TensorPlan &plan, llvm::StringRef name,
                              Mesh &mesh);

/// Writes seeds. Those that are there stay.
class Seeder {
public:
  Seeder(mlir::ModuleOp module, mlir::FlatSymbolRefAttr meshName, Mesh mesh,
         const IndexClasses &classes)
      : module(module), meshName(meshName), mesh(std::move(mesh)), classes(classes) {}

  /// Seeds that the module's `dist.seeds` asks for by parameters' names.
  mlir::LogicalResult userSeeds();
  /// Tokens, targets and sequence numbers are cut along the batch.
  mlir::LogicalResult batch();
  /// Parameters and their states, as the plan says; parameters it does not cut are
  /// whole on every device. Gradients are wanted where their parameters are.
  mlir::LogicalResult tensor(const TensorPlan &plan, llvm::StringRef axis);
  /// The residual stream's sequence, along the axes named.
  mlir::LogicalResult sequence(const TensorPlan &plan, llvm::StringRef axis);
  /// On parameters that some tensor ranks hold copies of: why.
  void noteCopies(const TensorPlan &plan);
  /// What parameters, gradients and states are stored as, see ZeroSeeds.cpp.
  mlir::LogicalResult zero(int64_t stage, llvm::ArrayRef<unsigned> axes);
  /// What only the parameter server over `axes` has, see ServerSeeds.cpp.
  mlir::LogicalResult server(llvm::ArrayRef<unsigned> axes);

private:
  Sharding shardingOf(train::VariableOp variable, const TensorPlan &plan, llvm::StringRef axis);
  ShardingAttr attr(const Sharding &sharding) {
    return ShardingAttr::from(meshName, mesh, sharding);
  }
  void seed(mlir::Operation *op, ShardingAttr sharding, llvm::StringRef reason);

  mlir::ModuleOp module;
  mlir::FlatSymbolRefAttr meshName;
  Mesh mesh;
  const IndexClasses &classes;
};

/// Whether an op that needs an index whole can run with it cut all the same,
/// written with more ops.
bool canRunCut(mlir::Operation *op, int factor);

/// Without the first dimension, along which layers are stacked.
ShardingAttr withoutLayers(ShardingAttr sharding);

/// Calls of layers: repeats with stacked variables among their slices.
llvm::SmallVector<train::RepeatOp> layerCalls(mlir::ModuleOp module);

/// An op that updates a parameter or its f32 copy, with the gradient it uses.
struct Update {
  train::UpdateOpInterface op;
  train::VariableOp parameter;
};
llvm::SmallVector<Update> updatesOf(mlir::ModuleOp module);

/// Where a gradient is made: the uses that hand on what ops computed into loops and
/// accumulators that end in `use`. `sliced` is true inside a layer.
void forEachRawGradient(mlir::ModuleOp module, mlir::OpOperand &use,
                        llvm::function_ref<void(mlir::OpOperand &, bool sliced)> visit);

} // namespace meshwright::dist

#endif // MESHWRIGHT_LIB_DIST_SEEDS_H
