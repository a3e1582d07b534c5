//===- MaximalUpdate.h - muP of a model -------------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// Maximal update parametrization (Yang et al. 2022, "Tensor Programs V", table 8; Microsoft's package
// mup): what a model that is wider than a base model does differently, so that learning rates that were
// found for the base hold. docs/optimizers.md has the rules.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_FRONTEND_MAXIMALUPDATE_H
#define MESHWRIGHT_FRONTEND_MAXIMALUPDATE_H

#include "Model.h"

namespace meshwright::frontend {

/// Reports sizes of `base`, which `config` describes, that no width explains.
void checkBase(Config &config, const Model &model, const Model &base);

/// Gives `model` the factors of the base model's forward: those of embeddings and residuals as they
/// are, that of logits divided by the width multiplier, and that of scores by that of heads.
void scaleForward(Model &model, const Model &base);

/// Gives the parameters of `module` their width multipliers and the initial standard deviations that
/// go with them. `base` is the module of the base model, and `path` its configuration.
mlir::LogicalResult scaleParameters(mlir::ModuleOp module, mlir::ModuleOp base, const Model &model,
                                    llvm::StringRef path);

} // namespace meshwright::frontend

#endif // MESHWRIGHT_FRONTEND_MAXIMALUPDATE_H
