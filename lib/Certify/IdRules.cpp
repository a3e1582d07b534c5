//===- IdRules.cpp - ops with ids of rows: embeddings and the loss -----------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// Where the rows that ids select are sharded, a device counts ids from its own first
// row: ids that select a row of another device are then outside of its rows, add
// nothing and get zeros. So the ids' offset must be that of the device's part.
//
//===----------------------------------------------------------------------===//
#include "Certify/Rule.h"

#include "Dist/Dist.h"
#include "Train/Train.h"

#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::certify;

static int64_t extentOf(Value value, int64_t dim) {
  return cast<RankedTensorType>(value.getType()).getDimSize(dim);
}

/// Operands whose ids, number `ids`, are those of the global graph, if they count from the first
/// row of the device's part of dimension `dim` of operand `rows`.
static FailureOr<FactList> withGlobalIds(Operation *op, unsigned ids, unsigned rows, int64_t dim,
                                         Facts operands, Checker &checker) {
  FactList facts(operands);
  pin(facts[rows], op->getOperand(rows), checker);
  const Axes &axes = facts[rows].type.dims[dim];
  Offset expected =
      Offset::ofParts(axes, extentOf(op->getOperand(rows), dim), checker.mesh).negated();
  if (facts[ids].offset != expected)
    return checker.refuse(op)
           << "has " << Checker::nameOf(op, ids)
           << ", whose ids do not count from the first row of the device's part of "
           << Checker::nameOf(op, rows) << ", " << facts[rows].type.str(checker.mesh);
  facts[ids].offset = {};
  return facts;
}

/// An op of indices `text` whose ids select from dimension `dim` of operand `rows`.
static LogicalResult applyWithIds(Operation *op, StringRef text, StringRef linear, unsigned ids,
                                  unsigned rows, int64_t dim, Facts operands, NewFacts &results,
                                  Checker &checker, Attribute attributes = {}) {
  auto facts = withGlobalIds(op, ids, rows, dim, operands, checker);
  return failed(facts) ? failure()
                       : applyRule(IndexRule::parse(text, linear, op), op, *facts, results, checker,
                                   attributes);
}

static LogicalResult embedding(train::EmbeddingOp op, Facts operands, NewFacts &results,
                               Checker &checker) {
  // The row of padding is one without a gradient, which embedding_grad says: it reads ids without
  // it. What this op computes does not depend on it.
  Attribute attributes = Builder(op).getUnitAttr();
  return applyWithIds(op, "v d, ... -> ... d", "0", 1, 0, 0, operands, results, checker,
                      attributes);
}

static LogicalResult pick(train::PickOp op, Facts operands, NewFacts &results, Checker &checker) {
  return applyWithIds(op, "... v, ... -> ...", "0", 1, 0, operands[0].type.rank() - 1, operands,
                      results, checker);
}

static LogicalResult crossEntropyGrad(train::CrossEntropyGradOp op, Facts operands,
                                      NewFacts &results, Checker &checker) {
  bool perToken = cast<RankedTensorType>(op.getDloss().getType()).getRank() > 0;
  StringRef text = perToken ? "... v, ..., ..., ... -> ... v" : "... v, ..., ..., -> ... v";
  return applyWithIds(op, text, "3", 1, 0, operands[0].type.rank() - 1, operands, results, checker);
}

/// The ids' offset says which rows of the result are the device's.
static LogicalResult embeddingGrad(train::EmbeddingGradOp op, Facts operands, NewFacts &results,
                                   Checker &checker) {
  if (op.getInit())
    return checker.refuse(op) << "has an accumulator, which programs at phase local do not have";
  std::optional<Axes> axes = operands[1].offset.negated().axesOfParts(op.getRows(), checker.mesh);
  if (!axes)
    return checker.refuse(op) << "has " << Checker::nameOf(op, 1)
                              << ", whose offset is that of no parts of " << op.getRows()
                              << " rows";
  FactList facts(operands);
  facts[1].offset = {};
  IndexRule rule = IndexRule::parse("... d, ... -> v d", "0", op);
  int64_t rows = int64_t(op.getRows()) * checker.mesh.size(*axes);
  rule.given[rule.results[0][0]] = {rows, *axes};
  return applyRule(rule, op, facts, results, checker, Builder(op).getI64IntegerAttr(rows));
}

/// ids - offset, where the offset is 0 but for where the device's part begins.
static LogicalResult shiftIds(train::ShiftIdsOp op, Facts operands, NewFacts &results,
                              Checker &checker) {
  if (operands[1].expression->name != "zero")
    return checker.refuse(op) << "has " << Checker::nameOf(op, 1)
                              << ", which is no offset of the device's part";
  results.push_back(operands[0]);
  results[0].offset = operands[0].offset.plus(operands[1].offset.negated());
  return success();
}

static LogicalResult offset(dist::OffsetOp op, Facts, NewFacts &results, Checker &checker) {
  if (op.getShift())
    return checker.refuse(op) << "is of another device's part, for which there is no rule";
  Axes axes = checker.without1(op.getGroup().on(checker.mesh));
  results.push_back(
      {checker.make(op.getLoc(), "zero", {}, {}, IntegerType::get(op.getContext(), 32), {}),
       {},
       Offset::ofParts(axes, op.getSize(), checker.mesh)});
  return success();
}

static LogicalResult tokenLoss(train::TokenLossOp op, Facts operands, NewFacts &results,
                               Checker &checker) {
  StringRef text = op.getPerToken() ? "..., ..., ... -> ..., ..." : "..., ..., ... -> , ...";
  return applyRule(IndexRule::parse(text, "", op), op, operands, results, checker);
}

static constexpr IndexText each{};

void certify::attachIdRules(MLIRContext *context) {
  attachRule<train::EmbeddingOp, embedding>(context);
  attachRule<train::EmbeddingGradOp, embeddingGrad>(context);
  attachRule<train::ShiftIdsOp, shiftIds>(context);
  attachRule<train::PickOp, pick>(context);
  attachRule<train::CrossEntropyGradOp, crossEntropyGrad>(context);
  attachRule<dist::OffsetOp, offset>(context);
  attachRule<train::TokenLossOp, tokenLoss>(context);
  attachIndices<train::IgnoreIdOp, each>(context);
}
