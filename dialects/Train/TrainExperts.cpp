//===- TrainExperts.cpp - routers, rows of experts and their products -------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Expr.h"
#include "Train/Quantize.h"
#include "Train/TensorType.h"

#include <cmath>

using namespace mlir;
using namespace meshwright;
using namespace meshwright::train;
using namespace meshwright::train::formula;

//===--- routers ------------------------------------------------------------===//

LogicalResult SigmoidOp::buildVJP(OpBuilder &b, ValueRange cotangents, ArrayRef<bool>,
                                  SmallVectorImpl<Value> &grads) {
  // dy y (1 - y)
  Value part = MulOp::create(b, getLoc(), cotangents[0], getY());
  Value lost = MulOp::create(b, getLoc(), part, getY());
  lost = ScaleOp::create(b, getLoc(), lost, b.getF64FloatAttr(-1));
  grads.push_back(AddOp::create(b, getLoc(), part, lost));
  return success();
}

SmallVector<Value> SigmoidOp::decompose(OpBuilder &b) {
  return {sigmoid(expr(b, getLoc(), getX())).v};
}

LogicalResult SoftmaxOp::buildVJP(OpBuilder &b, ValueRange cotangents, ArrayRef<bool>,
                                  SmallVectorImpl<Value> &grads) {
  // y (dy - sum(dy y))
  int64_t last = tensor(getY()).getRank() - 1;
  Value part = MulOp::create(b, getLoc(), cotangents[0], getY());
  Value sum = ReduceOp::create(b, getLoc(), ReduceKind::Sum, part, ArrayRef<int64_t>{last});
  Value wide = BroadcastOp::create(b, getLoc(), getY().getType(), sum, ArrayRef<int64_t>{last});
  Value lost = MulOp::create(b, getLoc(), wide, getY());
  lost = ScaleOp::create(b, getLoc(), lost, b.getF64FloatAttr(-1));
  grads.push_back(AddOp::create(b, getLoc(), part, lost));
  return success();
}

SmallVector<Value> SoftmaxOp::decompose(OpBuilder &b) {
  Expr x = expr(b, getLoc(), getX());
  Expr e = exp(x - x.overLast(ReduceKind::Max).to(x.v, true));
  return {(e * (1.0 / e.overLast()).to(x.v, true)).v};
}

LogicalResult TopKOp::verify() {
  int64_t width = tensor(getX()).getShape().back(), k = getK();
  if (k < 1 || k > width)
    return emitOpError("k must be from 1 to the ") << width << " elements of a row, found " << k;
  return success();
}

SmallVector<Value> TopKOp::decompose(OpBuilder &b) {
  Expr x = expr(b, getLoc(), getX());
  auto type = tensor(x.v);
  int64_t last = type.getRank() - 1, width = type.getDimSize(last);
  auto ids = RankedTensorType::get(type.getShape(), b.getI32Type());
  Expr index =
      x.with(arith::SIToFPOp::create(b, getLoc(), type, IotaOp::create(b, getLoc(), ids, last)));
  // The first element is the largest of these.
  Expr order = double(width) - index;
  Expr taken = x.constant(0);
  for (int64_t i = 0; i < int64_t(getK()); ++i) {
    Expr left = select(greater(taken, 0), x.constant(-INFINITY), x);
    Expr isLargest = equal(left, left.overLast(ReduceKind::Max).to(x.v, true));
    Expr candidate =
        select(greater(taken, 0), x.constant(0), select(isLargest, order, x.constant(0)));
    Expr first = candidate.overLast(ReduceKind::Max).to(x.v, true);
    // No candidate's order is 0.
    taken = select(equal(order, first), x.constant(1), taken);
  }
  return {taken.v};
}

LogicalResult LogSumExpOp::buildVJP(OpBuilder &b, ValueRange cotangents, ArrayRef<bool>,
                                    SmallVectorImpl<Value> &grads) {
  // dy softmax(x)
  int64_t last = tensor(getX()).getRank() - 1;
  Value share = SoftmaxOp::create(b, getLoc(), getX());
  Value wide =
      BroadcastOp::create(b, getLoc(), getX().getType(), cotangents[0], ArrayRef<int64_t>{last});
  grads.push_back(MulOp::create(b, getLoc(), wide, share));
  return success();
}

