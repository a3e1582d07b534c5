//===- ExpertRules.cpp - routing, and experts on rows of tokens --------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// In which row of which block a routing choice is differs between the global graph and
// a rank's program, and between rounds. What matters is what the row of each choice is:
// that is the expression of a tensor of rows. Its type says which layout the rows have
// (RoutedRows), and only tensors of one layout are combined. Numbers of rows and of choices
// count on the device, so they are used only where sequences are divided as they were
// when the rows were numbered.
//
//===----------------------------------------------------------------------===//
#include "Certify/Rule.h"

#include "Train/Train.h"

#include "mlir/IR/Builders.h"

#include <limits>

using namespace mlir;
using namespace meshwright;
using namespace meshwright::certify;

static constexpr IndexText topK{"... v! -> ... v!", "", IndexText::positive};
static constexpr IndexText tally{"b s e, b s e -> e", "0"};
static constexpr IndexText balance{"... e!, ... e! -> ... e!"};

static LogicalResult oneHot(train::OneHotOp op, Facts operands, NewFacts &results,
                            Checker &checker) {
  if (operands[0].offset)
    return checker.refuse(op) << "reads ids that count from the device's own offset";
  auto type = cast<RankedTensorType>(op.getType());
  IndexRule rule = IndexRule::parse("... -> ... v", "", op);
  rule.given[rule.results[0].back()] = {type.getShape().back()};
  rule.ids = 0;
  return applyRule(rule, op, operands, results, checker);
}

static LogicalResult route(train::RouteOp op, Facts operands, NewFacts &results, Checker &checker) {
  FactList facts(operands);
  pin(facts[0], op.getMask(), checker);
  // A device may have a part of each sequence, if it does not matter what the others route.
  const Axes tokenAxes = facts[0].type.dims[1];
  if (!tokenAxes.empty() && op.getCapacity() > 0)
    return checker.refuse(op) << "drops tokens of sequences that are sharded over "
                              << checker.mesh.str(tokenAxes);
  IndexRule rule;
  enum : unsigned { b, s, e, k, x, m };
  rule.operands = {{b, s, e}};
  rule.results = {{k, b, s}, {k, b, s}, {x, b, m}, {x, b, m}};
  rule.whole = {e};
  int64_t blocks = op.getBlocks(), choices = op.getK();
  int64_t slots = cast<RankedTensorType>(op.getChoices().getType()).getDimSize(2);
  rule.given[k] = {choices};
  rule.given[x] = {blocks};
  rule.given[m] = {slots};
  // The slots of a device are for its own tokens.
  FactList local(facts);
  local[0].type.dims[1].clear();
  auto types = rule.apply(op, local, checker);
  if (failed(types))
    return failure();
  int64_t parts = checker.mesh.size(tokenAxes);
  int64_t tokens = facts[0].type.shape[s] / parts, experts = facts[0].type.shape[e];
  int64_t inBlock = blocks > 0 ? experts / blocks : 0, capacity = op.getCapacity();
  if (blocks <= 0 || experts % blocks)
    return checker.refuse(op) << "divides " << experts << " experts into " << blocks << " blocks";
  int64_t needed = tokens * std::min(choices, inBlock);
  if (capacity > 0)
    needed = std::min(needed, inBlock * capacity);
  if (slots < needed)
    return checker.refuse(op) << "has " << slots << " slots in a block, where " << needed
                              << " rows may be needed";
  checker.proof.kernels.insert(op->getName().getStringRef().str());
  Attribute attributes = Builder(op).getDenseI64ArrayAttr({choices, capacity});
  const Expression *routing = nullptr;
  for (auto [index, type] : llvm::enumerate(*types)) {
    // Nothing is summed over, so nothing is partial.
    type.dims[2] = tokenAxes;
    if (index > 1)
      type.shape[2] = slots * parts;
    if (index > 0) {
      type.rows.emplace();
      type.rows->routing = routing;
      type.rows->experts = experts;
      type.rows->blocks = blocks;
      type.rows->slots = slots;
      type.rows->sequences = type.dims[1];
      type.rows->tokens = tokenAxes;
      type.rows->isIds = true;
      if (index > 1) {
        type.rows->blockDim = 0;
        type.rows->slotDim = 2;
      }
    }
    results.push_back(
        {checker.make(op, attributes, expressionsOf(facts), index, type.expressionShape()), type});
    if (index == 0)
      routing = results[0].expression;
  }
  return success();
}

