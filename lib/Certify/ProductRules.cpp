//===- ProductRules.cpp - sums of products -----------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Certify/Rule.h"

#include "Train/Train.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::certify;

static constexpr IndexText linear{"... i, o i -> ... o", "0 1"};

static LogicalResult contract(train::ContractOp op, Facts operands, NewFacts &results,
                              Checker &checker) {
  if (op.getInit())
    return checker.refuse(op) << "has an accumulator, which programs at phase local do not have";
  return applyRule(IndexRule::parse(op.getRule(), "0 1", op), op, operands, results, checker);
}

void certify::attachProductRules(MLIRContext *context) {
  attachIndices<train::LinearOp, linear>(context);
  attachRule<train::ContractOp, contract, OnPadding::known, OnParts::known>(context);
}
