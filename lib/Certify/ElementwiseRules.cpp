//===- ElementwiseRules.cpp - ops on elements of one index -------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Certify/Rule.h"
#include "Certify/Sums.h"

#include "Train/Train.h"

#include "mlir/Interfaces/SideEffectInterfaces.h"

#include <cmath>

using namespace mlir;
using namespace meshwright;
using namespace meshwright::certify;

static constexpr IndexText zeroOfZero{"", "", IndexText::zero};
static constexpr IndexText linearInFirst{"", "0"};
static constexpr IndexText byScalar{"..., -> ...", "0"};
static constexpr IndexText twoByScalar{"..., ..., -> ...", "", IndexText::zero};
static constexpr IndexText pairs{"... t!, ... u! -> ... t! u!"};
static constexpr IndexText scalars{", -> "};

/// Whether a carried value, or what rounds add to one, is of this loop.
static bool isOf(const Rounds &loop, const Expression *value) {
  return cast<DenseI64ArrayAttr>(value->attributes)[0] == loop.level;
}

/// A carried value of a loop over rounds, plus what this round adds to it: over all rounds, the
/// complete sum.
static FailureOr<bool> addRound(Operation *op, Facts operands, NewFacts &results,
                                Checker &checker) {
  for (const Rounds &loop : checker.rounds)
    for (unsigned index : {0, 1}) {
      const Fact &carried = operands[index];
      const Expression *before = carried.expression;
      if ((before->name != "argument" && before->name != accumulatedName) || !isOf(loop, before))
        continue;
      Fact round = operands[1 - index];
      if (!llvm::is_contained(round.type.sum, loop.axis))
        return checker.refuse(op) << "adds " << Checker::nameOf(op, 1 - index)
                                  << " once in every round to what all of them add to";
      llvm::erase(round.type.sum, loop.axis);
      if (round.type != carried.type || round.offset)
        return checker.refuse(op) << "adds " << Checker::nameOf(op, 1 - index) << ", "
                                  << round.type.str(checker.mesh) << ", to a carried value that is "
                                  << carried.type.str(checker.mesh);
      const Expression *sum = round.expression;
      if (before->name == accumulatedName)
        sum = checker.make(op, {before->operands[0], sum}, 0, round.type.expressionShape());
      results.push_back({checker.make(op->getLoc(), accumulatedName, before->attributes, {sum},
                                      sum->element, round.type.expressionShape()),
                         round.type});
      return true;
    }
  return false;
}

/// What a fact has in the padding of its dimension `fromLast` from the end, if that is one known number.
static std::optional<double> fillAt(const Fact &fact, int64_t fromLast) {
  if (std::optional<double> constant = fillOf(fact.expression))
    return constant;
  auto found = fact.type.padding.find(fact.type.rank() - fromLast);
  return found == fact.type.padding.end() ? std::nullopt : found->second.fill;
}

/// Where all operands have known numbers in their padding, so has the result: `of` computes them.
static void computePadding(Facts operands, Fact &result,
                           llvm::function_ref<double(ArrayRef<double>)> of) {
  if (!result.type.sum.empty() || !result.type.max.empty() || result.type.hasParts())
    return;
  for (auto &[dim, padding] : result.type.padding) {
    SmallVector<double> values;
    for (const Fact &operand : operands)
      if (std::optional<double> fill = fillAt(operand, result.type.rank() - dim))
        values.push_back(*fill);
    if (padding.fill || values.size() != operands.size())
      continue;
    auto made = valueIn(llvm::APFloat(of(values)), result.expression->element);
    if (made && std::isfinite(*made))
      padding = {padding.logical, made, false};
  }
}

/// Terms of one value, or pieces of it with zeros around them, which together are more of it.
static std::optional<Fact> addParts(Facts operands, Checker &checker) {
  const Fact &x = operands[0], &y = operands[1];
  if (x.expression != y.expression || x.offset || y.offset || !x.type.hasParts())
    return {};
  Fact sum = x;
  sum.merge(y);
  Distribution type = y.type;
  if (x.type.terms && y.type.terms) {
    // Means over some keys and over others have weights: attention merges these.
    auto terms = x.type.terms->plus(*y.type.terms);
    type.terms = x.type.terms;
    if (!terms || type != x.type || terms->kind != Terms::sum)
      return {};
    sum.type.terms = terms;
    return sum;
  }
  for (auto &[dim, pieces] : x.type.pieces) {
    auto found = y.type.pieces.find(dim);
    if (found == y.type.pieces.end() || !pieces.hasZeros())
      continue;
    auto both = pieces.plus(found->second);
    type.pieces[dim] = pieces;
    if (!both || type != x.type)
      return {};
    sum.type.setPieces(dim, *both, checker.mesh);
    checker.use("x + 0 = x");
    return sum;
  }
  return {};
}