/// Numbers of rows, of choices or of experts in their block, of a layout; `counts`: those that are
/// numbers of what the device has, so that it must have the sequences with which it counted.
static LogicalResult checkIds(Operation *op, unsigned operand, const Fact &fact, bool counts,
                              Checker &checker) {
  const std::optional<RoutedRows> &rows = fact.type.rows;
  if (!rows || !rows->isIds || fact.type.rank() != 3)
    return checker.refuse(op) << "has " << Checker::nameOf(op, operand)
                              << ", which is no numbers of rows of train.route";
  if (fact.offset)
    return checker.refuse(op) << "has " << Checker::nameOf(op, operand)
                              << ", whose numbers count from the device's own offset";
  if (!counts)
    return success();
  if (fact.type.dims[1] != rows->sequences)
    return checker.refuse(op) << "has " << Checker::nameOf(op, operand)
                              << ", which counts rows of sequences sharded over "
                              << checker.mesh.str(rows->sequences) << ", where they are over "
                              << checker.mesh.str(fact.type.dims[1]);
  Axes own = rows->tokens;
  if (rows->round && rows->blockDim)
    own.push_back(*rows->round);
  if (!fact.type.dims[0].empty() || fact.type.dims[2] != own)
    return checker.refuse(op) << "has " << Checker::nameOf(op, operand)
                              << ", a part of the blocks or slots in which it counts rows: "
                              << fact.type.str(checker.mesh);
  return success();
}

/// Facts whose ids are checked and are of one layout, which is returned.
static FailureOr<RoutedRows> layoutOf(Operation *op, ArrayRef<unsigned> ids, bool count,
                                      MutableArrayRef<Fact> facts, Checker &checker) {
  for (unsigned index : ids) {
    if (failed(checkIds(op, index, facts[index], count, checker)))
      return failure();
    if (!facts[index].type.rows->isLike(*facts[ids[0]].type.rows))
      return checker.refuse(op) << "has " << Checker::nameOf(op, index) << ", of other rows than "
                                << Checker::nameOf(op, ids[0]);
  }
  return *facts[ids[0]].type.rows;
}

/// Which of two ids of a layout an operand is: `train.route`'s result.
static LogicalResult checkKind(Operation *op, unsigned operand, const Fact &fact, bool perChoice,
                               Checker &checker) {
  if (perChoice == !fact.type.rows->blockDim)
    return success();
  return checker.refuse(op) << "has " << Checker::nameOf(op, operand)
                            << ", which has no number for each "
                            << (perChoice ? "routing choice" : "row");
}

/// Data of rows must be of the layout of the ids.
static LogicalResult checkData(Operation *op, unsigned operand, const Fact &fact,
                               const RoutedRows &rows, Checker &checker) {
  const std::optional<RoutedRows> &own = fact.type.rows;
  if (!own && fillOf(fact.expression))
    return success();
  if (!own || own->isIds || !own->isLike(rows) || own->blockDim != 0u || own->slotDim != 2u)
    return checker.refuse(op) << "has " << Checker::nameOf(op, operand)
                              << ", which has other rows than the numbers say: "
                              << fact.type.str(checker.mesh);
  return success();
}

/// Applies a rule to tensors of rows. With `rows`, the result is such a tensor, whose first and
/// third dimension are blocks and slots.
static LogicalResult applyToRows(Operation *op, IndexRule &rule, MutableArrayRef<Fact> facts,
                                 std::optional<RoutedRows> rows, NewFacts &results,
                                 Checker &checker) {
  for (Fact &fact : facts)
    fact.type.rows.reset();
  SmallVector<const Expression *> expressions = expressionsOf(facts);
  auto types = rule.apply(op, facts, checker);
  if (failed(types))
    return failure();
  checker.proof.kernels.insert(op->getName().getStringRef().str());
  Distribution &type = types->front();
  if (rows) {
    type.rows = rows;
    type.rows->isIds = false;
    type.rows->blockDim = 0;
    type.rows->slotDim = 2;
  }
  results.push_back(
      {checker.make(op, Builder(op).getUnitAttr(), expressions, 0, type.expressionShape()), type});
  return success();
}

/// What rows of a part make together is one of as many terms as there are parts.
static void addTerm(Operation *op, Fact &result, const RoutedRows &rows, Checker &checker) {
  if (rows.parts == 1)
    return;
  const Expression *all = result.expression;
  Summands terms{{}, nullptr, rows.parts, {llvm::BitVector(rows.parts)}};
  terms.of[0].set(rows.part);
  // Which rows are in a part depends on the layout in which they are counted.
  SmallVector<int64_t> layout = {rows.parts, rows.experts, rows.blocks, rows.slots,
                                 rows.round ? int64_t(*rows.round) : -1, int64_t(rows.sequences.size())};
  llvm::append_range(layout, rows.sequences);
  llvm::append_range(layout, rows.tokens);
  terms.term = checker.make(op->getLoc(), "term of rows", Builder(op).getDenseI64ArrayAttr(layout),
                            {all}, all->element, all->shape);
  result.type.summands = terms;
  checker.use("parts of rows together are all rows");
}

