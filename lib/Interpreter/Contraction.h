//===- Contraction.h - sums of products -------------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_INTERPRETER_CONTRACTION_H
#define MESHWRIGHT_INTERPRETER_CONTRACTION_H

#include "meshwright/Tensor.h"

#include "Train/ShardingRule.h"

namespace meshwright::interp {

/// The first result of `op`: the sum of products of its first two operands that the
/// factor table says.
Tensor contract(mlir::Operation *op, const ShardingRule &rule, const Tensor &lhs,
                const Tensor &rhs);

} // namespace meshwright::interp

#endif // MESHWRIGHT_INTERPRETER_CONTRACTION_H
