//===- OptimizerRules.cpp - norms of gradients and updates -------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Certify/Rule.h"

#include "Train/Train.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::certify;

static constexpr IndexText squareSum{"... -> "};

/// The root of a sum of scalars.
static LogicalResult globalNorm(train::GlobalNormOp op, Facts operands, NewFacts &results,
                                Checker &checker) {
  return applyRule(IndexRule::elementwise("", op), op, operands, results, checker);
}

/// Element by element; scalars apply to all elements.
static LogicalResult update(train::UpdateOp op, Facts operands, NewFacts &results,
                            Checker &checker) {
  for (auto [index, fact] : llvm::enumerate(operands))
    if (fact.type.rank() != 0 && fact.type.rank() != operands[0].type.rank())
      return checker.refuse(op) << "has " << Checker::nameOf(op, index)
                                << " of another rank than the parameter";
  return applyRule(IndexRule::elementwise("", op), op, operands, results, checker);
}

void certify::attachOptimizerRules(MLIRContext *context) {
  attachIndices<train::SquareSumOp, squareSum>(context);
  attachRule<train::GlobalNormOp, globalNorm>(context);
  attachRule<train::UpdateOp, update>(context);
}
