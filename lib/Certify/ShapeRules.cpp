//===- ShapeRules.cpp - ops that move, repeat and sum elements ---------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Certify/Rule.h"

#include "Train/Train.h"

#include "mlir/IR/Builders.h"

#include <cmath>
#include <limits>

using namespace mlir;
using namespace meshwright;
using namespace meshwright::certify;

/// Every dimension an index of its own, the same in operand 0 and in the result.
static IndexRule alike(Operation *op, StringRef linear) {
  return IndexRule::elementwise(linear, op);
}

/// A constant of the op's type.
static Fact constantFact(Operation *op, double value, Checker &checker) {
  auto type = cast<RankedTensorType>(op->getResult(0).getType());
  const Expression *expression =
      checker.fill(op->getLoc(), value, type.getElementType(), type.getRank());
  return {expression, Distribution::replicated(expression->shape)};
}

bool certify::movesConstant(Operation *op, const Fact &x, NewFacts &results, Checker &checker) {
  std::optional<double> constant = fillOf(x.expression);
  if (!constant)
    return false;
  Fact &moved = results.emplace_back(constantFact(op, *constant, checker));
  moved.type.sum = x.type.sum;
  moved.type.root = x.type.root;
  return true;
}

static LogicalResult fill(train::FillOp op, Facts, NewFacts &results, Checker &checker) {
  std::optional<double> value = valueIn(op.getValue(), getElementTypeOrSelf(op.getType()));
  if (!value || std::isinf(*value))
    return checker.refuse(op) << "is of a value that is no finite number of " << op.getType();
  results.push_back(constantFact(op, *value, checker));
  return success();
}

static LogicalResult broadcast(train::BroadcastOp op, Facts operands, NewFacts &results,
                               Checker &checker) {
  if (movesConstant(op, operands[0], results, checker))
    return success();
  // A new dimension fits any extent: each device has what it asks for.
  IndexRule rule;
  rule.linear = {{0}};
  rule.keepsSign = true;
  rule.operands.emplace_back();
  rule.results.emplace_back();
  for (int64_t dim = 0; dim < cast<RankedTensorType>(op.getType()).getRank(); ++dim) {
    rule.results[0].push_back(dim);
    if (llvm::is_contained(op.getDims(), dim))
      rule.given[dim] = {anyExtent};
    else
      rule.operands[0].push_back(dim);
  }
  // Copies of a maximum are the maxima of copies.
  FactList facts(operands);
  settle(facts[0], checker);
  Axes maxima = facts[0].type.max;
  facts[0].type.max.clear();
  if (failed(applyRule(rule, op, facts, results, checker)))
    return failure();
  results[0].type.max = maxima;
  return success();
}

/// The sum, or the maximum, of what messages have brought: copies of a tensor, in each of which are the
/// terms of some devices.
static LogicalResult reduceMessages(train::ReduceOp op, const Fact &x, NewFacts &results,
                                    Checker &checker) {
  const Messages &messages = *x.type.messages;
  const Expression *copies = x.expression;
  bool isMax = op.getKind() == train::ReduceKind::Max;
  auto attributes = dyn_cast_or_null<DictionaryAttr>(copies->attributes);
  bool areCopies = copies->name == train::BroadcastOp::getOperationName() && attributes &&
                   attributes.get("dims") == DenseI64ArrayAttr::get(op.getContext(), {0}) &&
                   op.getDims() == ArrayRef<int64_t>{0} &&
                   messages.pieces == op.getX().getType().getDimSize(0);
  if (!areCopies || isMax != messages.isMax)
    return checker.refuse(op) << "reads " << Checker::nameOf(op, 0) << ", "
                              << x.type.str(checker.mesh);
  for (auto [device, copiesOf] : llvm::enumerate(messages.terms)) {
    llvm::BitVector all(copiesOf.front().size());
    for (const llvm::BitVector &terms : copiesOf) {
      if (!isMax && all.anyCommon(terms))
        return checker.refuse(op) << "adds, on the device at position " << device
                                  << ", the terms of a device twice";
      all |= terms;
    }
    if (!all.all())
      return checker.refuse(op) << "lacks, on the device at position " << device
                                << ", the terms of a device";
  }
  checker.use(isMax ? "maxima may be reordered"
                    : "sums over devices and microbatches may be reordered");
  Fact sum{copies->operands[0], x.type};
  sum.type.messages.reset();
  sum.type.eraseFront();
  if (sum.type.rows)
    sum.type.rows = sum.type.rows->shifted(-1);
  results.push_back(sum);
  return success();
}