SmallVector<Value> LogSumExpOp::decompose(OpBuilder &b) {
  Expr x = expr(b, getLoc(), getX());
  Expr most = x.overLast(ReduceKind::Max), wide = most.to(x.v, true);
  // The largest element adds 1 to the sum, which stays apart: a softplus, the logarithm of exp(x) + exp(0), is small where x is
  // far below 0, and would have no more digits than 1 + exp(x) leaves it.
  Expr isMost = equal(x, wide);
  Expr others = select(isMost, x.constant(0), exp(x - wide)).overLast();
  Expr equals = select(isMost, x.constant(1), x.constant(0)).overLast();
  Expr rest = others + (equals + -1.0), sum = rest + 1.0;
  // log(1 + rest) by the sum as it was rounded, and what rounding left out of it.
  return {(most + (apply<math::LogOp>(sum) + (rest - (sum + -1.0)) / sum)).v};
}

SmallVector<Value> TallyOp::decompose(OpBuilder &b) {
  // x - x is 0 where x is finite, else no number.
  Expr mask = expr(b, getLoc(), getMask()), x = mask.with(getLogits());
  return {(mask + (x - x)).overRows().v};
}

LogicalResult BalanceOp::verify() {
  if (getRate().convertToDouble() > 0)
    return success();
  return emitOpError("rate must be above 0, found ") << getRate().convertToDouble();
}

SmallVector<Value> BalanceOp::decompose(OpBuilder &b) {
  Expr bias = expr(b, getLoc(), getBias()), tokens = bias.with(getTokens());
  double experts = double(tensor(getTokens()).getShape().back());
  Expr lack = tokens.overLast().to(tokens.v, true) - tokens * experts;
  Expr up = select(greater(lack, 0), lack.constant(1), lack.constant(0));
  Expr down = select(greater(-1.0 * lack, 0), lack.constant(1), lack.constant(0));
  return {(bias + (up - down) * getRate().convertToDouble()).v};
}

ShardingRule OneHotOp::getShardingRule() {
  return ruleOf(*this, einsumText(), {{"v", tensor(getY()).getShape().back()}});
}

LogicalResult OneHotOp::verify() {
  auto shape = tensor(getY()).getShape();
  if (shape.empty() || shape.drop_back() != tensor(getIds()).getShape())
    return emitOpError("makes ") << getY().getType() << " of " << getIds().getType()
                                 << "; the result has one dimension more, the columns";
  return success();
}

SmallVector<Value> OneHotOp::decompose(OpBuilder &b) {
  auto type = tensor(getY());
  int64_t last = type.getRank() - 1;
  auto wide = RankedTensorType::get(type.getShape(), b.getI32Type());
  Value index = IotaOp::create(b, getLoc(), wide, last);
  Value ids = BroadcastOp::create(b, getLoc(), wide, getIds(), ArrayRef<int64_t>{last});
  Value hit = arith::CmpIOp::create(b, getLoc(), arith::CmpIPredicate::eq, index, ids);
  auto constant = [&](double value) {
    return arith::ConstantOp::create(
        b, getLoc(),
        DenseElementsAttr::get(type, Attribute(b.getFloatAttr(type.getElementType(), value))));
  };
  return {arith::SelectOp::create(b, getLoc(), hit, constant(1), constant(0))};
}

//===--- rows of experts ----------------------------------------------------===//

int64_t train::mostRowsOfBlock(int64_t length, int64_t k, int64_t experts, int64_t capacity) {
  int64_t most = length * std::min(k, experts);
  return capacity ? std::min(most, experts * std::min(capacity, length)) : most;
}

/// How many pieces of `piece` tokens the sequences of `rows` or `mask`, [.., b, s, ..], are; the rule gives
/// sizes that do not divide away.
static int64_t piecesOf(Value tokens, unsigned dim, int64_t piece) {
  auto type = cast<RankedTensorType>(tokens.getType());
  int64_t length = type.getRank() > dim ? type.getDimSize(dim) : 1;
  return piece > 0 ? std::max<int64_t>(length / piece, 1) : 1;
}

/// Whether pieces of `piece` tokens divide sequences of `length`, and slots as well.
static LogicalResult checkPiece(Operation *op, int64_t piece, int64_t length, int64_t slots) {
  if (piece < 0 || (piece > 0 && (length % piece || slots % (length / piece))))
    return op->emitOpError("a piece of ")
           << piece << " tokens does not divide sequences of " << length << " tokens with " << slots
           << " slots into equal pieces";
  return success();
}

ShardingRule RouteOp::getShardingRule() {
  int64_t g = piecesOf(getMask(), 1, getPiece());
  return ruleOf(
      *this, einsumText(),
      {{"k", int64_t(getK())}, {"x", int64_t(getBlocks())}, {"g", g}, {"m", int64_t(getSlots()) / g}});
}

void RouteOp::updateSizes() { setSlots(tensor(getChoices()).getDimSize(2)); }

