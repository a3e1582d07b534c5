//===- IdRules.cpp - ops with ids of rows: embeddings and the loss -----------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// Where the rows that ids select are sharded, a device counts ids from its own first
// row: ids that select a row of another device are then outside of its rows, add
// nothing and get zeros. So the ids' offset must be that of the device's part.
//
//===----------------------------------------------------------------------===//
#include "Certify/Definitions.h"
#include "Certify/Rule.h"

#include "Dist/Dist.h"
#include "Train/Train.h"

#include "mlir/IR/Builders.h"

#include <cmath>
#include <limits>

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
  if (facts[rows].type.pieces.count(dim))
    return checker.refuse(op) << "selects rows by their numbers from pieces, "
                              << Checker::nameOf(op, rows) << ", which is "
                              << facts[rows].type.str(checker.mesh);
  const Axes &axes = facts[rows].type.dims[dim];
  Offset expected =
      Offset::ofParts(axes, extentOf(op->getOperand(rows), dim), checker.mesh).negated();
  if (facts[ids].offset != expected)
    return checker.refuse(op)
           << "has " << Checker::nameOf(op, ids)
           << ", whose ids do not count from the first row of the device's part of "
           << Checker::nameOf(op, rows) << ", " << facts[rows].type.str(checker.mesh);
  facts[ids].offset = {};
  if (const Expression *number = facts[ids].expression; number->name == numberName)
    facts[ids].expression = number->operands[0];
  return facts;
}

/// An op of indices `text` whose ids select from dimension `dim` of operand `rows`.
static LogicalResult applyWithIds(Operation *op, StringRef text, StringRef linear, unsigned ids,
                                  unsigned rows, int64_t dim, Facts operands, NewFacts &results,
                                  Checker &checker, Attribute attributes = {}) {
  auto facts = withGlobalIds(op, ids, rows, dim, operands, checker);
  IndexRule rule = IndexRule::parse(text, linear, op);
  if (!isa<train::CrossEntropyGradOp>(op))
    rule.ids = ids;
  return failed(facts) ? failure() : applyRule(rule, op, *facts, results, checker, attributes);
}

static LogicalResult embedding(train::EmbeddingOp op, Facts operands, NewFacts &results,
                               Checker &checker) {
  // The row of padding is one without a gradient, which embedding_grad says: it reads ids without
  // it. What this op computes does not depend on it.
  Attribute attributes = Builder(op).getUnitAttr();
  return applyWithIds(op, "v d, ... -> ... d", "0", 1, 0, 0, operands, results, checker,
                      attributes);
}

/// Of padding that is not 0 a target may pick any number, but none below the extent without padding
/// does.
static LogicalResult pick(train::PickOp op, Facts operands, NewFacts &results, Checker &checker) {
  int64_t columns = operands[0].type.rank() - 1;
  FactList facts(operands);
  auto padding = facts[0].type.padding.find(columns);
  bool isOfTarget = padding != facts[0].type.padding.end() && padding->second.fill != 0.0;
  if (isOfTarget)
    padding->second.fill = 0;
  if (failed(applyWithIds(op, "... v, ... -> ...", "0", 1, 0, columns, facts, results, checker)))
    return failure();
  if (isOfTarget)
    results[0].expression =
        logitOfTarget(op.getLoc(), operands[0].expression, operands[1].expression, checker);
  return success();
}

/// Whether `logSum` is infinite for each target that is none of the first `columns`, as
/// train.token_loss makes it.
static bool isOfTargetsBelow(int64_t columns, const Expression *logSum, const Expression *targets) {
  constexpr unsigned result = 1, operand = 2;
  if (logSum->name != train::TokenLossOp::getOperationName() || logSum->result != result ||
      logSum->operands[operand] != targets)
    return false;
  auto attributes = cast<DictionaryAttr>(logSum->attributes);
  return attributes.getAs<IntegerAttr>("below").getInt() <= columns;
}