static LogicalResult reduce(train::ReduceOp op, Facts operands, NewFacts &results,
                            Checker &checker) {
  if (operands[0].type.messages)
    return reduceMessages(op, operands[0], results, checker);
  IndexRule rule;
  rule.max = op.getKind() == train::ReduceKind::Max;
  if (rule.max)
    rule.neutral = -std::numeric_limits<double>::infinity();
  else
    rule.linear = {{0}};
  rule.keepsSign = true;
  rule.operands.emplace_back();
  rule.results.emplace_back();
  for (int64_t dim = 0; dim < operands[0].type.rank(); ++dim) {
    rule.operands[0].push_back(dim);
    if (!llvm::is_contained(op.getDims(), dim))
      rule.results[0].push_back(dim);
  }
  return applyRule(rule, op, operands, results, checker);
}

/// A number of the device, padded with one that is the same on all devices.
static constexpr StringRef paddedName = "padded number";

/// Whether a device's elements of dimension `dim` are a part of it, so that their slices are.
static bool isDivided(const Distribution &x, int64_t dim) {
  return (!x.dims[dim].empty() || x.pieces.count(dim)) && !x.rows;
}

/// Whether a tensor is chunks of tokens, one after the other: its dimensions are others then.
static bool isStack(const Distribution &x) { return x.chunks && !x.chunks->axis; }

/// A slice or a pad: dimension `dim` changes, and must be whole.
static IndexRule changeRows(Operation *op, int64_t dim, int64_t rows, StringRef linear) {
  IndexRule rule = alike(op, linear);
  unsigned before = rule.operands[0][dim], after = rule.operands[0].size();
  rule.whole.insert(before);
  rule.results[0][dim] = after;
  rule.given[after] = {rows};
  return rule;
}

static LogicalResult slice(train::SliceOp op, Facts operands, NewFacts &results, Checker &checker);
static LogicalResult pad(train::PadOp op, Facts operands, NewFacts &results, Checker &checker);

/// Numbers of rows by choice are padded, and sliced, along tokens as any tensor: there they have no row.
template <typename OpT>
static std::optional<LogicalResult> ofChoices(OpT op, Facts operands, NewFacts &results, Checker &checker,
                                              RuleFunction<OpT> rule) {
  const std::optional<RoutedRows> &rows = operands[0].type.rows;
  if (!rows || !rows->isIds || rows->blockDim)
    return {};
  FactList facts(operands);
  facts[0].type.rows.reset();
  if (failed(rule(op, facts, results, checker)))
    return failure();
  results.back().type.rows = rows;
  return success();
}

static LogicalResult slice(train::SliceOp op, Facts operands, NewFacts &results, Checker &checker) {
  if (auto done = ofChoices(op, operands, results, checker, ::slice))
    return *done;
  // All rows are the operand itself, which a rank's program does not slice.
  if (op.getX().getType() == op.getType()) {
    results.push_back(operands[0]);
    return success();
  }
  if (movesConstant(op, operands[0], results, checker))
    return success();
  int64_t dim = op.getDim(), rows = op.getRows();
  FactList facts(operands);
  settle(facts[0], checker);
  Distribution &x = facts[0].type;
  if (isStack(x))
    return checker.refuse(op) << "takes a part of " << x.str(checker.mesh) << ", stacked";
  if (facts[0].expression->name == paddedName && int64_t(op.getFrom()) > 0 && !x.hasParts() &&
      x.padding.empty()) {
    results.push_back(
        constantFact(op, cast<FloatAttr>(facts[0].expression->attributes).getValueAsDouble(), checker));
    return success();
  }
  if (isDivided(x, dim) && !x.chunks && !facts[0].offset) {
    x.setPieces(dim, x.piecesOf(dim, checker.mesh)->slice(op.getFrom(), rows), checker.mesh);
    results.push_back(facts[0]);
    return success();
  }
  auto padding = x.padding.find(dim);
  if (padding != x.padding.end() && x.dims[dim].empty() &&
      int64_t(op.getFrom()) + rows <= padding->second.logical) {
    // None of the padding, and perhaps all else.
    x.shape[dim] = padding->second.logical;
    x.padding.erase(padding);
    if (x.shape[dim] == rows) {
      results.push_back(facts[0]);
      return success();
    }
  }
  return applyRule(changeRows(op, dim, rows, "0"), op, facts, results, checker);
}

