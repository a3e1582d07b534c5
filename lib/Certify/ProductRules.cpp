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

/// Whether a contraction is that of train.linear.
static bool isLinear(StringRef rule) {
  auto namesOf = [](StringRef text) {
    SmallVector<StringRef> names;
    text.split(names, ' ', /*MaxSplit=*/-1, /*KeepEmpty=*/false);
    return names;
  };
  auto [before, after] = rule.split("->");
  auto [left, right] = before.split(',');
  SmallVector<StringRef> x = namesOf(left), weight = namesOf(right), y = namesOf(after);
  if (x.empty() || weight.size() != 2 || weight[1] != x.back())
    return false;
  x.back() = weight[0];
  return x == y;
}

/// Gives the result of a contraction the expression of train.linear, with which products in steps
/// begin.
static void renameToLinear(Fact &result, Checker &checker) {
  const Expression *old = result.expression;
  result.expression =
      checker.make(old->location, train::LinearOp::getOperationName(), Attribute(), old->operands,
                   old->element, old->shape);
  for (SummedIndex &summed : result.summed)
    summed.of = result.expression;
  if (std::optional<Summands> &summands = result.type.summands) {
    const Expression *term = summands->term;
    bool isProduct = term->name == old->name; // with some terms of an operand
    summands->term = isProduct ? checker.make(old->location, result.expression->name, Attribute(),
                                              term->operands, old->element, old->shape)
                               : checker.make(old->location, term->name, term->attributes,
                                              {result.expression}, old->element, old->shape);
  }
}

static LogicalResult contract(train::ContractOp op, Facts operands, NewFacts &results,
                              Checker &checker) {
  if (op.getInit())
    return checker.refuse(op) << "has an accumulator, which programs at phase local do not have";
  if (failed(applyRule(IndexRule::parse(op.getRule(), "0 1", op), op, operands, results, checker)))
    return failure();
  if (isLinear(op.getRule()) && !fillOf(results[0].expression))
    renameToLinear(results[0], checker);
  return success();
}

void certify::attachProductRules(MLIRContext *context) {
  attachIndices<train::LinearOp, linear>(context);
  attachRule<train::ContractOp, contract, OnPadding::known, OnParts::known>(context);
}
