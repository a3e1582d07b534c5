//===- ParameterGroups.h - which parameters an optimizer treats differently -===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_TRAIN_PARAMETERGROUPS_H
#define MESHWRIGHT_TRAIN_PARAMETERGROUPS_H

#include "Train/Optimizer.h"

namespace meshwright::train {

/// The groups of a module's parameters. Without one, matrices decay and vectors (norms, biases) do
/// not: what files have as such. muP's factors of a parameter multiply those of its group.
class GroupedParameters {
public:
  /// Finds out which parameters are in which of `groups`. Emits an error and fails where a group
  /// has none, one that is stored in several tensors has some in it only, or muP has no rule for a
  /// parameter that is wider than the base model's.
  mlir::LogicalResult assign(mlir::ModuleOp module, const ParameterGroups &groups,
                             const Optimizer &optimizer);

  UpdateFactors factorsOf(VariableOp parameter) const;

private:
  mlir::LogicalResult checkWidths(mlir::ModuleOp module) const;

  const Optimizer *optimizer = nullptr;
  llvm::DenseMap<mlir::Operation *, ParameterGroup> groupOf;
};

} // namespace meshwright::train

#endif // MESHWRIGHT_TRAIN_PARAMETERGROUPS_H