LogicalResult RouteOp::inferReturnTypes(MLIRContext *context, std::optional<Location> location,
                                        Adaptor adaptor, SmallVectorImpl<Type> &types) {
  int64_t g = piecesOf(adaptor.getMask(), 1, adaptor.getPiece());
  if (failed(inferFromRule("route", einsumText(), location, adaptor.getOperands().getTypes(), types,
                           {{"k", int64_t(adaptor.getK())},
                            {"x", int64_t(adaptor.getBlocks())},
                            {"g", g},
                            {"m", int64_t(adaptor.getSlots()) / g}})))
    return failure();
  for (Type &type : types)
    type = withElementType(type, IntegerType::get(context, 32));
  return success();
}

LogicalResult RouteOp::verify() {
  int64_t experts = tensor(getMask()).getDimSize(2), k = getK();
  if (k < 1 || k > experts)
    return emitOpError("k must be from 1 to the ") << experts << " experts, found " << k;
  int64_t blocks = getBlocks(), slots = getSlots();
  if (blocks < 1 || experts % blocks)
    return emitOpError("blocks must divide the ") << experts << " experts, found " << blocks;
  if (int64_t(getCapacity()) < 0)
    return emitOpError("capacity must be at least 1, or 0 for none, found ") << int64_t(getCapacity());
  int64_t length = tensor(getMask()).getDimSize(1);
  if (getPiece() && getCapacity())
    return emitOpError("has a capacity, which counts the tokens of whole sequences, and pieces of "
                       "sequences; leave out one");
  if (failed(checkPiece(*this, getPiece(), length, slots)))
    return failure();
  int64_t most = mostRowsOfBlock(length, k, experts / blocks, getCapacity());
  if (slots < most)
    return emitOpError("slots must be at least ")
           << most << ", as many rows as a sequence may have in a block, found " << slots;
  return success();
}

ShardingRule RoundsOp::getShardingRule() {
  ShardingRule rule = ruleOf(*this, einsumText());
  rule.max = true;
  rule.factors[rule.find("m")].whole = getAll() == 0;
  return rule;
}

void RoundsOp::updateSizes() {
  int64_t slots = tensor(getChoices()).getDimSize(2);
  if (getAll() == 0)
    return;
  setSlots(int64_t(getSlots()) * slots / int64_t(getAll()));
  setAll(slots);
}

LogicalResult RoundsOp::inferReturnTypes(MLIRContext *, std::optional<Location> location,
                                         Adaptor adaptor, SmallVectorImpl<Type> &types) {
  return inferFromRule("rounds", einsumText(), location, adaptor.getOperands().getTypes(), types);
}

static LogicalResult checkRound(Operation *op, int64_t slots, Value choices) {
  auto type = tensor(choices);
  if (slots < 1 || (type.getRank() == 3 && slots > type.getDimSize(2)))
    return op->emitOpError("slots of a round must be from 1 to those of all rows, ")
           << type.getShape().back() << ", found " << slots;
  return success();
}

LogicalResult RoundsOp::verify() {
  if (int64_t all = tensor(getChoices()).getShape().back(); getAll() && int64_t(getAll()) != all)
    return emitOpError("has a share of ") << int64_t(getAll()) << " slots, but there are " << all;
  return checkRound(*this, getSlots(), getChoices());
}

/// The rule, whose first operand may be left out.
static StringRef rowsOfRoundText(bool hasRound) {
  StringRef text = RowsOfRoundOp::einsumText();
  return hasRound ? text : text.drop_front(text.find(',') + 1);
}

ShardingRule RowsOfRoundOp::getShardingRule() {
  int64_t g = piecesOf(getRows(), 2, getPiece());
  return ruleOf(*this, rowsOfRoundText(bool(getRound())), {{"g", g}, {"c", int64_t(getSlots()) / g}});
}

void RowsOfRoundOp::updateSizes() { setSlots(tensor(getOwnChoices()).getDimSize(2)); }

LogicalResult RowsOfRoundOp::inferReturnTypes(MLIRContext *, std::optional<Location> location,
                                              Adaptor adaptor, SmallVectorImpl<Type> &types) {
  int64_t g = piecesOf(adaptor.getRows(), 2, adaptor.getPiece());
  return inferFromRule("rows_of_round", rowsOfRoundText(bool(adaptor.getRound())), location,
                       adaptor.getOperands().getTypes(), types,
                       {{"g", g}, {"c", int64_t(adaptor.getSlots()) / g}});
}