/// x + 0 = x.
static LogicalResult addTerms(Operation *op, Facts operands, NewFacts &results, Checker &checker) {
  if (std::optional<Fact> sum = addParts(operands, checker)) {
    results.push_back(*sum);
    return success();
  }
  IndexRule rule = IndexRule::elementwise("0+1", op);
  rule.keepsSign = true;
  if (failed(applyRule(rule, op, operands, results, checker)))
    return failure();
  computePadding(operands, results[0], [](ArrayRef<double> x) { return x[0] + x[1]; });
  for (unsigned zero : {1, 0}) {
    const Fact &other = operands[1 - zero];
    if (!isZero(operands[zero].expression) || other.type.shape != results[0].type.shape ||
        other.expression->element != getElementTypeOrSelf(op->getResult(0).getType()))
      continue;
    results[0].expression = other.expression;
    checker.use("x + 0 = x");
    return success();
  }
  // What microbatches and stages add up may come in any order.
  auto isLike = [&](const Fact &term) {
    return term.expression->shape == results[0].expression->shape;
  };
  if (llvm::all_of(operands, isLike) &&
      (isa<train::AccumulateOp>(op) || isSum(operands[0].expression) ||
       isSum(operands[1].expression)))
    results[0].expression =
        checker.sum(op->getLoc(), expressionsOf(operands), results[0].expression->element,
                    results[0].expression->shape);
  return success();
}

/// The terms of a sum that a value has besides another one, of which it is the last.
static constexpr StringRef besideName = "terms beside";

/// The type of a term that is added in each round to what a fact is: along the rounds it is partial.
static Distribution typeOfRounds(const Fact &fact, Checker &checker) {
  Distribution type = fact.type;
  for (const Rounds &loop : checker.rounds)
    if (fact.expression->name == accumulatedName && isOf(loop, fact.expression)) {
      type.sum.push_back(loop.axis);
      llvm::sort(type.sum);
    }
  return type;
}

/// A value and some terms of a sum that all devices have alike, or more of these terms. None if that
/// is not what the operands are.
static FailureOr<bool> addBeside(Operation *op, Facts operands, NewFacts &results,
                                 Checker &checker) {
  auto areTerms = [](const Fact &fact) {
    return fact.type.summands && fact.type.summands->group.empty();
  };
  for (unsigned index : {0, 1}) {
    const Fact &have = operands[index], &more = operands[1 - index];
    if (!areTerms(more))
      continue;
    const Summands &terms = *more.type.summands;
    Fact without = more;
    without.type.summands.reset();
    bool isFilled = llvm::any_of(more.type.padding, [](auto &entry) {
      return entry.second.fill.value_or(0) != 0;
    });
    if (isFilled || without.type.hasParts())
      return checker.refuse(op) << "adds " << Checker::nameOf(op, 1 - index) << ", "
                                << more.type.str(checker.mesh) << ", to what is beside it";
    if (!have.type.summands && !have.type.hasParts()) {
      FactList facts = {have, without};
      FailureOr<bool> isRound = addRound(op, facts, results, checker);
      if (failed(isRound) || (!*isRound && failed(addTerms(op, facts, results, checker))))
        return failure();
      Summands made{{}, nullptr, terms.count + 1, terms.of};
      made.of[0].resize(made.count);
      made.of[0].set(terms.count);
      made.term = checker.make(op->getLoc(), besideName, {}, {terms.term, have.expression},
                               more.expression->element, more.expression->shape);
      results.back().type.summands = made;
      return true;
    }
    const Expression *term = have.type.summands ? have.type.summands->term : terms.term;
    if (!areTerms(have) || term->name != besideName || term->operands[0] != terms.term)
      continue;
    Fact sum = have;
    sum.summed.clear();
    sum.type.summands.reset();
    const llvm::BitVector &own = have.type.summands->of[0];
    llvm::BitVector all = terms.of[0];
    all.resize(own.size());
    if (own.anyCommon(all) || typeOfRounds(sum, checker) != without.type || without.offset)
      return checker.refuse(op) << "adds terms of a sum to others that are not of the same elements and sum, "
                                   "or are there already: "
                                << have.type.str(checker.mesh) << ", and "
                                << more.type.str(checker.mesh);
    sum.type.summands = have.type.summands;
    sum.type.summands->of[0] |= all;
    joinTerms(sum, checker);
    results.push_back(sum);
    return true;
  }
  return false;
}

