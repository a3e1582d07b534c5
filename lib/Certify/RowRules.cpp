//===- RowRules.cpp - ops on rows: norms, the loss, positions, dropout -------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Certify/Definitions.h"
#include "Certify/Rule.h"

#include "mlir/IR/Builders.h"

#include <cmath>
#include <limits>

using namespace mlir;
using namespace meshwright;
using namespace meshwright::certify;

/// Tokens without a target have no loss, whatever their logits are.
template <const IndexText &text> static IndexRule ruleOf(Operation *op) {
  IndexRule rule = IndexRule::parse(text.indices, text.linear, op);
  rule.keepsZero = text.padding == IndexText::zero;
  if (isa<train::CrossEntropyOp>(op)) {
    rule.ids = 1;
    rule.neutral = -std::numeric_limits<double>::infinity();
  }
  return rule;
}

/// An op that needs rows whole: its results are those of its definition.
template <typename OpT, const IndexText &text>
static LogicalResult onRows(OpT op, Facts operands, NewFacts &results, Checker &checker) {
  FactList facts(operands);
  if (auto eps = op->template getAttrOfType<FloatAttr>("eps"); eps && eps.getValue().isZero())
    for (const Fact &fact : facts)
      if (!fact.type.padding.empty())
        return checker.refuse(op) << "of padding that may be 0, with eps 0";
  auto types = ruleOf<text>(op).apply(op, facts, checker);
  if (failed(types))
    return failure();
  checker.proof.kernels.insert(op->getName().getStringRef().str());
  for (auto [type, expression] : llvm::zip_equal(*types, define(op, expressionsOf(facts), checker)))
    results.push_back({expression, type});
  return success();
}
static constexpr IndexText layerNorm{"... d!, d!, d! -> ... d!"};
static constexpr IndexText layerNormGrad{"... d!, ... d!, d! -> ... d!, d!, d!", "0"};
static constexpr IndexText rmsNorm{"... d!, d! -> ... d!", "", IndexText::zero};
static constexpr IndexText rmsNormGrad{"... d!, ... d!, d! -> ... d!, d!", "0"};
static constexpr IndexText crossEntropy{"... v!, ... -> , ..."};
static constexpr IndexText crossEntropies{"... v!, ... -> ..., ..."};
static constexpr IndexText foldIn{"w!, -> w!"};
static constexpr IndexText softmax{"... v! -> ... v!", "", IndexText::positive};

/// Of a row of one number n times it is that number and log n more.
static LogicalResult logSumExp(train::LogSumExpOp op, Facts operands, NewFacts &results,
                               Checker &checker) {
  if (failed(applyRule(IndexRule::parse("... v! -> ...", "", op), op, operands, results, checker)))
    return failure();
  const Distribution &x = operands[0].type;
  if (!x.sum.empty() || !x.max.empty() || x.hasParts() || x.padding.count(x.rank() - 1))
    return success();
  for (auto &[dim, padding] : results[0].type.padding)
    if (auto before = x.padding.find(dim); before != x.padding.end() && before->second.fill)
      padding.fill = valueIn(llvm::APFloat(*before->second.fill + std::log(x.shape.back())),
                             results[0].expression->element);
  return success();
}

/// The loss is one number, or one for each token. Infinitely small logits are no part of a sum of
/// exponentials, but a target may be one of them.
static LogicalResult lossOfTokens(train::CrossEntropyOp op, Facts operands, NewFacts &results,
                                  Checker &checker) {
  int64_t columns = operands[0].type.rank() - 1;
  if (operands[0].type.padding.count(columns))
    return checker.refuse(op) << "reads dimension " << columns << " of " << Checker::nameOf(op, 0)
                              << " with its padding, " << operands[0].type.str(checker.mesh)
                              << ", in which a target may be";
  LogicalResult made =
      op.getPerToken()
          ? onRows<train::CrossEntropyOp, crossEntropies>(op, operands, results, checker)
          : onRows<train::CrossEntropyOp, crossEntropy>(op, operands, results, checker);
  return failed(made) ? failure() : ignorePadding(op, 1, operands, results[1].type, checker);
}

