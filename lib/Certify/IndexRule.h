//===- IndexRule.h - rules of ops that work on indices alike -----------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// Most ops are described by the indices of their tensors, as an einsum: an index of
// operands and results is a loop around the op, one that a result does not have is
// summed over in it. So
//   - an index may be sharded, in all tensors that have it alike;
//   - a result is partial over the axes of the indices that are summed over in it;
//   - an index marked `!` must be whole;
//   - an operand may be partial by sum where the op is linear in it and nothing else
//     differs between the devices of the axis;
//   - an index may be padded, in all tensors that have it alike.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_CERTIFY_INDEXRULE_H
#define MESHWRIGHT_CERTIFY_INDEXRULE_H

#include "Certify/Checker.h"

namespace meshwright::certify {

struct IndexRule {
  /// An index of results alone.
  struct Given {
    int64_t extent;
    Axes axes = {};
    std::optional<int64_t> logical = {}; ///< if it is padded, with any numbers
  };

  /// For each operand and result the index of each dimension.
  llvm::SmallVector<llvm::SmallVector<unsigned, 4>> operands, results;
  std::set<unsigned> whole;
  std::map<unsigned, Given> given;
  /// Groups of operands, in each of which the op is linear: f(x + x', y + y') = f(x, y) + f(x',
  /// y').
  llvm::SmallVector<llvm::SmallVector<unsigned, 2>> linear;
  /// Whether indices that results do not have are reduced by maximum.
  bool max = false;
  /// Whether the op makes 0 of zeros in all operands that have an index, whatever the others are.
  bool keepsZero = false;
  /// Whether the op makes no negative numbers of ones that are not.
  bool keepsSign = false;
  /// The operand of ids, of which negative ones add nothing to results and select zeros.
  std::optional<unsigned> ids;
  /// What padding does not change results by where an index is whole or reduced. Else an index that
  /// is summed over must be 0 in its padding, in operands in which the op is linear.
  std::optional<double> neutral;

  /// "... i, o i -> ... o" for tensors of these ranks. `...` are as many leading indices as the
  /// ranks leave. `linear` lists groups, e.g. "0 1" or, of a sum, "0+1".
  static IndexRule parse(llvm::StringRef text, llvm::StringRef linear, mlir::Operation *op);
  /// The rule of an element-wise op; shapes are matched from the last dimension.
  static IndexRule elementwise(llvm::StringRef linear, mlir::Operation *op);

  /// What the results are, for operands that may be pinned.
  llvm::FailureOr<Distributions> apply(mlir::Operation *op, llvm::MutableArrayRef<Fact> operands,
                                       Checker &checker) const {
    return apply(op, operands, checker, nullptr);
  }

private:
  friend llvm::LogicalResult applyRule(const IndexRule &, mlir::Operation *, Facts, NewFacts &, Checker &,
                                       mlir::Attribute);
  /// `summed` are the indices that the result is a sum over, of which devices have blocks; their `of` is
  /// made later.
  llvm::FailureOr<Distributions> apply(mlir::Operation *op, llvm::MutableArrayRef<Fact> operands,
                                       Checker &checker,
                                       llvm::SmallVectorImpl<SummedIndex> *summed) const;
};

/// Applies the rule and makes expressions of the op with its own attributes.
llvm::LogicalResult applyRule(const IndexRule &rule, mlir::Operation *op, Facts operands,
                              NewFacts &results, Checker &checker, mlir::Attribute attributes = {});

/// Of an op whose results along an index of `given` do not depend on how many there are: as many as
/// the global graph has, of which the others are padding. `attributes` are those for a number of
/// them.
llvm::LogicalResult applyToKnown(IndexRule rule, unsigned index, mlir::Operation *op,
                                 Facts operands,
                                 llvm::function_ref<mlir::Attribute(int64_t)> attributes,
                                 NewFacts &results, Checker &checker);

/// The expressions of facts.
llvm::SmallVector<const Expression *> expressionsOf(Facts facts);

} // namespace meshwright::certify

#endif // MESHWRIGHT_CERTIFY_INDEXRULE_H
