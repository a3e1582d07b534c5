//===- Definitions.h - ops as sums and maxima over rows ----------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// Norms and cross-entropy need rows whole, but only for sums and maxima over them.
// Where rows are sharded, a program computes these in steps, whose sums are partial.
// So that both forms are one expression, the op itself is replaced by its definition,
// which is written here from the descriptions in docs/ops-train.md.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_CERTIFY_DEFINITIONS_H
#define MESHWRIGHT_CERTIFY_DEFINITIONS_H

#include "Certify/Checker.h"
#include "Train/Train.h"

namespace meshwright::certify {

using Expressed = llvm::SmallVector<const Expression *, 3>;

/// The logit of each target that is a column of `logits`: what it is for other targets is not said,
/// which no loss depends on.
const Expression *logitOfTarget(mlir::Location location, const Expression *logits,
                                const Expression *targets, Checker &checker);

/// The op's results, of expressions of its operands.
Expressed define(train::CrossEntropyOp op, Operands operands, Checker &checker);
Expressed define(train::LayerNormOp op, Operands operands, Checker &checker);
Expressed define(train::RmsNormOp op, Operands operands, Checker &checker);
Expressed define(train::LayerNormGradOp op, Operands operands, Checker &checker);
Expressed define(train::RmsNormGradOp op, Operands operands, Checker &checker);

} // namespace meshwright::certify

#endif // MESHWRIGHT_CERTIFY_DEFINITIONS_H
