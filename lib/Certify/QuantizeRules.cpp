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
static constexpr IndexText dequantizedIndices{"... k, ... -> ... k", "0 1"};

/// The indices of a tensor of `rank`, and of its blocks, in `rule` in place of X and S.
static std::string textOfBlocks(StringRef rule, int64_t rank, ArrayRef<int64_t> dims) {
  std::string elements, blocks, text;
  for (int64_t dim = 0; dim < rank; ++dim) {
    std::string index = "i" + std::to_string(dim) + " ";
    elements += index;
    if (!dims.empty() && !llvm::is_contained(dims, dim))
      blocks += index;
  }
  for (char c : rule)
    text += c == 'X' ? elements : c == 'S' ? blocks : std::string(1, c);
  return text;
}

static LogicalResult amax(train::AmaxOp op, Facts operands, NewFacts &results, Checker &checker) {
  IndexRule rule =
      IndexRule::parse(textOfBlocks("X -> S", op.getX().getType().getRank(), op.getDims()), "", op);
  rule.max = true;
  rule.neutral = 0; // no magnitude is below it
  return applyRule(rule, op, operands, results, checker);
}

/// Of `train.quantize` and `train.dequantize`.
template <typename OpT>
static LogicalResult byScales(OpT op, Facts operands, NewFacts &results, Checker &checker) {
  std::string text = textOfBlocks("X, S -> X", cast<RankedTensorType>(op->getResult(0).getType()).getRank(), op.getDims());
  IndexRule rule = IndexRule::parse(text, "", op);
  rule.keepsZero = true; // 0 by a power of two is 0
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

/// Rows may be padding, but no part of a block: dimension `dim` of operand `index`.
static LogicalResult checkBlocks(Operation *op, unsigned index, Facts operands, int64_t dim,
                                 Checker &checker) {
  if (operands[index].type.padding.count(dim))
    return checker.refuse(op) << "reads " << Checker::nameOf(op, index) << ", "
                              << operands[index].type.str(checker.mesh) << ", with padding in its blocks";
  return success();
}

/// Whether a tensor of blocks, of elements of `x`, lacks the last dimension: each row is a block.
static bool areRows(Type blocks, Type x) {
  return cast<RankedTensorType>(blocks).getRank() + 1 == cast<RankedTensorType>(x).getRank();
}

/// A device has whole blocks of rows, as the global length of a block shows, or a part of each row's only block.
static LogicalResult blockAmax(train::BlockAmaxOp op, Facts operands, NewFacts &results, Checker &checker) {
  FactList facts(operands);
  bool ofRows = areRows(op.getAmax().getType(), op.getX().getType());
  if (failed(checkBlocks(op, 0, facts, facts[0].type.rank() - 1, checker)))
    return failure();
  bool areWhole = !ofRows && op.getX().getType().getShape().back() / op.getAmax().getType().getShape().back() ==
                                 int64_t(op.getLength());
  IndexRule rule = IndexRule::parse(ofRows ? "... k -> ..." : areWhole ? "... k -> ... k" : "... k -> ... b", "", op);
  rule.max = true;
  rule.keepsZero = true;
  if (!areWhole && !ofRows)
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
  FactList facts(operands);
  if (failed(checkBlocks(op, 0, facts, facts[0].type.rank() - 1, checker)))
    return failure();
  StringRef indices = "... k, ... -> ... k";
  if (!areRows(op->getOperand(1).getType(), op->getOperand(0).getType())) {
    int64_t last = facts[1].type.rank() - 1, &blocks = facts[1].type.shape[last];
    if (failed(checkBlocks(op, 1, facts, last, checker)))
      return failure();
    int64_t row = facts[0].type.shape.back();
    if (blocks < 1 || row % blocks)
      return checker.refuse(op) << "has rows of " << row << " elements in " << blocks << " blocks";
    indices = blocks == 1 ? "... k, ... b -> ... k" : "... k, ... k -> ... k";
    if (blocks != 1)
      blocks = row;
  }
  IndexRule rule = IndexRule::parse(indices, "", op);
  rule.keepsZero = true;
  return applyRule(rule, op, facts, results, checker);
}

void certify::attachQuantizeRules(MLIRContext *context) {
  attachIndices<train::QuantizationScaleOp, scaleIndices>(context);
  attachRule<train::QuantizeOp, byScales<train::QuantizeOp>, OnPadding::known, OnParts::known>(context);
  attachRule<train::DequantizeOp, byScales<train::DequantizeOp>, OnPadding::known, OnParts::known>(context);
  attachIndices<train::DequantizeRowsOp, dequantizedIndices>(context);
  attachRule<train::AmaxOp, amax, OnPadding::known>(context);
  attachRule<train::BlockAmaxOp, blockAmax, OnPadding::known>(context);
  attachRule<train::QuantizeBlocksOp, byBlock<train::QuantizeBlocksOp>, OnPadding::known>(context);
  attachRule<train::DequantizeBlocksOp, byBlock<train::DequantizeBlocksOp>, OnPadding::known>(context);
  attachRule<train::ScaledContractOp, contract, OnPadding::known>(context);
}
