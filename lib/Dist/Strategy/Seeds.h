//===- Seeds.h - strategies as seeds on index classes -----------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// The parts of dist-apply-strategy. A strategy knows no op and no model by name: it
// shards classes of indices (IndexClasses.h). The residual stream is the value that
// layers carry; every other index of a parameter that no op needs whole is an inner
// one: heads, groups of heads, the MLP's inner dimension.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_LIB_DIST_SEEDS_H
#define MESHWRIGHT_LIB_DIST_SEEDS_H

#include "Dist/Passes.h"
#include "Dist/Strategy/IndexClasses.h"

namespace meshwright::dist {

/// The part of an axis of n devices that shards an index: devices hold different shards if
/// their numbers divided by n/end differ modulo end/begin. [1, n) is the whole axis.
struct AxisPart {
  int64_t begin = 1, end = 1;
};

/// The index classes that tensor parallelism shards.
struct TensorClasses {
  /// For each inner class its part of the inner axis.
  llvm::DenseMap<unsigned, AxisPart> inner;
  /// For each class that recurrences divide along context its part of that axis.
  llvm::DenseMap<unsigned, AxisPart> channels;
  llvm::DenseSet<unsigned> residual;
};

/// Chooses the index classes for tensor parallelism of `inner` devices over all parameters
/// that have no seed. Refuses a program without an index to shard.
mlir::FailureOr<TensorClasses> chooseTensorClasses(mlir::ModuleOp module,
                                                   const IndexClasses &classes, int64_t inner);

/// Splits axis `name` into name.0 and name.1 if a class is sharded along parts of it.
mlir::LogicalResult splitAxis(mlir::ModuleOp module, const TensorClasses &chosen,
                              llvm::StringRef name, Mesh &mesh);

/// The index classes that ops which need the sequence whole are divided along, for the axes
/// `context` besides those of `tensor`: attention's heads, its queries, or both. Refuses heads
/// that they cannot divide evenly.
mlir::FailureOr<TensorClasses> chooseContextClasses(mlir::ModuleOp module,
                                                    const IndexClasses &classes,
                                                    const TensorClasses &tensor, const Mesh &mesh,
                                                    llvm::ArrayRef<unsigned> context,
                                                    ContextParallel how);

/// The channels of recurrences that `n` devices along context divide, for what `tensor` leaves of them.
llvm::DenseMap<unsigned, AxisPart> chooseChannels(mlir::ModuleOp module, const IndexClasses &classes,
                                                  const TensorClasses &tensor, int64_t n);

/// The mesh axes that make up one part of an axis.
Axes axesOf(const Mesh &mesh, llvm::ArrayRef<unsigned> axis, AxisPart part);

/// The index of the sequence in each function that has tokens.
llvm::SmallVector<Atoms::List> sequencesOf(mlir::ModuleOp module, const IndexClasses &classes);
/// The index of sequences in each function that has tokens.
llvm::SmallVector<Atoms::List> batchesOf(mlir::ModuleOp module, const IndexClasses &classes);

/// `sharding` with dimensions that are open but for those that it shards.
ShardingAttr withOpenDims(ShardingAttr sharding);

/// The seed of an op's result, or null.
ShardingAttr seedOf(mlir::OpResult result);
/// The seed of an op's result if the user wrote it, or null.
ShardingAttr userSeedOf(mlir::OpResult result);
/// Seeds a result, whatever seed it has. Without a reason the seed is the user's. The seeds and
/// reasons of the op's other results stay.
void seedResult(mlir::OpResult result, ShardingAttr sharding, llvm::StringRef reason);
/// Seeds a result as a strategy needs it. A user's seed stays where it shards the dimensions that
/// `sharding` shards alike, and is refused otherwise; `cause` says what needs the sharding.
mlir::LogicalResult seedOrAgree(mlir::OpResult result, ShardingAttr sharding, const Mesh &mesh,
                                llvm::StringRef reason, llvm::StringRef cause);

/// Writes seeds. Existing seeds stay.
class Seeder {
public:
  Seeder(mlir::ModuleOp module, mlir::FlatSymbolRefAttr meshName, Mesh mesh,
         const IndexClasses &classes)
      : module(module), meshName(meshName), mesh(std::move(mesh)), classes(classes) {}