/// Some terms of a value and others of it, or the same terms of two values.
static LogicalResult addSummands(Operation *op, Facts operands, NewFacts &results,
                                 Checker &checker) {
  FactList facts(operands);
  Axes group;
  for (const Fact &fact : facts)
    for (unsigned axis : fact.type.summands ? fact.type.summands->group : Axes())
      if (!llvm::is_contained(group, axis))
        group.push_back(axis);
  for (auto [index, fact] : llvm::enumerate(facts)) {
    if (!fact.type.summands || fact.type.summands->group.size() != group.size())
      divideSum(fact, group, checker);
    bool isFilled = llvm::any_of(fact.type.padding, [](auto &entry) {
      return entry.second.fill.value_or(0) != 0;
    });
    if (!fact.type.summands || isFilled)
      return checker.refuse(op) << "adds " << Checker::nameOf(op, index) << ", "
                                << fact.type.str(checker.mesh)
                                << ", to some terms of a sum, beside all others of them";
  }
  Summands x = *facts[0].type.summands, y = *facts[1].type.summands;
  auto refuse = [&] {
    return checker.refuse(op) << "adds terms of a sum to others that are not of the same elements and sum, "
                                 "or are there already: "
                              << operands[0].type.str(checker.mesh) << ", and "
                              << operands[1].type.str(checker.mesh);
  };
  for (Fact &fact : facts)
    fact.type.summands.reset();
  if (facts[0].expression == facts[1].expression) {
    auto both = x.plus(y);
    if (!both || facts[0].type != facts[1].type || facts[0].offset || facts[1].offset)
      return refuse();
    checker.use("sums over devices and microbatches may be reordered");
    facts[0].type.summands = both;
    facts[0].merge(facts[1]);
    joinTerms(facts[0], checker);
    results.push_back(facts[0]);
    return success();
  }
  if (x.group != y.group || x.count != y.count || x.of != y.of)
    return checker.refuse(op) << "adds terms of a sum to other ones of another sum";
  if (failed(addTerms(op, facts, results, checker)))
    return failure();
  x.term = checker.make(op, {x.term, y.term}, 0, results[0].expression->shape);
  results[0].type.summands = x;
  return success();
}

static LogicalResult add(train::AddOp op, Facts operands, NewFacts &results, Checker &checker) {
  if (llvm::any_of(operands, [](const Fact &fact) { return fact.type.summands.has_value(); })) {
    FailureOr<bool> isBeside = addBeside(op, operands, results, checker);
    return failed(isBeside) || *isBeside ? LogicalResult(isBeside)
                                         : addSummands(op, operands, results, checker);
  }
  FailureOr<bool> isRound = addRound(op, operands, results, checker);
  if (failed(isRound) || *isRound)
    return failure(failed(isRound));
  return addTerms(op, operands, results, checker);
}

static LogicalResult accumulate(train::AccumulateOp op, Facts operands, NewFacts &results,
                                Checker &checker) {
  FailureOr<bool> isRound = addRound(op, operands, results, checker);
  if (failed(isRound) || *isRound)
    return failure(failed(isRound));
  return addTerms(op, operands, results, checker);
}

/// Whether two values of a program are one, or are computed alike in a few steps, which read no
/// variables: these may be written between.
static bool areAlike(Value x, Value y, unsigned steps) {
  Operation *left = x.getDefiningOp(), *right = y.getDefiningOp();
  if (x == y || !left || !right || steps == 0)
    return x == y;
  return isPure(left) && left->getName() == right->getName() &&
         left->getPropertiesAsAttribute() == right->getPropertiesAsAttribute() &&
         cast<OpResult>(x).getResultNumber() == cast<OpResult>(y).getResultNumber() &&
         left->getNumOperands() == right->getNumOperands() &&
         llvm::all_of(llvm::zip(left->getOperands(), right->getOperands()), [&](auto pair) {
           return areAlike(std::get<0>(pair), std::get<1>(pair), steps - 1);
         });
}

