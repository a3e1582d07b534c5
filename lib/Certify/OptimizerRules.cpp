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

/// Gradients of what a model does not use are zeros.
static LogicalResult squareSum(train::SquareSumOp op, Facts operands, NewFacts &results,
                               Checker &checker) {
  IndexRule rule = IndexRule::parse("... -> ", "", op);
  rule.keepsZero = true;
  if (failed(applyRule(rule, op, operands, results, checker)))
    return failure();
  if (isZero(operands[0].expression)) {
    Axes root = results[0].type.root;
    results[0] = {checker.fill(op.getLoc(), 0, getElementTypeOrSelf(op.getType()), 0), {}};
    results[0].type.root = root;
    checker.use("a sum of zeros is 0");
  }
  return success();
}

/// The root of a sum of scalars.
static LogicalResult globalNorm(train::GlobalNormOp op, Facts operands, NewFacts &results,
                                Checker &checker) {
  if (failed(applyRule(IndexRule::elementwise("", op), op, operands, results, checker)))
    return failure();
  const Expression *sum =
      checker.sum(op.getLoc(), expressionsOf(operands), results[0].expression->element, {});
  results[0].expression = checker.make(op, {sum}, 0, {});
  return success();
}

/// Element by element; scalars apply to all elements. A parameter that is 0 has no step with a
/// gradient and states that are 0, and with another gradient or direction one that is a number.
static LogicalResult update(train::UpdateOp op, Facts operands, NewFacts &results,
                            Checker &checker) {
  for (auto [index, fact] : llvm::enumerate(operands))
    if (fact.type.rank() != 0 && fact.type.rank() != operands[0].type.rank())
      return checker.refuse(op) << "has " << Checker::nameOf(op, index)
                                << " of another rank than the parameter";
  IndexRule rule = IndexRule::elementwise("", op);
  rule.keepsZero = true;
  OpOperand *direction = op.getDirection();
  for (auto [index, fact] : llvm::enumerate(operands)) {
    bool isStep = index == 1 || (direction && index == direction->getOperandNumber());
    for (auto &[dim, padding] : fact.type.padding)
      if (padding.fill != 0.0 && !isStep)
        return checker.refuse(op) << "has " << Checker::nameOf(op, index)
                                  << ", whose padding may not be 0: "
                                  << fact.type.str(checker.mesh);
  }
  return applyRule(rule, op, operands, results, checker);
}

void certify::attachOptimizerRules(MLIRContext *context) {
  attachRule<train::SquareSumOp, squareSum, OnPadding::known>(context);
  attachRule<train::GlobalNormOp, globalNorm>(context);
  attachRule<train::UpdateOp, update, OnPadding::known>(context);
}