/// The tokens of a device and the slots that are for them are sharded alike, and no device's rows
/// are for another's tokens. So within the axes of `tokens` the op is one of what a device has:
/// removes them from dimension `dim`.
static LogicalResult dropTokens(Operation *op, unsigned operand, Fact &fact, int64_t dim,
                                const Axes &tokens, Checker &checker) {
  Axes &axes = fact.type.dims[dim];
  if (ArrayRef(axes).take_front(tokens.size()) != ArrayRef(tokens) || fact.type.padding.count(dim))
    return checker.refuse(op) << "has " << Checker::nameOf(op, operand) << ", "
                              << fact.type.str(checker.mesh) << ", for rows of tokens sharded over "
                              << checker.mesh.str(tokens);
  axes.erase(axes.begin(), axes.begin() + tokens.size());
  fact.type.shape[dim] /= checker.mesh.size(tokens);
  return success();
}

/// Adds them to what the op makes.
static void addTokens(Fact &fact, int64_t dim, const Axes &tokens, Checker &checker) {
  Axes &axes = fact.type.dims[dim];
  axes.insert(axes.begin(), tokens.begin(), tokens.end());
  fact.type.shape[dim] *= checker.mesh.size(tokens);
}

static LogicalResult dispatch(train::DispatchOp op, Facts operands, NewFacts &results,
                              Checker &checker) {
  FactList facts(operands);
  auto rows = layoutOf(op, {1, 2}, true, facts, checker);
  if (failed(rows) || failed(checkKind(op, 1, facts[1], false, checker)) ||
      failed(checkKind(op, 2, facts[2], true, checker)))
    return failure();
  if (facts[0].type.rows)
    return checker.refuse(op) << "has rows, where it takes tokens";
  pin(facts[0], op.getX(), checker);
  StringRef text = facts[0].type.rank() == 3 ? "b s! h, x b m, k! b s! -> x b m h"
                                             : "k! b s! h, x b m, k! b s! -> x b m h";
  IndexRule rule = IndexRule::parse(text, "0", op);
  const Axes &tokens = rows->tokens;
  if (failed(dropTokens(op, 0, facts[0], facts[0].type.rank() - 2, tokens, checker)) ||
      failed(dropTokens(op, 1, facts[1], 2, tokens, checker)) ||
      failed(dropTokens(op, 2, facts[2], 2, tokens, checker)) ||
      failed(applyToRows(op, rule, facts, rows, results, checker)))
    return failure();
  addTokens(results[0], 2, tokens, checker);
  return success();
}

static LogicalResult collect(train::CollectOp op, Facts operands, NewFacts &results,
                             Checker &checker) {
  FactList facts(operands);
  auto rows = layoutOf(op, {1, 2}, true, facts, checker);
  if (failed(rows) || failed(checkKind(op, 1, facts[1], true, checker)) ||
      failed(checkKind(op, 2, facts[2], false, checker)) ||
      failed(checkData(op, 0, facts[0], *rows, checker)))
    return failure();
  if (!facts[0].type.rows)
    return checker.refuse(op) << "reads a constant, for which there is no rule";
  pin(facts[0], op.getX(), checker);
  IndexRule rule = IndexRule::parse("x! b m h, k! b s!, x! b m -> k! b s! h", "0", op);
  const Axes &tokens = rows->tokens;
  if (failed(dropTokens(op, 0, facts[0], 2, tokens, checker)) ||
      failed(dropTokens(op, 1, facts[1], 2, tokens, checker)) ||
      failed(dropTokens(op, 2, facts[2], 2, tokens, checker)) ||
      failed(applyToRows(op, rule, facts, {}, results, checker)))
    return failure();
  addTokens(results[0], 2, tokens, checker);
  results[0].expression = checker.make(op, Builder(op).getUnitAttr(), expressionsOf(facts), 0,
                                       results[0].type.expressionShape());
  addTerm(op, results[0], *rows, checker);
  return success();
}

/// A device's experts are those of its blocks, in the same order.
static LogicalResult dropExperts(Operation *op, unsigned operand, const Fact &ids, Fact &weight,
                                 Checker &checker) {
  const RoutedRows &rows = *ids.type.rows;
  if (weight.type.dims[0] != ids.type.dims[0] || weight.type.shape[0] != rows.experts ||
      weight.type.padding.count(0))
    return checker.refuse(op) << "has " << Checker::nameOf(op, operand) << ", "
                              << weight.type.str(checker.mesh) << ", for blocks of " << rows.experts
                              << " experts sharded over " << checker.mesh.str(ids.type.dims[0]);
  weight.type.eraseFront();
  return success();
}