static LogicalResult crossEntropyGrad(train::CrossEntropyGradOp op, Facts operands,
                                      NewFacts &results, Checker &checker) {
  bool perToken = cast<RankedTensorType>(op.getDloss().getType()).getRank() > 0;
  StringRef text = perToken ? "... v, ..., ..., ... -> ... v" : "... v, ..., ..., -> ... v";
  int64_t columns = operands[0].type.rank() - 1;
  // The exponential of an infinitely small logit is 0, and no target is in the padding where tokens
  // with such targets count as tokens without one, whose sum is infinite: these have no gradient.
  constexpr double infinity = std::numeric_limits<double>::infinity();
  FactList facts(operands);
  SmallVector<int64_t> zeros;
  if (facts[0].type.isFilled(columns, -infinity)) {
    facts[0].type.padding[columns].fill.reset();
    if (isOfTargetsBelow(facts[0].type.logical(columns), facts[2].expression, facts[1].expression))
      zeros.push_back(columns);
  }
  for (auto &[dim, padding] : facts[2].type.padding)
    if (padding.fill == infinity) {
      padding.fill.reset();
      if (auto found = facts[0].type.padding.find(dim); found != facts[0].type.padding.end())
        found->second.fill.reset();
      zeros.push_back(dim);
    }
  if (failed(applyWithIds(op, text, "3", 1, 0, columns, facts, results, checker)))
    return failure();
  for (int64_t dim : zeros)
    results[0].type.padding[dim] = {results[0].type.logical(dim), 0};
  return success();
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
  rule.ids = 1;
  int64_t rows = int64_t(op.getRows()) * checker.mesh.size(*axes);
  unsigned index = rule.results[0][0];
  rule.given[index] = {rows, *axes};
  Builder builder(op);
  return applyToKnown(
      rule, index, op, facts, [&](int64_t count) { return builder.getI64IntegerAttr(count); },
      results, checker);
}

/// ids - offset, where the offset is 0 but for where the device's part begins.
static LogicalResult shiftIds(train::ShiftIdsOp op, Facts operands, NewFacts &results,
                              Checker &checker) {
  if (operands[1].expression->name != "zero" || operands[0].type.terms)
    return checker.refuse(op) << "has " << Checker::nameOf(op, 1)
                              << ", which is no offset of the device's part";
  if (operands[0].type.rows)
    return checker.refuse(op) << "shifts " << Checker::nameOf(op, 0)
                              << ", numbers of rows, which are no ids";
  results.push_back(operands[0]);
  auto offset = operands[0].offset.plus(operands[1].offset.negated());
  if (!offset)
    return checker.refuse(op) << "shifts numbers that count from the device's own offset by another";
  results[0].offset = *offset;
  // A constant is one number in all places, on all devices.
  const Expression *ids = results[0].expression;
  if (results[0].offset && fillOf(ids))
    results[0].expression =
        checker.make(op.getLoc(), numberName, {}, {ids}, ids->element, ids->shape);
  else if (!results[0].offset && ids->name == numberName)
    results[0].expression = ids->operands[0];
  bool isFromFirst =
      llvm::all_of(operands[1].offset.terms, [](auto term) { return term.second > 0; }) &&
      llvm::all_of(operands[1].offset.table, [](int64_t number) { return number >= 0; });
  for (auto &[dim, padding] : results[0].type.padding)
    if (padding.fill != -1.0 || !isFromFirst)
      padding = {padding.logical, std::nullopt};
  return success();
}