static LogicalResult rope(train::RopeOp op, Facts operands, NewFacts &results, Checker &checker) {
  StringRef text = operands[1].type.rank() == 2 ? "b s h d!, s f!, s f! -> b s h d!"
                                                : "b s h d!, b s f!, b s f! -> b s h d!";
  return applyRule(IndexRule::parse(text, "0", op), op, operands, results, checker);
}

/// A dimension of the result whose first index is `offset`, an operand or none: `size` of them are
/// the device's.
static FailureOr<IndexRule::Given> indicesFrom(Operation *op, Value offset, int64_t size,
                                               Facts operands, Checker &checker) {
  Offset first;
  if (offset) {
    const Fact &fact = operands[llvm::find(op->getOperands(), offset).getIndex()];
    if (fact.expression->name != "zero")
      return checker.refuse(op) << "has an offset that is none of the device's part";
    first = fact.offset;
  }
  std::optional<Axes> axes = first.axesOfParts(size, checker.mesh);
  if (!axes)
    return checker.refuse(op) << "has an offset that is that of no parts of " << size << " indices";
  return IndexRule::Given{size * checker.mesh.size(*axes), *axes};
}

/// An op of operands that need not be all of its own, with attributes that are those of the global
/// graph.
static LogicalResult applyTo(Operation *op, const IndexRule &rule, MutableArrayRef<Fact> facts,
                             Attribute attributes, NewFacts &results, Checker &checker) {
  auto types = rule.apply(op, facts, checker);
  if (failed(types))
    return failure();
  checker.proof.kernels.insert(op->getName().getStringRef().str());
  for (auto [index, type] : llvm::enumerate(*types))
    results.push_back(
        {checker.make(op, attributes, expressionsOf(facts), index, type.expressionShape()), type});
  return success();
}

/// Of all positions, or of those of the device's part.
static LogicalResult ropeTable(train::RopeTableOp op, Facts operands, NewFacts &results,
                               Checker &checker) {
  IndexRule rule;
  FactList facts;
  int64_t frequencies = op.getFrequencies().size();
  if (op.getPositions()) {
    if (op.getOffset())
      return checker.refuse(op) << "has positions and an offset";
    facts.push_back(operands.back());
    rule.operands = {{0, 1}};
    rule.results = {{0, 1, 2}, {0, 1, 2}};
    rule.given[2] = {frequencies};
  } else {
    int64_t rows = cast<RankedTensorType>(op.getCos().getType()).getDimSize(0);
    auto positions = indicesFrom(op, op.getOffset(), rows, operands, checker);
    if (failed(positions))
      return failure();
    rule.results = {{0, 1}, {0, 1}};
    rule.given[0] = *positions;
    rule.given[1] = {frequencies};
  }
  Attribute attributes = Builder(op).getArrayAttr({op.getFrequenciesAttr(), op.getScaleAttr()});
  if (!op.getPositions())
    return applyToKnown(
        rule, 0, op, facts, [&](int64_t) { return attributes; }, results, checker);
  return applyTo(op, rule, facts, attributes, results, checker);
}

static LogicalResult alibiSlopes(train::AlibiSlopesOp op, Facts operands, NewFacts &results,
                                 Checker &checker) {
  int64_t size = cast<RankedTensorType>(op.getType()).getDimSize(0);
  auto heads = indicesFrom(op, op.getOffset(), size, operands, checker);
  if (failed(heads))
    return failure();
  int64_t count = op.getHeads() ? int64_t(op.getHeads()) : size;
  if (count > heads->extent)
    return checker.refuse(op) << "counts " << count << " heads where there are " << heads->extent;
  heads->logical = count;
  IndexRule rule;
  rule.results = {{0}};
  rule.given[0] = *heads;
  return applyTo(op, rule, {}, op.getBiasAttr(), results, checker);
}