/// Squares are not negative, nor are products of numbers that are not.
static LogicalResult multiply(train::MulOp op, Facts operands, NewFacts &results,
                              Checker &checker) {
  IndexRule rule = IndexRule::elementwise("0 1", op);
  rule.keepsSign = true;
  if (failed(applyRule(rule, op, operands, results, checker)))
    return failure();
  computePadding(operands, results[0], [](ArrayRef<double> x) { return x[0] * x[1]; });
  bool isSquare =
      !results[0].type.padding.empty() && areAlike(op.getOperand(0), op.getOperand(1), 4);
  for (auto &[dim, padding] : results[0].type.padding)
    padding.isPositive |= !padding.fill && isSquare;
  return success();
}

/// A mean of numbers that are not below 0 is none that is, as weights are from 0 to 1.
static LogicalResult lerp(train::LerpOp op, Facts operands, NewFacts &results, Checker &checker) {
  IndexRule rule = IndexRule::parse("..., ..., -> ...", "0+1", op);
  rule.keepsSign = isWeight(operands[2].expression, checker);
  return applyRule(rule, op, operands, results, checker);
}

/// 1 x = x and 0 x = 0.
static LogicalResult scale(train::ScaleOp op, Facts operands, NewFacts &results, Checker &checker) {
  if (!op.getFactor().isFinite())
    return checker.refuse(op) << "is by a factor that is no finite number";
  IndexRule rule = IndexRule::elementwise("0", op);
  rule.keepsSign = !op.getFactor().isNegative();
  if (failed(applyRule(rule, op, operands, results, checker)))
    return failure();
  computePadding(operands, results[0], [&](ArrayRef<double> x) {
    return x[0] * op.getFactor().convertToDouble();
  });
  if (op.getFactor().isExactlyValue(1.0)) {
    results[0].expression = operands[0].expression;
    checker.use("1 x = x");
  }
  if (op.getFactor().isZero()) {
    const Expression *zero =
        checker.fill(op.getLoc(), 0, getElementTypeOrSelf(op.getType()), operands[0].type.rank());
    Axes root = results[0].type.root;
    results[0] = {zero, Distribution::replicated(zero->shape)};
    results[0].type.root = root;
    checker.use("0 x = 0");
  }
  return success();
}

/// Whether a value is one of a narrower float type, which a wider one has all numbers of.
static bool isWidened(const Expression *x, Type narrower) {
  return x->name == train::CastOp::getOperationName() && x->operands[0]->element == narrower &&
         isa<FloatType>(narrower) && isa<FloatType>(x->element) &&
         x->element.getIntOrFloatBitWidth() > narrower.getIntOrFloatBitWidth();
}

/// Numbers are real, so that a sum may be completed before or after it is cast; an expression says
/// where values are rounded.
static LogicalResult cast(train::CastOp op, Facts operands, NewFacts &results, Checker &checker) {
  if (failed(applyRule(IndexRule::elementwise("0", op), op, operands, results, checker)))
    return failure();
  const Expression *x = operands[0].expression;
  Type element = getElementTypeOrSelf(op.getType());
  std::optional<double> constant = fillOf(x);
  if (constant && !(constant = valueIn(llvm::APFloat(*constant), element)))
    return checker.refuse(op) << "is of a value that is no number of " << op.getType();
  if (constant)
    results[0].expression = checker.fill(op.getLoc(), *constant, element, operands[0].type.rank());
  else if (x->element == element)
    results[0].expression = x;
  else if (x->name == unroundedName && x->operands[0]->element == element)
    results[0].expression = x->operands[0];
  else if (isWidened(x, element))
    results[0].expression = x->operands[0];
  return success();
}

/// An op on what an operand's padding is, where it is one number: `of` is of that number.
static LogicalResult onFill(Operation *op, Facts operands, llvm::function_ref<double(double)> of,
                            NewFacts &results, Checker &checker, bool isPositive = false) {
  FactList facts(operands);
  for (auto &[dim, padding] : facts[0].type.padding)
    padding = {padding.logical, std::nullopt};
  if (failed(applyRule(IndexRule::elementwise("", op), op, facts, results, checker)))
    return failure();
  const auto &before = operands[0].type.padding;
  auto isInfinite = [](const auto &entry) {
    return entry.second.fill && std::isinf(*entry.second.fill);
  };
  bool hasInfinite = llvm::any_of(before, isInfinite);
  for (auto &[dim, padding] : results[0].type.padding)
    padding.isPositive = isPositive && !padding.fill;
  for (const auto &entry : before) {
    if (!entry.second.fill || (hasInfinite && !isInfinite(entry)))
      continue;
    auto made = valueIn(llvm::APFloat(of(*entry.second.fill)), results[0].expression->element);
    if (!made)
      return checker.refuse(op) << "makes no number of padding: "
                                << operands[0].type.str(checker.mesh);
    results[0].type.padding[entry.first] = {entry.second.logical, made};
  }
  return success();
}

