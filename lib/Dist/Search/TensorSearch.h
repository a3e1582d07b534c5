//===- TensorSearch.h - how each tensor of a step is sharded ----------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// The choice of shardings as a sum of tables (TableSum.h), after Alpa's search within
// operators (Zheng et al. 2022). A variable for each op says how the op's factors have the
// mesh axes, or through which operands partial sums pass; one for each value that crosses
// functions, iterations or variables says how it is kept. Tables have seconds of a step on
// a cluster: of what an op computes and moves, by its own variable; of what a reshard
// sends, by those of the value's maker and its user. Optimizer states, updates and,
// where a parameter is sharded, gradients are sharded as it is, as its seed makes them. A value
// that several ops use may also be there in a second sharding, which is made once. Functions count
// as often as they run, so layers that repeat are solved once.
//
// An op that needs an index whole for sums over it is split where that index of a parameter,
// or of what layers pass on, is sharded, and so are all others with that index.
//
// What the compiler does later and the tables do not have: fusion but for that of
// neighbouring memory-bound ops, overlap, activation checkpointing. So the seeds that are
// found are compiled and simulated before they are used.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_LIB_DIST_TENSORSEARCH_H
#define MESHWRIGHT_LIB_DIST_TENSORSEARCH_H

#include "Dist/Propagation/FactorAxes.h"
#include "Dist/Propagation/ValueBinding.h"
#include "Dist/Search/TableSum.h"
#include "Dist/Strategy/IndexClasses.h"
#include "meshwright/Cost/Cluster.h"

#include <deque>
#include <map>

namespace meshwright::dist {

class TensorSearch {
public:
  /// `searched` are axes of `mesh`; the tensors of the step are those of one device along all
  /// others. All devices have the rates of the cluster's first kind.
  TensorSearch(Mesh mesh, Axes searched, const cost::Cluster &cluster)
      : mesh(std::move(mesh)), searched(std::move(searched)), cluster(cluster) {}

  /// Reads a module at phase step, or any module whose ops have factor tables; callees become one
  /// for each call. Fails with an error on calls that cannot be followed and ops without a table.
  mlir::LogicalResult read(mlir::ModuleOp module);

  TableSum &sum() { return tables; }
  /// The same sum with a price for each byte that a device keeps for long: of parameters, states
  /// and what repeats stack for other repeats.
  TableSum sumWithBytes(double secondsPerByte) const;
  double bytesOf(llvm::ArrayRef<unsigned> values) const;
  /// The sharding of a parameter or state in a choice of values.
  Sharding shardingOf(train::VariableOp variable, llvm::ArrayRef<unsigned> values) const;
  /// The sharding with which a value is made.
  Sharding shardingOf(mlir::Value value, llvm::ArrayRef<unsigned> values) const;
  /// The variable of the sum for what has this value or variable; -1: the step does not come to it.
  int variableOf(mlir::Value value) const;
  int variableOf(train::VariableOp variable) const;
  /// The value of its variable with which an op, argument, result of a call or variable has such
  /// shardings of operands and results; -1: there is none.
  int valueWith(int variable, llvm::ArrayRef<Sharding> operands,
                llvm::ArrayRef<Sharding> results) const;
  /// A reshard that a choice of values makes, and its seconds of a step.
  struct Sent {
    mlir::Value value;
    Sharding from, to;
    double seconds = 0;
  };
  /// What a choice sends from op to op, the longest first.
  std::vector<Sent> sent(llvm::ArrayRef<unsigned> values);
  /// What layers pass to the next one, as arguments, in forward and backward.
  llvm::SmallVector<mlir::BlockArgument> carriedByLayers() const;
  /// The function of which one that is called several times is a copy, or itself. What layers pass on
  /// is alike in all copies, since a seed names all of them.
  mlir::func::FuncOp originalOf(mlir::func::FuncOp function) const;
  /// Whether a dimension is that of the batch's sequences, or begins with it.
  bool isOfBatch(mlir::Value value, unsigned dim) const;
  unsigned ops() const { return opCount; }

private:
  /// What a variable's value stands for: shardings of operands that an op wants and of results that
  /// it makes, or that of a kept value as its only result.
  struct State {
    llvm::SmallVector<Sharding, 4> wants, makes;
    double seconds = 0;
    /// The sharded factors for which the op is split into several.
    llvm::SmallVector<unsigned, 1> split = {};
  };
  struct Variable {
    std::vector<State> states;
  };
  /// Where a value comes from: result `index` of a variable's states.
  struct Maker {
    unsigned variable = 0, index = 0;
    bool isFree = false; ///< each device can make any part of it
  };
  /// A use of a value, and what it wants in each state of its variable.
  struct Use {
    int variable; ///< -1: always the same
    llvm::SmallVector<Sharding> wants;
    double runs;
  };

  /// The uses of one value and the other sharding that it may have.
  struct Uses {
    mlir::Value value;
    Maker maker;
    int copy = -1; ///< the variable of which other sharding it is; 0: none
    std::vector<Sharding> others;
    llvm::SmallVector<Use> uses;
  };

  void countRuns(mlir::ModuleOp module);
  double runsOf(mlir::Operation *op) const;
  void addOp(train::ShardingRuleOpInterface op);
  unsigned addKept(mlir::RankedTensorType type, bool mayBePartial, bool isFixed, bool isStacked,
                   llvm::function_ref<bool(unsigned)> isPadded);
  void addUses(mlir::Value value);
  void tieToParameters(mlir::ModuleOp module);
  void tieCopies();
  void addSplits(mlir::ModuleOp module);
  void tie(unsigned parameter, unsigned other,
           llvm::function_ref<bool(const Sharding &, const State &)> areAlike);
  bool isPadded(mlir::Value value, unsigned dim) const;
  bool canHave(const ShardingRule &rule, const FactorAxes &axes, unsigned factor, unsigned axis,
               llvm::ArrayRef<bool> padded) const;
  double secondsOf(mlir::Operation *op, const ShardingRule &rule, const State &state,
                   const FactorAxes &axes, llvm::ArrayRef<unsigned> completed);
  double elements(mlir::Type type, const Sharding &sharding) const;
  double collectiveSeconds(llvm::StringRef name, double bytes, llvm::ArrayRef<unsigned> axes);
  double reshardSeconds(const Sharding &from, const Sharding &to, mlir::RankedTensorType type);
  double gradientSeconds(train::VariableOp variable, const Sharding &sharding);

  Mesh mesh;
  Axes searched;
  const cost::Cluster &cluster;
  TableSum tables;
  unsigned opCount = 0;
  std::deque<Variable> variables; ///< whose states stay where they are
  Structure structure;
  std::optional<IndexClasses> classes;
  llvm::SmallVector<Atoms::List> batches;
  llvm::DenseMap<mlir::Operation *, mlir::func::FuncOp> originals; ///< of copies
  llvm::DenseMap<mlir::Operation *, double> runs; ///< of functions that the step comes to
  llvm::DenseMap<mlir::Value, Maker> makers;
  llvm::DenseMap<mlir::Operation *, unsigned> ofOp, ofVariable;
  llvm::DenseMap<mlir::OpOperand *, const ValueBinding *> bindings;
  std::vector<Uses> allUses;
  std::vector<std::pair<unsigned, mlir::RankedTensorType>>
      kept; ///< variables of what is kept for long
  std::map<std::string, double> reshards;
  std::map<std::vector<unsigned>, cost::GroupLayout> layouts;
};

} // namespace meshwright::dist

#endif // MESHWRIGHT_LIB_DIST_TENSORSEARCH_H