/// A constant in all rows is one of the rows of `ids`; what a row is has the extents of `value`.
static void pinRows(Fact &fact, Value value, const Fact &ids, Checker &checker) {
  if (!fillOf(fact.expression)) {
    pin(fact, value, checker);
    return;
  }
  int64_t extent = cast<RankedTensorType>(value.getType()).getShape().back();
  fact.type.shape.back() = extent;
  fact.expression = checker.make(value.getLoc(), "of extents", {}, {fact.expression},
                                 fact.expression->element, fact.type.shape);
  Axes sum = fact.type.sum, root = fact.type.root;
  fact.type = ids.type;
  fact.type.sum = sum;
  fact.type.root = root;
  fact.type.shape.push_back(extent);
  fact.type.dims.emplace_back();
}

static LogicalResult groupedLinear(train::GroupedLinearOp op, Facts operands, NewFacts &results,
                                   Checker &checker) {
  FactList facts(operands);
  auto rows = layoutOf(op, {2}, false, facts, checker);
  if (failed(rows) || failed(checkKind(op, 2, facts[2], false, checker)) ||
      failed(checkData(op, 0, facts[0], *rows, checker)))
    return failure();
  pinRows(facts[0], op.getX(), facts[2], checker);
  pin(facts[1], op.getWeight(), checker);
  if (failed(dropExperts(op, 1, facts[2], facts[1], checker)))
    return failure();
  enum : unsigned { x, b, m, i, o };
  IndexRule rule;
  rule.operands = {{x, b, m, i}, {o, i}, {x, b, m}};
  if (op.getTransposed())
    rule.operands[1] = {i, o};
  rule.results = {{x, b, m, o}};
  rule.linear = {{0}, {1}};
  FactList made;
  if (failed(applyToRows(op, rule, facts, rows, made, checker)))
    return failure();
  made[0].expression = checker.make(op, Builder(op).getBoolAttr(op.getTransposed()),
                                    expressionsOf(facts), 0, made[0].type.expressionShape());
  results.push_back(made[0]);
  return success();
}

/// The sum over the rows of each expert: over sequences and rounds it is partial.
static LogicalResult groupedLinearGrad(train::GroupedLinearGradOp op, Facts operands,
                                       NewFacts &results, Checker &checker) {
  if (op.getInit())
    return checker.refuse(op) << "has an accumulator, which programs at phase local do not have";
  FactList facts(operands);
  auto rows = layoutOf(op, {2}, false, facts, checker);
  if (failed(rows) || failed(checkKind(op, 2, facts[2], false, checker)) ||
      failed(checkData(op, 0, facts[0], *rows, checker)) ||
      failed(checkData(op, 1, facts[1], *rows, checker)))
    return failure();
  pinRows(facts[0], op.getDy(), facts[2], checker);
  pinRows(facts[1], op.getX(), facts[2], checker);
  enum : unsigned { x, b, m, o, i };
  IndexRule rule;
  rule.operands = {{x, b, m, o}, {x, b, m, i}, {x, b, m}};
  rule.results = {{x, o, i}};
  rule.linear = {{0}, {1}};
  FactList made;
  if (failed(applyToRows(op, rule, facts, {}, made, checker)))
    return failure();
  made[0].type.shape[0] = rows->experts;
  made[0].expression = checker.make(op, Builder(op).getUnitAttr(), expressionsOf(facts), 0,
                                    made[0].type.expressionShape());
  addTerm(op, made[0], *rows, checker);
  results.push_back(made[0]);
  return success();
}

/// What the number of rounds depends on, but for the routing.
static SmallVector<int64_t> roundSizes(const RoutedRows &rows, int64_t slots) {
  SmallVector<int64_t> sizes = {rows.blocks, rows.slots, slots, int64_t(rows.sequences.size())};
  llvm::append_range(sizes, rows.sequences);
  llvm::append_range(sizes, rows.tokens);
  return sizes;
}