LogicalResult RowsOfRoundOp::verify() {
  int64_t part = getPart(), parts = getParts();
  if (parts < 1 || part < 0 || part >= parts)
    return emitOpError("a round has no part ") << part << " of " << parts;
  if (failed(checkPiece(*this, getPiece(), tensor(getRows()).getDimSize(2), getSlots())))
    return failure();
  return checkRound(*this, getSlots(), getChoices());
}

static StringRef dispatchText(int64_t rank) {
  return rank == 3 ? "~b (g s!) h, x! b (g m!), k! b (g s!) -> x! b (g m!) h"
                   : "~k! b (g s!) h, x! b (g m!), k! b (g s!) -> x! b (g m!) h";
}

ShardingRule DispatchOp::getShardingRule() {
  return ruleOf(*this, dispatchText(tensor(getX()).getRank()),
                {{"g", piecesOf(getRows(), 2, getPiece())}});
}

LogicalResult DispatchOp::inferReturnTypes(MLIRContext *, std::optional<Location> location,
                                           Adaptor adaptor, SmallVectorImpl<Type> &types) {
  int64_t rank = cast<RankedTensorType>(adaptor.getX().getType()).getRank();
  return inferFromRule("dispatch", dispatchText(rank), location, adaptor.getOperands().getTypes(),
                       types, {{"g", piecesOf(adaptor.getRows(), 2, adaptor.getPiece())}});
}

LogicalResult DispatchOp::verify() {
  int64_t rank = tensor(getX()).getRank();
  if (rank != 3 && rank != 4)
    return emitOpError("x must be [b, s, h] or [k, b, s, h], found ") << getX().getType();
  return checkPiece(*this, getPiece(), tensor(getRows()).getDimSize(2),
                    tensor(getChoices()).getDimSize(2));
}

ShardingRule CollectOp::getShardingRule() {
  return ruleOf(*this, einsumText(), {{"g", piecesOf(getRows(), 2, getPiece())}});
}

LogicalResult CollectOp::inferReturnTypes(MLIRContext *, std::optional<Location> location,
                                          Adaptor adaptor, SmallVectorImpl<Type> &types) {
  return inferFromRule("collect", einsumText(), location, adaptor.getOperands().getTypes(), types,
                       {{"g", piecesOf(adaptor.getRows(), 2, adaptor.getPiece())}});
}

LogicalResult CollectOp::verify() {
  return checkPiece(*this, getPiece(), tensor(getRows()).getDimSize(2),
                    tensor(getChoices()).getDimSize(2));
}

LogicalResult DispatchOp::buildVJP(OpBuilder &b, ValueRange cotangents, ArrayRef<bool>,
                                   SmallVectorImpl<Value> &grads) {
  Value dx = CollectOp::create(b, getLoc(), cotangents[0], getRows(), getChoices(), getPiece());
  if (tensor(getX()).getRank() == 3)
    dx = ReduceOp::create(b, getLoc(), ReduceKind::Sum, dx, ArrayRef<int64_t>{0});
  grads.append({dx, nullptr, nullptr});
  return success();
}

LogicalResult CollectOp::buildVJP(OpBuilder &b, ValueRange cotangents, ArrayRef<bool>,
                                  SmallVectorImpl<Value> &grads) {
  Value dy = cotangents[0];
  // A sum over choices: they share one gradient, which need not be repeated first.
  if (auto repeated = dy.getDefiningOp<BroadcastOp>();
      repeated && repeated.getDims() == ArrayRef<int64_t>{0})
    dy = repeated.getX();
  grads.append(
      {DispatchOp::create(b, getLoc(), dy, getChoices(), getRows(), getPiece()), nullptr, nullptr});
  return success();
}

Value DispatchOp::getSlots() { return getY(); }
Value CollectOp::getSlots() { return getX(); }

bool DispatchOp::movesElements() { return true; }
bool CollectOp::movesElements() { return true; }

SmallVector<Value> DispatchOp::decompose(OpBuilder &b) {
  Value ids = getChoices();
  if (tensor(getX()).getRank() == 3) {
    // Choice (j, token) reads its token's row; -1 stays -1.
    Expr choices = expr(b, getLoc(), ids);
    double tokens = double(tensor(getX()).getDimSize(0) * tensor(getX()).getDimSize(1));
    ids = arith::RemSIOp::create(b, getLoc(), ids, choices.constant(tokens).v);
  }
  return {GatherRowsOp::create(b, getLoc(), getType(), getX(), ids)};
}

SmallVector<Value> CollectOp::decompose(OpBuilder &b) {
  return {GatherRowsOp::create(b, getLoc(), getType(), getX(), getRows())};
}