/// In a program of padded tensors, the op that says what is in the padding of a dimension. Where
/// others are padded too, that may then be what was in their padding, or this.
static LogicalResult mask(train::MaskOp op, Facts operands, NewFacts &results, Checker &checker) {
  int64_t dim = op.getDim(), below = op.getBelow();
  FactList facts = {operands[0]};
  settle(facts[0], checker);
  if (const Distribution &type = facts[0].type;
      type.terms || type.pieces.count(dim) ||
      (type.chunks && type.chunks->has(dim)))
    return checker.refuse(op) << "masks dimension " << dim << " of " << Checker::nameOf(op, 0)
                              << ", " << type.str(checker.mesh);
  std::optional<double> given = valueIn(op.getValue(), facts[0].expression->element);
  if (!given)
    return checker.refuse(op) << "puts a value that is no number of " << op.getX().getType()
                              << " into padding";
  double value = *given;
  // One number everywhere stays so.
  if (fillOf(facts[0].expression) == value && (value == 0 || facts[0].type.sum.empty())) {
    results.push_back(facts[0]);
    return success();
  }
  if (const auto &rows = facts[0].type.rows;
      rows && rows->blockDim && dim >= *rows->blockDim && dim <= *rows->slotDim)
    return checker.refuse(op) << "masks rows of routing choices, which are in no order";
  Offset found;
  if (op.getOffset()) {
    if (operands[1].expression->name != "zero")
      return checker.refuse(op) << "has an offset that is none of the device's part";
    found = operands[1].offset;
  }
  // Of what is alike along the dimension, those below the limit are the elements, and the others
  // padding.
  // The global graph has no padding: what it masks is a value.
  if (facts[0].type.isAny(dim) && !checker.mesh.axes.empty()) {
    Distribution &type = facts[0].type;
    int64_t size = extentOf(op.getX(), dim);
    std::optional<Axes> axes = found.axesOfParts(size, checker.mesh);
    if (!axes || !llvm::all_of(*axes, [&](unsigned axis) { return type.isReplicated(axis); }))
      return checker.refuse(op) << "has an offset that is that of no parts of " << size
                                << " elements";
    int64_t extent = size * checker.mesh.size(*axes);
    for (int64_t other = 0; other < type.rank(); ++other)
      if (type.isAny(other))
        type.shape[other] = extentOf(op.getX(), other);
    type.shape[dim] = std::min(below, extent);
    facts[0].expression = checker.make(op.getLoc(), "of extents", {}, {facts[0].expression},
                                       facts[0].expression->element, type.expressionShape());
    type.shape[dim] = extent;
    type.dims[dim] = *axes;
    if (below < extent)
      type.padding[dim] = {below, std::nullopt};
  }
  pin(facts[0], op.getX(), checker);
  const Distribution &x = facts[0].type;
  if (found != Offset::ofParts(x.dims[dim], extentOf(op.getX(), dim), checker.mesh))
    return checker.refuse(op) << "does not begin where the device's part of dimension " << dim
                              << " does: " << x.str(checker.mesh);
  if (value != 0 && (!x.sum.empty() || !x.max.empty()))
    return checker.refuse(op) << "puts " << value << " into each term of " << Checker::nameOf(op, 0)
                              << ", " << x.str(checker.mesh);
  if (facts[0].offset)
    return checker.refuse(op) << "masks numbers that count from the device's own offset";
  checker.proof.kernels.insert(op->getName().getStringRef().str());
  auto padding = x.padding.find(dim);
  if (padding == x.padding.end() && below >= x.shape[dim]) {
    results.push_back(facts[0]);
  } else if (padding == x.padding.end()) {
    Builder b(op);
    Attribute attributes = b.getArrayAttr({op.getDimAttr(), op.getBelowAttr(), op.getValueAttr()});
    const Expression *masked =
        checker.make(op, attributes, {facts[0].expression}, 0, x.expressionShape());
    results.push_back({masked, x});
  } else if (below == padding->second.logical) {
    results.push_back(facts[0]);
  } else {
    return checker.refuse(op) << "ends at " << below << ", where " << Checker::nameOf(op, 0)
                              << " is " << x.str(checker.mesh);
  }
  Padding made = {below, value};
  for (auto &[other, padding] : results[0].type.padding)
    if (other == dim)
      padding = made;
    else if (padding.fill && std::isinf(*padding.fill) && padding.fill != value)
      return checker.refuse(op) << "puts " << value << " where the padding of dimension " << other
                                << " is infinite: " << x.str(checker.mesh);
    else if (!std::isinf(value))
      padding.weaken(made);
  return success();
}

