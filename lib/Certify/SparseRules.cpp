//===- SparseRules.cpp - the few elements of a tensor that are kept ---------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Certify/Rule.h"

#include "Train/Train.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::certify;

static int64_t lastOf(Value value) { return cast<RankedTensorType>(value.getType()).getShape().back(); }

static LogicalResult sparsify(train::SparsifyOp op, Facts operands, NewFacts &results, Checker &checker) {
  IndexRule rule = IndexRule::parse("... n! -> ... k, ... k, ... n", "", op);
  rule.given[rule.results[0].back()] = {lastOf(op.getValues())};
  return applyRule(rule, op, operands, results, checker);
}

/// A device may have some rows, or some of what is added to them.
static LogicalResult densify(train::DensifyOp op, Facts operands, NewFacts &results, Checker &checker) {
  std::string given, kept;
  for (int64_t dim = 0; dim + 1 < cast<RankedTensorType>(op.getValues().getType()).getRank(); ++dim) {
    std::string index = "i" + std::to_string(dim);
    given += index + " ";
    kept += dim == int64_t(op.getDim()) ? "" : index + " ";
  }
  IndexRule rule = IndexRule::parse(given + "k!, " + given + "k! -> " + kept + "n", "0", op);
  rule.given[rule.results[0].back()] = {lastOf(op.getY())};
  return applyRule(rule, op, operands, results, checker);
}

void certify::attachSparseRules(MLIRContext *context) {
  attachRule<train::SparsifyOp, sparsify, OnPadding::known, OnParts::known>(context);
  attachRule<train::DensifyOp, densify, OnPadding::known, OnParts::known>(context);
}
