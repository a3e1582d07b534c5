//===- SignRules.cpp - signs of numbers as bits -----------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Certify/Rule.h"

#include "Train/Train.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::certify;

static constexpr IndexText bitIndices{"... k! -> ...", ""};

static int64_t bitsOf(Value value) { return cast<RankedTensorType>(value.getType()).getShape().back(); }

static LogicalResult magnitude(train::MagnitudeOp op, Facts operands, NewFacts &results, Checker &checker) {
  IndexRule rule = IndexRule::parse("... k! -> ...", "", op);
  rule.keepsZero = true;
  return applyRule(rule, op, operands, results, checker);
}

/// The numbers are linear in the scale, whatever the bits are.
static LogicalResult signs(train::SignsOp op, Facts operands, NewFacts &results, Checker &checker) {
  IndexRule rule = IndexRule::parse("... q, ... -> ... q k", "1", op);
  rule.given[rule.results[0].back()] = {bitsOf(op.getY())};
  return applyRule(rule, op, operands, results, checker);
}

/// A device may have some rows, or some of what is added to them.
static LogicalResult sumSigns(train::SumSignsOp op, Facts operands, NewFacts &results, Checker &checker) {
  std::string given, kept;
  for (int64_t dim = 0; dim < cast<RankedTensorType>(op.getScale().getType()).getRank(); ++dim) {
    std::string index = "i" + std::to_string(dim) + " ";
    given += index;
    kept += dim == int64_t(op.getDim()) ? "" : index;
  }
  IndexRule rule = IndexRule::parse(given + "q, " + given + "-> " + kept + "q k", "1", op);
  rule.given[rule.results[0].back()] = {bitsOf(op.getY())};
  return applyRule(rule, op, operands, results, checker);
}

void certify::attachSignRules(MLIRContext *context) {
  attachIndices<train::SignBitsOp, bitIndices>(context);
  attachRule<train::MagnitudeOp, magnitude, OnPadding::known>(context);
  attachRule<train::SignsOp, signs, OnPadding::known>(context);
  attachRule<train::SumSignsOp, sumSigns, OnPadding::known>(context);
}