static LogicalResult offset(dist::OffsetOp op, Facts, NewFacts &results, Checker &checker) {
  Axes axes = checker.without1(op.getGroup().on(checker.mesh));
  Offset offset;
  int64_t count = checker.mesh.size(axes), size = op.getSize();
  if (op.getShift() && count > 1) {
    offset.group = axes;
    for (int64_t p = 0; p < count; ++p)
      offset.table.push_back((p + int64_t(op.getShift())) % count * size);
  } else {
    offset = Offset::ofParts(axes, size, checker.mesh);
  }
  results.push_back(
      {checker.make(op.getLoc(), "zero", {}, {}, IntegerType::get(op.getContext(), 32), {}),
       {},
       offset});
  return success();
}

LogicalResult certify::ignorePadding(Operation *op, unsigned targets, Facts operands,
                                     Distribution &logSums, Checker &checker) {
  for (auto &[dim, padding] : operands[targets].type.padding) {
    if (padding.fill != -1.0)
      return checker.refuse(op) << "has targets in the padding of " << Checker::nameOf(op, targets);
    logSums.padding[dim].fill = std::numeric_limits<double>::infinity();
  }
  return success();
}

static LogicalResult tokenLoss(train::TokenLossOp op, Facts operands, NewFacts &results,
                               Checker &checker) {
  StringRef text = op.getPerToken() ? "..., ..., ... -> ..., ..." : "..., ..., ... -> , ...";
  FactList facts(operands);
  const Expression *picked = facts[1].expression;
  if (picked->name == train::PickOp::getOperationName() &&
      picked->operands[1] == facts[2].expression &&
      picked->operands[0]->shape.back() >= int64_t(op.getBelow()))
    facts[1].expression =
        logitOfTarget(op.getLoc(), picked->operands[0], picked->operands[1], checker);
  IndexRule rule = IndexRule::parse(text, "", op);
  rule.ids = 2;
  if (failed(applyRule(rule, op, facts, results, checker)))
    return failure();
  return ignorePadding(op, 2, facts, results[1].type, checker);
}

static constexpr IndexText each{};

/// Ids in the padding that select no row do not after it either.
static LogicalResult ignoreId(train::IgnoreIdOp op, Facts operands, NewFacts &results,
                              Checker &checker) {
  if (failed(applyRule(IndexRule::elementwise("", op), op, operands, results, checker)))
    return failure();
  for (auto &[dim, padding] : results[0].type.padding)
    if (operands[0].type.isFilled(dim, -1))
      padding.fill = -1;
  return success();
}

void certify::attachIdRules(MLIRContext *context) {
  attachRule<train::EmbeddingOp, embedding, OnPadding::known, OnParts::known>(context);
  attachRule<train::EmbeddingGradOp, embeddingGrad, OnPadding::known, OnParts::known>(context);
  attachRule<train::ShiftIdsOp, shiftIds, OnPadding::known, OnParts::known>(context);
  attachRule<train::PickOp, pick, OnPadding::known, OnParts::known>(context);
  attachRule<train::CrossEntropyGradOp, crossEntropyGrad, OnPadding::known, OnParts::known>(context);
  attachRule<dist::OffsetOp, offset>(context);
  attachRule<train::MaskOp, mask, OnPadding::known, OnParts::known>(context);
  attachRule<train::TokenLossOp, tokenLoss, OnPadding::known, OnParts::known>(context);
  attachRule<train::IgnoreIdOp, ignoreId, OnPadding::known, OnParts::known>(context);
}