//===--- products -----------------------------------------------------------===//

static StringRef groupedText(bool transposed) {
  return transposed ? "~x b m i, ~(x e) i o, @e x b m -> x b m o"
                    : "~x b m i, ~(x e) o i, @e x b m -> x b m o";
}

ShardingRule GroupedLinearOp::getShardingRule() {
  return ruleOf(*this, groupedText(getTransposed()));
}

LogicalResult GroupedLinearOp::inferReturnTypes(MLIRContext *, std::optional<Location> location,
                                                Adaptor adaptor, SmallVectorImpl<Type> &types) {
  return inferFromRule("grouped_linear", groupedText(adaptor.getTransposed()), location,
                       adaptor.getOperands().getTypes(), types);
}

LogicalResult GroupedLinearOp::verify() { return verifyBlockShape(*this, getBlocks()); }

/// A row meets one expert's matrix.
static double groupedFlops(Value rows, Value matrices) {
  auto matrix = tensor(matrices).getShape();
  return 2.0 * double(tensor(rows).getNumElements() / tensor(rows).getShape().back()) *
         double(matrix[1]) * double(matrix[2]);
}
double GroupedLinearOp::getFlops() {
  return groupedFlops(getX(), getWeight()) * getFilled().convertToDouble();
}
double GroupedLinearGradOp::getFlops() {
  return groupedFlops(getX(), getResult()) * getFilled().convertToDouble();
}

LogicalResult GroupedLinearOp::buildVJP(OpBuilder &b, ValueRange cotangents, ArrayRef<bool> needed,
                                        SmallVectorImpl<Value> &grads) {
  Value dy = cotangents[0];
  grads.resize(3);
  if (needed[0]) {
    Value ofDy = dy, weight = getWeight();
    if (getBlocks()) {
      int64_t rows = (*getBlocks())[0], length = (*getBlocks())[1];
      ArrayRef<int64_t> ofWeight = tensor(weight).getShape();
      if (ofWeight[1] % length || ofWeight[2] % length)
        return emitOpError("has blocks of ") << length << " elements, which do not divide " << weight.getType();
      auto element = Float8E4M3FNType::get(b.getContext());
      // Both along `out`, which this product sums.
      SmallVector<int64_t> ofRows(tensor(dy).getRank(), 1), ofMatrix(3, 1);
      ofRows.back() = ofMatrix[getTransposed() ? 2 : 1] = length;
      ofDy = roundInBlocks(b, getLoc(), dy, element, ofRows);
      if (rows != length)
        weight = roundInBlocks(b, getLoc(), weight, element, ofMatrix);
    }
    grads[0] = GroupedLinearOp::create(b, getLoc(), ofDy, weight, getExperts(), !getTransposed(), getFilled());
  }
  if (needed[1]) {
    Value left = getTransposed() ? getX() : dy, right = getTransposed() ? dy : getX();
    grads[1] = GroupedLinearGradOp::create(b, getLoc(), left, right, getExperts(),
                                           tensor(getWeight()).getDimSize(0), Value(),
                                           getFilled());
  }
  return success();
}

ShardingRule GroupedLinearGradOp::getShardingRule() {
  std::string error;
  int64_t ranks[] = {4, 4, 3};
  ShardingRule rule = *parseShardingRule(einsumText(), ranks, error);
  (void)inferFactorSizes(
      rule,
      {tensor(getDy()).getShape(), tensor(getX()).getShape(), tensor(getExperts()).getShape()},
      {{"e", int64_t(getCount()) / tensor(getExperts()).getDimSize(0)}}, error);
  if (getInit())
    rule.operands.push_back(rule.results[0]);
  return rule;
}

LogicalResult GroupedLinearGradOp::inferReturnTypes(MLIRContext *, std::optional<Location> location,
                                                    Adaptor adaptor, SmallVectorImpl<Type> &types) {
  auto experts = cast<RankedTensorType>(adaptor.getExperts().getType());
  int64_t blocks = experts.getRank() == 3 ? std::max<int64_t>(experts.getDimSize(0), 1) : 1;
  if (int64_t(adaptor.getCount()) % blocks)
    return emitOptionalError(location, "count must be a multiple of the ", blocks,
                             " blocks, found ", int64_t(adaptor.getCount()));
  return inferFromRule("grouped_linear_grad", einsumText(), location,
                       adaptor.getOperands().take_front(3).getTypes(), types,
                       {{"e", int64_t(adaptor.getCount()) / blocks}});
}

void GroupedLinearGradOp::updateSizes() { setCount(tensor(getResult()).getDimSize(0)); }
