//===- ShardingRule.h - einsum-like factor tables --------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// Every op says how its operands' and results' dimensions correspond, as an
// einsum-like text, e.g. linear: "~... i, ~o i -> ... o". Propagation,
// partitioning, type inference, contraction lowering and cost all read this
// table and nothing else, so a new op is one declaration. After Shardy's
// op_sharding_rule and GSPMD (Xu et al. 2021).
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_TRAIN_SHARDINGRULE_H
#define MESHWRIGHT_TRAIN_SHARDINGRULE_H

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Operation.h"
#include "mlir/IR/TypeRange.h"
#include "llvm/ADT/SmallVector.h"

#include <string>

namespace meshwright {

/// One index of the einsum.
struct Factor {
  std::string name;
  int64_t size = 0; ///< elements; 0 while unknown
  /// The op needs this index whole on every device: `d!`.
  bool whole = false;
  /// In operands and in no result: sharding it makes the results partial sums.
  bool reduced = false;
};

/// How one tensor's dimensions are made of factors.
struct TensorFactors {
  /// For each dimension its factors, major first: `(h d)` is two, `1` is none.
  llvm::SmallVector<llvm::SmallVector<unsigned, 1>> dims;
  /// `~`: the op is linear in this operand with the others fixed, so a partial
  /// sum may pass through it into the result.
  bool linear = false;
  /// `+`: the op is linear in all `+` operands together (an addition): they are
  /// partial over the same mesh axes or none is.
  bool additive = false;
  /// `@v`: the elements are indices along this factor; -1: they are not. Where
  /// the factor is sharded they are counted from the offset of a device's part, and
  /// the op does nothing for those outside it.
  int indexes = -1;
};

/// The factor table of one op.
struct ShardingRule {
  llvm::SmallVector<Factor> factors;
  llvm::SmallVector<TensorFactors> operands, results;
  /// Cutting a reduced factor makes partial maxima instead of partial sums.
  bool max = false;

  /// The factor called `name`, or -1.
  int find(llvm::StringRef name) const;
  /// Marks the factors that no result holds as reduced.
  void markReduced();
  /// The rule as text, sizes left out.
  std::string str() const;
};

/// Reads a rule for tensors of the given ranks (operands, then results when
/// known). Grammar, per tensor: [~|+|@name] then dimensions separated by blanks, each
/// a factor name, `name!`, `1`, `(a b ..)` or one `...`, which stands for the
/// leading dimensions the other names leave over and is the same list in every
/// tensor that has it; `...!` makes those whole. An empty tensor is a scalar.
/// Fails with a message in `error` where ranks and text disagree.
mlir::FailureOr<ShardingRule>
parseShardingRule(llvm::StringRef text, llvm::ArrayRef<int64_t> operandRanks, std::string &error);

/// Gives factors their sizes from operand shapes and, where `known` names
/// factors, from there (`heads = 4` splits `(h d)`). Fails with a message that
/// names both dimensions when two disagree.
mlir::LogicalResult inferFactorSizes(ShardingRule &rule,
                                     llvm::ArrayRef<llvm::ArrayRef<int64_t>> operands,
                                     llvm::ArrayRef<std::pair<llvm::StringRef, int64_t>> known,
                                     std::string &error);

/// The shape of result `index`, all sizes known.
llvm::SmallVector<int64_t> shapeOf(const ShardingRule &rule, const TensorFactors &tensor);

/// The rule of an element-wise op whose second operand may have fewer
/// dimensions, matched from the last: "a b c, b c -> a b c".
ShardingRule elementwiseRule(llvm::ArrayRef<int64_t> resultShape,
                             llvm::ArrayRef<llvm::ArrayRef<int64_t>> operandShapes, bool linear,
                             bool additive);

/// The rule of a reshape between two shapes of the same element count: maximal
/// runs of dimensions with equal products are split into common factors.
ShardingRule reshapeRule(llvm::ArrayRef<int64_t> from, llvm::ArrayRef<int64_t> to);

} // namespace meshwright

#endif // MESHWRIGHT_TRAIN_SHARDINGRULE_H