/// Of all queries and keys, which the op counts itself.
static LogicalResult distanceBuckets(train::DistanceBucketsOp op, Facts, NewFacts &results,
                                     Checker &checker) {
  IndexRule rule;
  rule.results = {{0}};
  rule.given[0] = {cast<RankedTensorType>(op.getType()).getDimSize(0)};
  return applyTo(op, rule, {}, op->getPropertiesAsAttribute(), results, checker);
}

/// Which elements are kept is a function of their indices in the global tensor.
static LogicalResult dropout(train::DropoutOp op, Facts operands, NewFacts &results,
                             Checker &checker) {
  FactList facts(operands.take_front(3));
  if (facts[0].type.rows)
    return checker.refuse(op) << "drops elements of rows of routing choices, whose indices depend on how these are laid out";
  // How many sequences there are is what their numbers say.
  if (llvm::is_contained(ArrayRef<int64_t>(facts[0].type.shape).drop_front(), anyExtent))
    pin(facts[0], op.getX(), checker);
  const Distribution &x = facts[0].type;
  ArrayRef<int64_t> local = cast<RankedTensorType>(op.getX().getType()).getShape();
  SmallVector<Offset> offsets(x.rank());
  SmallVector<int64_t> dims(op.getOffsetDims().value_or(ArrayRef<int64_t>()));
  for (auto [dim, fact] : llvm::zip_equal(dims, operands.drop_front(3))) {
    if (fact.expression->name != "zero" || fact.type != Distribution::replicated({}) ||
        llvm::count(dims, dim) != 1)
      return checker.refuse(op) << "has an offset that is none of the device's part";
    offsets[dim] = fact.offset;
  }
  for (int64_t dim = 1; dim < x.rank(); ++dim) {
    int64_t size = op.getSizes() ? (*op.getSizes())[dim - 1] : local[dim];
    if (size != x.logical(dim))
      return checker.refuse(op) << "numbers the " << x.logical(dim) << " elements of dimension "
                                << dim << " as if there were " << size;
    if (offsets[dim] != Offset::ofParts(x.dims[dim], local[dim], checker.mesh))
      return checker.refuse(op) << "does not begin where the device's part of dimension " << dim
                                << " does: " << x.str(checker.mesh);
  }
  IndexRule rule;
  rule.linear = {{0}};
  rule.operands = {{}, {0}, {unsigned(x.rank())}};
  rule.whole = {unsigned(x.rank())};
  for (int64_t dim = 0; dim < x.rank(); ++dim)
    rule.operands[0].push_back(dim);
  rule.results = {rule.operands[0]};
  // The key is no index of the result, but nothing is summed over it: it is whole.
  return applyTo(op, rule, facts, Builder(op).getArrayAttr({op.getRateAttr(), op.getStreamAttr()}),
                 results, checker);
}

void certify::attachRowRules(MLIRContext *context) {
  attachRule<train::LayerNormOp, onRows<train::LayerNormOp, layerNorm>, OnPadding::known,
             OnParts::known>(context);
  attachRule<train::LayerNormGradOp, onRows<train::LayerNormGradOp, layerNormGrad>, OnPadding::known,
             OnParts::known>(context);
  attachRule<train::RmsNormOp, onRows<train::RmsNormOp, rmsNorm>, OnPadding::known,
             OnParts::known>(context);
  attachRule<train::RmsNormGradOp, onRows<train::RmsNormGradOp, rmsNormGrad>, OnPadding::known,
             OnParts::known>(context);
  attachRule<train::CrossEntropyOp, lossOfTokens, OnPadding::known, OnParts::known>(context);
  attachIndices<train::FoldInOp, foldIn>(context);
  attachIndices<train::SoftmaxOp, softmax>(context);
  attachRule<train::LogSumExpOp, logSumExp, OnPadding::known, OnParts::known>(context);
  attachRule<train::RopeOp, rope, OnPadding::known, OnParts::known>(context);
  attachRule<train::RopeTableOp, ropeTable, OnPadding::known>(context);
  attachRule<train::AlibiSlopesOp, alibiSlopes, OnPadding::known>(context);
  attachRule<train::DistanceBucketsOp, distanceBuckets>(context);
  attachRule<train::DropoutOp, dropout, OnPadding::known>(context);
}