  /// Seeds that the module's `dist.seeds` asks for by names of parameters and of values.
  mlir::LogicalResult userSeeds();
  /// Tokens, targets and sequence numbers are sharded along the batch.
  mlir::LogicalResult batch();
  /// Parameters and their states, as the classes say; all other parameters are replicated.
  /// Gradients get the sharding of their parameters.
  mlir::LogicalResult tensor(const TensorClasses &chosen, llvm::StringRef axis);
  /// The residual stream's sequence along context and, if `overTensor`, `axis`, see
  /// SequenceSeeds.cpp.
  mlir::LogicalResult sequence(const TensorClasses &chosen, const TensorClasses &context,
                               llvm::StringRef axis, bool overTensor);
  /// What enters and leaves recurrences, see RecurrenceSeeds.cpp: in place of ops that the index classes have.
  void redistribute(const TensorClasses &tensor, const TensorClasses &context, llvm::StringRef axis);
  /// What context divides of attention. Adds ops that the index classes do not have.
  mlir::LogicalResult attention(const TensorClasses &tensor, const TensorClasses &context,
                                llvm::StringRef axis);
  /// Experts and their rows along axis `expert`, see ExpertSeeds.cpp. Adds ops that the index
  /// classes do not have.
  mlir::LogicalResult experts();
  /// The reason why a parameter is replicated over some tensor ranks.
  void noteCopies(const TensorClasses &chosen);
  /// What devices know of signs that others make, see CompressionSeeds.cpp.
  void compression();
  /// The stored shardings of parameters, gradients and states, see ZeroSeeds.cpp.
  mlir::LogicalResult zero(int64_t level, llvm::ArrayRef<unsigned> axes, llvm::StringRef cause);
  /// The values that only the parameter server over `axes` holds, see ServerSeeds.cpp.
  mlir::LogicalResult server(llvm::ArrayRef<unsigned> axes);

private:
  /// Seeds the values of functions that "@function:value" matches.
  mlir::LogicalResult valueSeed(llvm::StringRef pattern, ShardingAttr wanted,
                                llvm::function_ref<mlir::InFlightDiagnostic()> error);
  Sharding shardingOf(train::VariableOp variable, const TensorClasses &chosen,
                      llvm::StringRef axis);
  ShardingAttr attr(const Sharding &sharding) {
    return ShardingAttr::from(meshName, mesh, sharding);
  }
  void seed(mlir::Operation *op, ShardingAttr sharding, llvm::StringRef reason);
  Sharding attentionSharding(mlir::Value value, const TensorClasses &tensor,
                             const TensorClasses &context, llvm::StringRef axis);

  mlir::ModuleOp module;
  mlir::FlatSymbolRefAttr meshName;
  Mesh mesh;
  const IndexClasses &classes;
};

/// Whether an op that needs an index whole can be rewritten into several ops that run with
/// the index sharded.
bool canRunSharded(mlir::Operation *op, int factor);

/// Calls of layers.
llvm::SmallVector<train::RepeatOp> layerCalls(mlir::ModuleOp module);

/// The sharding of a state whose parameter has `sharding`: the same but for dimensions that the state is
/// a mean over.
ShardingAttr shardingOfState(train::VariableOp state, train::VariableOp parameter,
                             ShardingAttr sharding);

/// That of a state of compression: blocks are sharded along the axes that shard the batch, or parts of their sum.
ShardingAttr shardingOfCompression(train::VariableOp state, ShardingAttr sharding, const Mesh &mesh, const IndexClasses &classes);

/// Refuses seeds with which devices have parts of such blocks, or rows with padding.
mlir::LogicalResult checkBlocks(mlir::ModuleOp module, const Mesh &mesh, const IndexClasses &classes);

/// Without the first dimension, along which layers are stacked.
ShardingAttr withoutLayers(ShardingAttr sharding, unsigned slices = 1);

/// An error that names the first flag or mesh axis whose seeds are not available.
/// Axes for which `seeded` is true are left to the user's seeds.
llvm::Error checkStrategy(const DistApplyStrategyOptions &strategy, const Mesh &mesh,
                          llvm::function_ref<bool(unsigned)> seeded);

/// An op that updates a parameter or its f32 copy, with the gradient it uses.
struct Update {
  train::UpdateOpInterface op;
  train::VariableOp parameter;
};
llvm::SmallVector<Update> updatesOf(mlir::ModuleOp module);

/// The states of variables and the ops that read and write them. Of a model with many different layers these are
/// thousands, which are found once and not for each of them.
struct VariableIndex {
  explicit VariableIndex(mlir::ModuleOp module);

  /// In the order of the module.
  llvm::ArrayRef<train::VariableOp> statesOf(train::VariableOp parameter) const;
  llvm::ArrayRef<train::GetOp> getsOf(train::VariableOp variable) const;
  llvm::ArrayRef<train::SetOp> setsOf(train::VariableOp variable) const;

private:
  template <typename Op> using ByName = llvm::DenseMap<mlir::StringAttr, llvm::SmallVector<Op, 4>>;
  ByName<train::VariableOp> states; ///< of optimizers, by parameter
  ByName<train::GetOp> gets;
  ByName<train::SetOp> sets;
};

/// Into how many blocks a row of `parameter` is divided in its states of 8 bits; 0 without these.
int64_t blocksOf(train::VariableOp parameter, const VariableIndex &index);

/// The op that adds its offset to the parameter of `update` where gradients are taken at the sum, or null.
train::AddOp gradientOffsetOf(Update update, const VariableIndex &index);

/// The uses that pass a gradient from the ops that compute it into the loops and
/// accumulators that end in `use`, and how often it has been sliced: once inside a layer. `symbols` are the module's.
void forEachRawGradient(const mlir::SymbolTable &symbols, mlir::OpOperand &use,
                        llvm::function_ref<void(mlir::OpOperand &, unsigned slices)> visit);

} // namespace meshwright::dist

#endif // MESHWRIGHT_LIB_DIST_SEEDS_H