/// As many rounds as the device's own rows need; the maximum over devices is enough for all.
static LogicalResult rounds(train::RoundsOp op, Facts operands, NewFacts &results,
                            Checker &checker) {
  FactList facts(operands);
  auto rows = layoutOf(op, {0}, true, facts, checker);
  if (failed(rows) || failed(checkKind(op, 0, facts[0], false, checker)))
    return failure();
  constexpr unsigned choices = 2;
  const Expression *numbers = facts[0].expression;
  if (numbers->name != train::RouteOp::getOperationName() || numbers->result != choices)
    return checker.refuse(op) << "counts " << Checker::nameOf(op, 0)
                              << ", which is not the choice of each row of train.route";
  if (rows->round || rows->parts != 1 || !facts[0].type.root.empty())
    return checker.refuse(op) << "counts rounds of a round or part, for which there is no rule";
  checker.proof.kernels.insert(op->getName().getStringRef().str());
  Distribution type;
  type.max = rows->sequences;
  type.max.append(rows->tokens);
  llvm::sort(type.max);
  Attribute attributes =
      Builder(op).getDenseI64ArrayAttr(roundSizes(*rows, int64_t(op.getSlots())));
  results.push_back({checker.make(op, attributes, {rows->routing}, 0, {}), type});
  return success();
}

static LogicalResult rowsOfRound(train::RowsOfRoundOp op, Facts operands, NewFacts &results,
                                 Checker &checker) {
  bool hasRound = bool(op.getRound());
  FactList facts(operands.drop_front(hasRound));
  for (unsigned index : {0u, 1u, 2u})
    if (failed(checkIds(op, hasRound + index, facts[index], true, checker)) ||
        failed(checkKind(op, hasRound + index, facts[index], index == 0, checker)))
      return failure();
  RoutedRows rows = *facts[0].type.rows;
  if (!facts[1].type.rows->isLike(rows) || !facts[2].type.rows->isLike(rows) || rows.round)
    return checker.refuse(op) << "has numbers of different rows, or those of a round";
  if (rows.parts != 1)
    return checker.refuse(op) << "has parts of a part, for which there is no rule";
  if (int64_t(op.getParts()) > mostDevices ||
      int64_t(op.getSlots()) > std::numeric_limits<int64_t>::max() / mostDevices)
    return checker.refuse(op) << "is one of " << int64_t(op.getParts()) << " parts of "
                              << int64_t(op.getSlots()) << " slots, more than there is a rule for";
  rows.part = op.getPart();
  rows.parts = op.getParts();
  int64_t slots = op.getSlots(), all = slots * rows.parts;
  Axes axes = rows.tokens;
  if (hasRound) {
    const Fact &round = operands[0];
    auto loop = llvm::find_if(checker.rounds, [&](const Rounds &loop) {
      if (!loop.number)
        return false;
      auto sizes = cast<DenseI64ArrayAttr>(loop.number->attributes).asArrayRef();
      return round.expression->name == "iteration" && !round.offset &&
             round.type == Distribution::replicated({}) &&
             cast<DenseI64ArrayAttr>(round.expression->attributes)[0] == loop.level &&
             loop.number->operands[0] == rows.routing && sizes == ArrayRef(roundSizes(rows, all));
    });
    if (loop == checker.rounds.end())
      return checker.refuse(op) << "takes the rows of a round of no loop that has enough of them "
                                   "for these rows";
    axes.push_back(loop->axis);
    rows.round = loop->axis;
  } else if (all < rows.slots) {
    return checker.refuse(op) << "takes the rows of one round of " << all
                              << " slots, but there may be " << rows.slots << " rows";
  }
  rows.slots = slots;
  checker.proof.kernels.insert(op->getName().getStringRef().str());
  for (auto [index, fact] : llvm::enumerate(facts)) {
    Fact made = fact;
    RoutedRows of = rows;
    of.isIds = true;
    of.blockDim = fact.type.rows->blockDim;
    of.slotDim = fact.type.rows->slotDim;
    made.type.rows = of;
    if (index > 0) {
      made.type.shape[2] = slots * checker.mesh.size(axes);
      made.type.dims[2] = axes;
    }
    results.push_back(made);
  }
  return success();
}

void certify::attachExpertRules(MLIRContext *context) {
  attachIndices<train::TopKOp, topK>(context);
  attachIndices<train::TallyOp, tally>(context);
  attachIndices<train::BalanceOp, balance>(context);
  attachRule<train::OneHotOp, oneHot, OnPadding::known>(context);
  attachRule<train::RouteOp, route>(context);
  attachRule<train::DispatchOp, dispatch, OnPadding::known>(context);
  attachRule<train::CollectOp, collect, OnPadding::known>(context);
  attachRule<train::GroupedLinearOp, groupedLinear, OnPadding::known>(context);
  attachRule<train::GroupedLinearGradOp, groupedLinearGrad, OnPadding::known>(context);
  attachRule<train::RoundsOp, rounds>(context);
  attachRule<train::RowsOfRoundOp, rowsOfRound>(context);
}
