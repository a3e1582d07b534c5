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

static constexpr IndexText scaleIndices{};
static constexpr IndexText quantizedIndices{"..., -> ..."};
static constexpr IndexText dequantizedIndices{"... k, ... -> ... k", "0 1"};

static LogicalResult amax(train::AmaxOp op, Facts operands, NewFacts &results, Checker &checker) {
  IndexRule rule = IndexRule::parse("... -> ", "", op);
  rule.max = true;
  rule.neutral = 0; // no magnitude is below it
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

//===--- 8-bit states in blocks ----------------------------------------------===//

/// Rows may be padding, but no part of a block.
static LogicalResult checkBlocks(Operation *op, Facts operands, Checker &checker) {
  for (auto [index, fact] : llvm::enumerate(operands))
    if (fact.type.padding.count(fact.type.rank() - 1))
      return checker.refuse(op) << "reads " << Checker::nameOf(op, index) << ", "
                                << fact.type.str(checker.mesh) << ", with padding in its blocks";
  return success();
}

/// A device has whole blocks of rows, as the global length of a block shows, or a part of each row's only block.
static LogicalResult blockAmax(train::BlockAmaxOp op, Facts operands, NewFacts &results, Checker &checker) {
  int64_t have = op.getX().getType().getShape().back() / op.getAmax().getType().getShape().back();
  bool areWhole = have == int64_t(op.getLength());
  if (failed(checkBlocks(op, operands, checker)))
    return failure();
  FactList facts(operands);
  IndexRule rule = IndexRule::parse(areWhole ? "... k -> ... k" : "... k -> ... b", "", op);
  rule.max = true;
  rule.keepsZero = true;
  if (!areWhole)
    rule.given[rule.results[0].back()] = {1};
  FailureOr<Distributions> types = rule.apply(op, facts, checker);
  if (failed(types))
    return failure();
  Distribution &type = types->front();
  if (areWhole)
    type.shape.back() /= int64_t(op.getLength());
  checker.proof.kernels.insert(op->getName().getStringRef().str());
  results.push_back({checker.make(op, op->getPropertiesAsAttribute(), expressionsOf(facts), 0, type.expressionShape()), type});
  return success();
}

/// Blocks are divided as the rows that they are parts of, or are one for each row.
template <typename OpT>
static LogicalResult byBlock(OpT op, Facts operands, NewFacts &results, Checker &checker) {
  if (failed(checkBlocks(op, operands, checker)))
    return failure();
  FactList facts(operands);
  int64_t &blocks = facts[1].type.shape.back(), row = facts[0].type.shape.back();
  bool isOne = blocks == 1;
  if (blocks < 1 || row % blocks)
    return checker.refuse(op) << "has rows of " << row << " elements in " << blocks << " blocks";
  if (!isOne)
    blocks = row;
  IndexRule rule = IndexRule::parse(isOne ? "... k, ... b -> ... k" : "... k, ... k -> ... k", "", op);
  rule.keepsZero = true;
  return applyRule(rule, op, facts, results, checker);
}

void certify::attachQuantizeRules(MLIRContext *context) {
  attachIndices<train::QuantizationScaleOp, scaleIndices>(context);
  attachIndices<train::QuantizeOp, quantizedIndices>(context);
  attachIndices<train::DequantizeRowsOp, dequantizedIndices>(context);
  attachRule<train::AmaxOp, amax, OnPadding::known>(context);
  attachRule<train::BlockAmaxOp, blockAmax, OnPadding::known>(context);
  attachRule<train::QuantizeBlocksOp, byBlock<train::QuantizeBlocksOp>, OnPadding::known>(context);
  attachRule<train::DequantizeBlocksOp, byBlock<train::DequantizeBlocksOp>, OnPadding::known>(context);
  attachRule<train::ScaledContractOp, contract, OnPadding::known>(context);
}