static LogicalResult clamp(train::ClampOp op, Facts operands, NewFacts &results, Checker &checker) {
  double least = op.getLeast().convertToDouble(), most = op.getMost().convertToDouble();
  return onFill(
      op, operands, [&](double x) { return std::min(std::max(x, least), most); }, results, checker,
      /*isPositive=*/least >= 0);
}

static LogicalResult exp(train::ExpOp op, Facts operands, NewFacts &results, Checker &checker) {
  return onFill(
      op, operands, [](double x) { return std::exp(x); }, results, checker, /*isPositive=*/true);
}

static LogicalResult tanh(train::TanhOp op, Facts operands, NewFacts &results, Checker &checker) {
  return onFill(
      op, operands, [](double x) { return std::tanh(x); }, results, checker);
}

static LogicalResult sigmoid(train::SigmoidOp op, Facts operands, NewFacts &results,
                             Checker &checker) {
  return onFill(
      op, operands, [](double x) { return 1 / (1 + std::exp(-x)); }, results, checker, /*isPositive=*/true);
}

static double valueAt(train::LogOp, double x) { return std::log(x); }
static double valueAt(train::InverseRootOp op, double x) {
  return 1 / std::sqrt(x + op.getEps().convertToDouble());
}

/// An op that is defined for positive numbers: padding must be one, or not below one.
template <typename OpT>
static LogicalResult positive(OpT op, Facts operands, NewFacts &results, Checker &checker) {
  auto isDefined = [&](double x) {
    auto value = valueIn(llvm::APFloat(valueAt(op, x)), getElementTypeOrSelf(op.getType()));
    return value && std::isfinite(*value);
  };
  for (auto &[dim, padding] : operands[0].type.padding)
    if ((!padding.fill && !padding.isPositive) || !isDefined(padding.fill.value_or(0)))
      return checker.refuse(op) << "of padding that may not be positive: "
                                << operands[0].type.str(checker.mesh);
  return onFill(
      op, operands, [&](double x) { return valueAt(op, x); }, results, checker);
}

void certify::attachElementwiseRules(MLIRContext *context) {
  attachRule<train::AddOp, add, OnPadding::known, OnParts::known>(context);
  attachRule<train::ScaleOp, scale, OnPadding::known, OnParts::known>(context);
  attachRule<train::CastOp, ::cast, OnPadding::known, OnParts::known>(context);
  attachRule<train::AccumulateOp, accumulate, OnPadding::known, OnParts::known>(context);
  attachRule<train::MulOp, multiply, OnPadding::known, OnParts::known>(context);
  attachIndices<train::MaximumOp, zeroOfZero>(context);
  attachIndices<train::GeluOp, zeroOfZero>(context);
  attachIndices<train::GeluGradOp, linearInFirst>(context);
  attachIndices<train::SiluOp, zeroOfZero>(context);
  attachIndices<train::SiluGradOp, linearInFirst>(context);
  attachIndices<train::ReluOp, zeroOfZero>(context);
  attachIndices<train::ReluGradOp, linearInFirst>(context);
  attachRule<train::ClampOp, clamp, OnPadding::known, OnParts::known>(context);
  attachIndices<train::ClampGradOp, linearInFirst>(context);
  attachRule<train::TanhOp, ::tanh, OnPadding::known, OnParts::known>(context);
  attachRule<train::SigmoidOp, sigmoid, OnPadding::known, OnParts::known>(context);
  attachRule<train::ExpOp, ::exp, OnPadding::known, OnParts::known>(context);
  attachRule<train::LogOp, positive<train::LogOp>, OnPadding::known, OnParts::known>(context);
  attachRule<train::InverseRootOp, positive<train::InverseRootOp>, OnPadding::known, OnParts::known>(context);
  attachIndices<train::DecayOp, pairs>(context);
  attachIndices<train::UnscaleOp, byScalar>(context);
  attachIndices<train::GuardOp, twoByScalar>(context);
  attachRule<train::LerpOp, lerp, OnPadding::known, OnParts::known>(context);
  attachIndices<train::ClipFactorOp, scalars>(context);
}