static LogicalResult pad(train::PadOp op, Facts operands, NewFacts &results, Checker &checker) {
  if (auto done = ofChoices(op, operands, results, checker, ::pad))
    return *done;
  int64_t dim = op.getDim();
  std::optional<double> known =
      valueIn(llvm::APFloat(double(int64_t(op.getValue()))), getElementTypeOrSelf(op.getType()));
  if (!known)
    return checker.refuse(op) << "is of " << int64_t(op.getValue()) << ", which is no number of "
                              << op.getType();
  double value = *known;
  if (fillOf(operands[0].expression) == value && (value == 0 || operands[0].type.sum.empty())) {
    results.push_back(constantFact(op, value, checker));
    results[0].type.root = operands[0].type.root;
    return success();
  }
  FactList facts(operands);
  settle(facts[0], checker);
  if (isStack(facts[0].type))
    return checker.refuse(op) << "pads " << facts[0].type.str(checker.mesh) << ", stacked";
  if (facts[0].expression->name == "zero" && op.getFrom() == 0) {
    results.push_back({checker.make(op.getLoc(), paddedName, Builder(op).getF64FloatAttr(value), {},
                                    facts[0].expression->element, {int64_t(op.getRows())}),
                       Distribution::replicated({int64_t(op.getRows())})});
    return success();
  }
  if (Distribution &x = facts[0].type;
      value == 0 && isDivided(x, dim) && !x.chunks && !facts[0].offset) {
    x.setPieces(dim, x.piecesOf(dim, checker.mesh)->pad(op.getFrom(), op.getRows()), checker.mesh);
    results.push_back(facts[0]);
    return success();
  }
  // Zeros are the terms of zeros.
  std::optional<Summands> terms = facts[0].type.summands;
  if (terms && value != 0)
    return checker.refuse(op) << "puts " << value << " into each term of " << Checker::nameOf(op, 0)
                              << ", " << facts[0].type.str(checker.mesh);
  IndexRule rule = changeRows(op, dim, op.getRows(), value == 0 ? "0" : "");
  facts[0].type.summands.reset();
  auto types = rule.apply(op, facts, checker);
  if (failed(types))
    return failure();
  Distribution &type = types->front();
  bool isInGraph = checker.proof.expressions.find(
      op.getLoc(), op->getName().getStringRef(), op->getPropertiesAsAttribute(),
      expressionsOf(facts), 0, facts[0].expression->element, type.expressionShape());
  bool isLike = checker.hasLike(op->getName().getStringRef(), facts[0].expression,
                                type.expressionShape());
  // Rows behind the others that the global graph does not have are padding.
  if (op.getFrom() != 0 || isInGraph || isLike || checker.mesh.axes.empty())
    return applyRule(rule, op, operands, results, checker);
  type.summands = terms;
  type.padding[dim] = {facts[0].type.shape[dim], value, false};
  checker.proof.padded.insert({type.shape[dim], facts[0].type.shape[dim]});
  results.push_back({facts[0].expression, type});
  return success();
}

static constexpr IndexText transposed{"a n k -> n a k", "0"};

void certify::attachShapeRules(MLIRContext *context) {
  attachRule<train::FillOp, ::fill>(context);
  attachRule<train::BroadcastOp, broadcast, OnPadding::known, OnParts::known>(context);
  attachRule<train::ReduceOp, reduce, OnPadding::known, OnParts::known>(context);
  attachRule<train::SliceOp, slice, OnPadding::known, OnParts::known>(context);
  attachRule<train::PadOp, pad, OnPadding::known, OnParts::known>(context);
  attachIndices<train::TransposeBlocksOp, transposed>(context);
}
