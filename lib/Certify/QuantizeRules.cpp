//===- QuantizeRules.cpp - tensors of 8-bit floats ---------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Certify/Rule.h"

#include "Train/Quantize.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::certify;

static constexpr IndexText nonlinear{};
static constexpr IndexText byScalar{"..., -> ..."};

static LogicalResult amax(train::AmaxOp op, Facts operands, NewFacts &results, Checker &checker) {
  IndexRule rule = IndexRule::parse("... -> ", "", op);
  rule.max = true;
  return applyRule(rule, op, operands, results, checker);
}

/// Scales are not summed, so that only the factors may be terms of a sum.
static LogicalResult contract(train::ScaledContractOp op, Facts operands, NewFacts &results,
                              Checker &checker) {
  if (op.getInit())
    return checker.refuse(op) << "has an accumulator, which programs at phase local do not have";
  auto [factors, result] = op.getRule().split("->");
  std::string rule = (factors + ", , -> " + result).str();
  return applyRule(IndexRule::parse(rule, "0 1", op), op, operands, results, checker);
}

void certify::attachQuantizeRules(MLIRContext *context) {
  attachIndices<train::QuantizationScaleOp, nonlinear>(context);
  attachIndices<train::QuantizeOp, byScalar>(context);
  attachRule<train::AmaxOp, amax>(context);
  attachRule<train::ScaledContractOp, contract>(context);
}
