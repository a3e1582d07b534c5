//===- TrainOps.cpp - rules, types, folders and costs of train ops ----------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Train/Quantize.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::train;

/// `init <...>`, which is left out where a variable begins at 0.
static ParseResult parseInit(OpAsmParser &parser, InitAttr &init) {
  if (succeeded(parser.parseOptionalKeyword("init")))
    return parser.parseCustomAttributeWithFallback(init);
  init = InitAttr::get(parser.getContext(), "constant", parser.getBuilder().getF64FloatAttr(0.0));
  return success();
}

static void printInit(OpAsmPrinter &printer, Operation *, InitAttr init) {
  if (init.getKind() == "constant" && init.getValue().getValue().isPosZero() &&
      init.getValue().getType().isF64())
    return;
  printer << " init ";
  printer.printStrippedAttrOrType(init);
}

/// `[1.0, 0.1]` with all the digits a double has.
static ParseResult parseDoubles(OpAsmParser &parser, DenseF64ArrayAttr &values) {
  SmallVector<double> numbers;
  auto one = [&]() { return parser.parseFloat(numbers.emplace_back()); };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, one))
    return failure();
  values = parser.getBuilder().getDenseF64ArrayAttr(numbers);
  return success();
}

static void printDoubles(OpAsmPrinter &printer, Operation *, DenseF64ArrayAttr values) {
  printer << '[';
  llvm::interleaveComma(values.asArrayRef(), printer,
                        [&](double value) { printer.printFloat(APFloat(value)); });
  printer << ']';
}

#define GET_OP_CLASSES
#include "Train/TensorType.h"
#include "Train/TrainOps.cpp.inc"

/// A type of sums that are kept in f32 at least.
static RankedTensorType statistic(Type type) {
  return withElementType(type, atLeastF32(getElementTypeOrSelf(type)));
}

//===--- contractions -------------------------------------------------------===//

double LinearOp::getFlops() { return contractionFlops(*this); }
double ContractOp::getFlops() { return contractionFlops(*this); }

/// The text's first two tensors with the linear mark, without a possible third.
static std::string contractText(StringRef rule) {
  auto [left, right] = rule.split("->");
  auto [lhs, rhs] = left.split(',');
  return ("~" + lhs.trim() + ", ~" + rhs.trim() + " -> " + right.trim()).str();
}

ShardingRule ContractOp::getShardingRule() {
  std::string error;
  int64_t ranks[] = {tensor(getLhs()).getRank(), tensor(getRhs()).getRank()};
  ShardingRule rule = *parseShardingRule(contractText(getRule()), ranks, error);
  (void)inferFactorSizes(rule, {tensor(getLhs()).getShape(), tensor(getRhs()).getShape()}, {},
                         error);
  if (getInit())
    rule.operands.push_back(rule.results[0]);
  return rule;
}

LogicalResult ContractOp::inferReturnTypes(MLIRContext *, std::optional<Location> location,
                                           Adaptor adaptor, SmallVectorImpl<Type> &types) {
  if (StringRef(adaptor.getRule()).count("->") != 1 || StringRef(adaptor.getRule()).count(',') != 1)
    return emitOptionalError(location, "'train.contract' op rule '", adaptor.getRule(),
                             "' is not of the form \"a b, b c -> a c\"");
  return inferFromRule("contract", contractText(adaptor.getRule()), location,
                       adaptor.getOperands().take_front(2).getTypes(), types);
}

LogicalResult LinearOp::verify() { return verifyBlockShape(*this, getBlocks()); }

LogicalResult ContractOp::verify() {
  // The rule must be known to fit before it can be asked for.
  if (failed(mlir::detail::verifyInferredResultTypes(*this)))
    return failure();
  if (getInit() && getInit().getType() != getType())
    return emitOpError("init is ") << getInit().getType() << " but the result is " << getType();
  ShardingRule rule = getShardingRule();
  for (const TensorFactors &t : {rule.operands[0], rule.operands[1], rule.results[0]}) {
    llvm::SmallDenseSet<unsigned> seen;
    for (const auto &dim : t.dims)
      if (dim.size() != 1 || !seen.insert(dim[0]).second)
        return emitOpError("rule '") << getRule() << "' needs one distinct factor per dimension";
  }
  return success();
}

//===--- embedding ----------------------------------------------------------===//

ShardingRule EmbeddingGradOp::getShardingRule() {
  std::string error;
  int64_t ranks[] = {tensor(getDy()).getRank(), tensor(getIds()).getRank()};
  ShardingRule rule = *parseShardingRule(einsumText(), ranks, error);
  (void)inferFactorSizes(rule, {tensor(getDy()).getShape(), tensor(getIds()).getShape()},
                         {{"v", int64_t(getRows())}}, error);
  if (getInit())
    rule.operands.push_back(rule.results[0]);
  return rule;
}

void EmbeddingGradOp::updateSizes() { setRows(tensor(getResult()).getDimSize(0)); }

LogicalResult EmbeddingGradOp::inferReturnTypes(MLIRContext *, std::optional<Location> location,
                                                Adaptor adaptor, SmallVectorImpl<Type> &types) {
  return inferFromRule("embedding_grad", einsumText(), location,
                       adaptor.getOperands().take_front(2).getTypes(), types,
                       {{"v", int64_t(adaptor.getRows())}});
}

bool EmbeddingOp::movesElements() { return true; }

bool LayerNormGradOp::isSum(unsigned index) { return index > 0; }
bool RmsNormGradOp::isSum(unsigned index) { return index > 0; }

/// The padding row has had its effect, on the derivative, when types change; of a
/// part of the table it need not be a row.
void EmbeddingOp::updateSizes() { setPadding(uint64_t(-1)); }

LogicalResult EmbeddingOp::verify() {
  int64_t rows = tensor(getTable()).getDimSize(0), padding = int64_t(getPadding());
  if (padding < -1 || padding >= rows)
    return emitOpError("padding must be a row of the table, 0 to ")
           << rows - 1 << ", or -1, found " << padding;
  return success();
}

/// Zeros stay where 0 is within the bounds.
bool ClampOp::preservesZero(unsigned) {
  return getLeast().convertToDouble() <= 0 && getMost().convertToDouble() >= 0;
}

LogicalResult ClampOp::verify() {
  double least = getLeast().convertToDouble(), most = getMost().convertToDouble();
  if (!(least <= most))
    return emitOpError("clamps from ") << least << " to " << most << "; the first is at most the "
                                       << "second";
  return success();
}

//===--- rotary positions ---------------------------------------------------===//

ShardingRule RopeTableOp::getShardingRule() {
  return ruleOf(*this, getPositions() ? "b s -> b s f!, b s f!" : einsumText());
}

/// Tables are the same for all sequences, or each has its own.
static StringRef ropeText(int64_t tableRank) {
  return tableRank == 3 ? "~b s h d!, b s f!, b s f! -> b s h d!" : RopeOp::einsumText();
}
ShardingRule RopeOp::getShardingRule() {
  return ruleOf(*this, ropeText(tensor(getCos()).getRank()));
}
LogicalResult RopeOp::inferReturnTypes(MLIRContext *, std::optional<Location> location,
                                       Adaptor adaptor, SmallVectorImpl<Type> &types) {
  return inferFromRule("rope", ropeText(tensor(adaptor.getCos()).getRank()), location,
                       adaptor.getOperands().getTypes(), types);
}

FloatType RopeTableOp::getResultPrecision(FloatType narrow) {
  return cast<FloatType>(atLeastF32(narrow));
}
FloatType RopeOp::getOperandPrecision(unsigned index, FloatType narrow) {
  return index == 0 ? narrow : cast<FloatType>(atLeastF32(narrow));
}

SmallVector<std::pair<Value, int64_t>> RopeTableOp::getIndexedDims() {
  if (getPositions()) // They are data.
    return {};
  return {{getCos(), 0}};
}
SmallVector<Value> RopeTableOp::getIndexOffsets() {
  if (getPositions())
    return {};
  return {getOffset()};
}

void RopeTableOp::setOffsets(ValueRange offsets) {
  if (!offsets.empty() && offsets[0])
    getOffsetMutable().assign(offsets[0]);
}

/// An operand that is the beginning of a part: one index.
static LogicalResult verifyOffset(Operation *op, Value offset) {
  if (offset && tensor(offset).getRank() != 0)
    return op->emitOpError("needs a tensor<i32> as offset, not ") << offset.getType();
  return success();
}

LogicalResult RopeTableOp::verify() {
  auto type = tensor(getCos());
  ArrayRef<int64_t> rows = type.getShape().take_front(1);
  if (getPositions())
    rows = tensor(getPositions()).getShape();
  SmallVector<int64_t> wanted(rows);
  wanted.push_back(int64_t(getFrequencies().size()));
  if (getPositions() && (rows.size() != 2 || getOffset()))
    return emitOpError("takes an offset, or positions of [sequences, positions], found ")
           << getPositions().getType() << (getOffset() ? " and an offset" : "");
  if (type != tensor(getSin()) || type.getShape() != ArrayRef(wanted))
    return emitOpError("results must both be [")
           << (getPositions() ? "sequences, " : "") << "positions, " << getFrequencies().size()
           << "], found " << getCos().getType() << " and " << getSin().getType();
  return verifyOffset(*this, getOffset());
}

LogicalResult RopeOp::verify() {
  if (failed(mlir::detail::verifyInferredResultTypes(*this)))
    return failure();
  int64_t half = tensor(getCos()).getShape().back();
  if (tensor(getX()).getDimSize(3) != 2 * half)
    return emitOpError("head size ")
           << tensor(getX()).getDimSize(3) << " is not twice the tables' " << half;
  return success();
}

//===--- attention ----------------------------------------------------------===//

ShardingRule AlibiSlopesOp::getShardingRule() { return ruleOf(*this, einsumText()); }
FloatType AlibiSlopesOp::getResultPrecision(FloatType narrow) {
  return cast<FloatType>(atLeastF32(narrow));
}
SmallVector<std::pair<Value, int64_t>> AlibiSlopesOp::getIndexedDims() { return {{getY(), 0}}; }
void AlibiSlopesOp::keepLogicalSizes() {
  if (getHeads() == 0)
    setHeads(tensor(getY()).getDimSize(0));
}
SmallVector<Value> AlibiSlopesOp::getIndexOffsets() { return {getOffset()}; }
void AlibiSlopesOp::setOffsets(ValueRange offsets) {
  if (offsets[0])
    getOffsetMutable().assign(offsets[0]);
}
LogicalResult AlibiSlopesOp::verify() {
  if (tensor(getY()).getRank() != 1)
    return emitOpError("makes one number for each head, [heads], not ") << getY().getType();
  if (double bias = getBias().convertToDouble(); !(bias > 0) || !std::isfinite(bias))
    return emitOpError("bias must be above 0, found ") << bias;
  return verifyOffset(*this, getOffset());
}

void AttentionOp::build(OpBuilder &b, OperationState &state, Value q, Value k, Value v,
                        const AttentionOptions &o, Value before, Value beforeLse,
                        const AttentionSpec &spec) {
  build(b, state, q, k, v, o.ids, o.key, o.headOffset, o.queryOffset, o.keyOffset, o.positions,
        o.lengths, o.slopes, o.sinks, o.distances, before, beforeLse,
        AttentionAttr::get(b.getContext(), spec));
}

void AttentionGradOp::build(OpBuilder &b, OperationState &state, Value dout, Value q, Value k,
                            Value v, Value out, Value lse, const AttentionOptions &o,
                            const AttentionSpec &spec) {
  build(b, state, dout, q, k, v, out, lse, o.ids, o.key, o.headOffset, o.queryOffset, o.keyOffset,
        o.positions, o.lengths, o.slopes, o.sinks, o.distances,
        AttentionAttr::get(b.getContext(), spec));
}

Value AttentionGradOp::getGradientOf(Value AttentionOptions::*option) {
  AttentionOptions options = getOptions();
  if (!(options.*option))
    return {};
  unsigned result = 0;
  for (const AttentionOption &row : attentionOptions)
    if (row.member == option)
      break;
    else
      result += row.hasGradient && options.*row.member;
  return getDoptions()[result];
}

template <typename Op> static AttentionSizes sizesOf(Op op) {
  auto q = tensor(op.getQ()).getShape(), k = tensor(op.getK()).getShape();
  AttentionAttr spec = op.getSpec();
  return {q[0], q[2], spec->queries ? spec->queries : q[1], spec->keys ? spec->keys : k[1]};
}
AttentionSizes AttentionOp::getSizes() { return sizesOf(*this); }
AttentionSizes AttentionGradOp::getSizes() { return sizesOf(*this); }

/// Adds the options to an attention rule. Heads are those of keys and how many queries share one; a
/// dimension that no device divides is a factor of its own. The gradient gives results like the options
/// that have one.
template <typename Op> static ShardingRule attentionRule(Op op, StringRef text, unsigned tensors) {
  SmallVector<int64_t> ranks;
  SmallVector<ArrayRef<int64_t>> shapes;
  for (Value operand : op->getOperands().take_front(tensors)) {
    ranks.push_back(tensor(operand).getRank());
    shapes.push_back(tensor(operand).getShape());
  }
  std::string error;
  ShardingRule rule = *parseShardingRule(text, ranks, error);
  (void)inferFactorSizes(rule, shapes, {}, error);
  AttentionOptions options = op.getOptions();
  for (const AttentionOption &option : attentionOptions) {
    Value value = options.*option.member;
    if (!value)
      continue;
    TensorFactors factors;
    for (auto [dim, letter] : llvm::enumerate(option.dims)) {
      if (letter == 'b' || (letter == 't' && !op.getKeyOffset())) {
        factors.dims.push_back({unsigned(rule.find(StringRef(&letter, 1)))});
      } else if (letter == 'h') {
        factors.dims.push_back({unsigned(rule.find("g")), unsigned(rule.find("r"))});
      } else {
        std::string name = letter == 't' ? "all" : std::string(1, letter);
        rule.factors.push_back({name, tensor(value).getDimSize(dim), true, true});
        factors.dims.push_back({unsigned(rule.factors.size() - 1)});
      }
    }
    rule.operands.push_back(factors);
    if (isa<AttentionGradOp>(op) && option.hasGradient)
      rule.results.push_back(factors);
  }
  return rule;
}

/// Results of a part of the keys, which are added up or merged, are never narrow.
static void widen(MutableArrayRef<Type> results) {
  for (Type &type : results)
    type = statistic(type);
}

template <typename Op> static void keepSizes(Op op) {
  AttentionSpec spec = op.getSpec().getValue();
  auto q = tensor(op.getQ()).getShape();
  if (spec.queries == 0)
    spec.queries = q[1];
  if (spec.heads == 0)
    spec.heads = q[2];
  op.setSpec(spec);
}
template <typename Op> static void setQueryOffsets(Op op, ValueRange offsets) {
  // Random numbers alone depend on the head. Without them, masks and slopes nothing depends on a
  // query's position.
  AttentionAttr spec = op.getSpec();
  if (offsets[0] && op.getIds())
    op.getHeadOffsetMutable().assign(offsets[0]);
  if (offsets[1] && (spec->causal || spec->window || op.getSlopes() || op.getDistances() || op.getIds()))
    op.getQueryOffsetMutable().assign(offsets[1]);
}
SmallVector<std::pair<Value, int64_t>> AttentionOp::getIndexedDims() {
  return {{getQ(), 2}, {getQ(), 1}};
}
SmallVector<std::pair<Value, int64_t>> AttentionGradOp::getIndexedDims() {
  return {{getQ(), 2}, {getQ(), 1}};
}
/// Zero values make a zero result, and where heads share one value head there are
/// no values of their own. Neither has a query: one in the padding of a sequence gets a mean of
/// other tokens' values.
bool AttentionOp::preservesZero(unsigned result) {
  bool isPadded = getSizes().queries != tensor(getQ()).getDimSize(1);
  return result == 0 && tensor(getV()).getDimSize(2) > 1 && !isPadded;
}
void AttentionOp::keepLogicalSizes() { keepSizes(*this); }
void AttentionGradOp::keepLogicalSizes() { keepSizes(*this); }
SmallVector<Value> AttentionOp::getIndexOffsets() { return {getHeadOffset(), getQueryOffset()}; }
SmallVector<Value> AttentionGradOp::getIndexOffsets() {
  return {getHeadOffset(), getQueryOffset()};
}
void AttentionOp::setOffsets(ValueRange offsets) { setQueryOffsets(*this, offsets); }
void AttentionGradOp::setOffsets(ValueRange offsets) { setQueryOffsets(*this, offsets); }

ShardingRule AttentionOp::getShardingRule() {
  ShardingRule rule = attentionRule(*this, einsumText(), 3);
  if (getBefore())
    rule.operands.append({rule.results[0], rule.results[1]});
  return rule;
}
ShardingRule AttentionGradOp::getShardingRule() { return attentionRule(*this, einsumText(), 6); }

LogicalResult AttentionOp::inferReturnTypes(MLIRContext *, std::optional<Location> location,
                                            Adaptor adaptor, SmallVectorImpl<Type> &types) {
  if (failed(inferFromRule("attention", einsumText(), location,
                           adaptor.getOperands().take_front(3).getTypes(), types)))
    return failure();
  types[1] = statistic(types[1]);
  if (adaptor.getKeyOffset())
    widen(types);
  return success();
}

LogicalResult AttentionGradOp::inferReturnTypes(MLIRContext *, std::optional<Location> location,
                                                Adaptor adaptor, SmallVectorImpl<Type> &types) {
  if (failed(inferFromRule("attention_grad", einsumText(), location,
                           adaptor.getOperands().take_front(6).getTypes(), types)))
    return failure();
  if (adaptor.getKeyOffset())
    widen(types);
  AttentionOptions options = attentionOptionsOf(adaptor);
  for (const AttentionOption &option : attentionOptions)
    if (Value value = options.*option.member; value && option.hasGradient)
      types.push_back(withShape(tensor(value), tensor(value).getShape()));
  return success();
}

/// Numbers of heads are added to scores, which are in f32 at least.
FloatType AttentionOp::getOperandPrecision(unsigned index, FloatType narrow) {
  return index < 3 ? narrow : cast<FloatType>(atLeastF32(narrow));
}

template <typename Op> static LogicalResult verifyAttention(Op op) {
  AttentionAttr spec = op.getSpec();
  auto emitError = [&] { return op.emitOpError(); };
  for (Value offset : {op.getHeadOffset(), op.getQueryOffset(), op.getKeyOffset()})
    if (failed(verifyOffset(op, offset)))
      return failure();
  return train::verifyAttentionCall(emitError, spec.getValue(), op.getOptions(), op.getSizes(),
                                    tensor(op.getLse()).getElementType());
}

LogicalResult AttentionOp::verify() {
  if (bool(getBefore()) != bool(getBeforeLse()) || (getBefore() && !getKeyOffset()))
    return emitOpError("takes what was before, both results of it, with a part of the keys alone");
  if (getBefore() && (!equalButEncoding({getBefore().getType()}, {getOut().getType()}) ||
                      !equalButEncoding({getBeforeLse().getType()}, {getLse().getType()})))
    return emitOpError("needs before of ") << getOut().getType() << " and " << getLse().getType()
                                           << ", found " << getBefore().getType() << " and "
                                           << getBeforeLse().getType();
  return verifyAttention(*this);
}

LogicalResult AttentionGradOp::verify() { return verifyAttention(*this); }

bool AttentionOp::dropRandomness() {
  if (!getIds())
    return false;
  getIdsMutable().clear();
  getKeyMutable().clear();
  AttentionSpec spec = getSpec().getValue();
  spec.dropout = 0;
  setSpec(spec);
  return true;
}

/// Products over the visible part of queries x keys, of `depths` elements.
template <typename Op> static double attentionFlops(Op op, int64_t depths) {
  auto q = tensor(op.getQ()).getShape(), k = tensor(op.getK()).getShape();
  AttentionAttr spec = op.getSpec();
  double pairs = op.getKeyOffset() ? spec->pairs : spec->visiblePairs(q[1], op.getSizes().queries, k[1]);
  return 2.0 * double(q[0]) * double(q[2]) * double(depths) * pairs;
}

double AttentionOp::getFlops() {
  return attentionFlops(*this, tensor(getQ()).getDimSize(3) + tensor(getV()).getDimSize(3));
}

double AttentionGradOp::getFlops() {
  // Products over d: the scores again, dQ, dK; over e: dP, dV.
  return attentionFlops(*this, 3 * tensor(getQ()).getDimSize(3) + 2 * tensor(getV()).getDimSize(3));
}

//===--- element-wise -------------------------------------------------------===//

OpFoldResult AddOp::fold(FoldAdaptor) {
  auto isZero = [](Value value) {
    auto fill = value.getDefiningOp<FillOp>();
    return fill && fill.getValue().isZero();
  };
  if (isZero(getRhs()))
    return getLhs();
  if (isZero(getLhs()) && getRhs().getType() == getType())
    return getRhs();
  return {};
}

OpFoldResult ScaleOp::fold(FoldAdaptor) {
  return getFactor().isExactlyValue(1.0) ? OpFoldResult(getX()) : OpFoldResult();
}

ShardingRule CastOp::getShardingRule() { return elementwiseRuleOf(*this, true, false); }
bool CastOp::movesElements() { return true; }

LogicalResult CastOp::verify() {
  if (tensor(getX()).getShape() != tensor(getY()).getShape())
    return emitOpError("makes ") << getY().getType() << " of " << getX().getType()
                                 << "; only the element type may differ";
  return success();
}

/// Whether every number of `narrow` is one of `wide`.
static bool holds(FloatType wide, FloatType narrow) {
  const llvm::fltSemantics &w = wide.getFloatSemantics(), &n = narrow.getFloatSemantics();
  return APFloat::semanticsPrecision(w) >= APFloat::semanticsPrecision(n) &&
         APFloat::semanticsMaxExponent(w) >= APFloat::semanticsMaxExponent(n) &&
         APFloat::semanticsMinExponent(w) <= APFloat::semanticsMinExponent(n);
}

OpFoldResult CastOp::fold(FoldAdaptor) {
  if (getX().getType() == getType())
    return getX();
  // There and back, with nothing lost on the way.
  auto inner = getX().getDefiningOp<CastOp>();
  if (inner && inner.getX().getType() == getType() &&
      holds(cast<FloatType>(tensor(getX()).getElementType()),
            cast<FloatType>(tensor(getY()).getElementType())))
    return inner.getX();
  return {};
}

ShardingRule AccumulateOp::getShardingRule() { return elementwiseRuleOf(*this, false, true); }

LogicalResult AccumulateOp::inferReturnTypes(MLIRContext *, std::optional<Location>,
                                             Adaptor adaptor, SmallVectorImpl<Type> &types) {
  auto type = cast<RankedTensorType>(adaptor.getAccumulator().getType());
  types.push_back(RankedTensorType::get(type.getShape(), type.getElementType()));
  return success();
}

LogicalResult AccumulateOp::verify() {
  if (tensor(getAccumulator()).getShape() != tensor(getValue()).getShape())
    return emitOpError("adds ") << getValue().getType() << " to " << getAccumulator().getType();
  return success();
}

ShardingRule DropoutOp::getShardingRule() {
  ShardingRule rule = elementwiseRuleOf(*this, false, false);
  rule.operands.resize(1);
  rule.operands[0].linear = true;
  rule.operands.emplace_back().dims.push_back({0});
  rule.factors.push_back({"k", 2, true, true});
  rule.operands.emplace_back().dims.push_back({unsigned(rule.factors.size() - 1)});
  rule.operands.resize(getNumOperands());
  return rule;
}

void DropoutOp::build(OpBuilder &b, OperationState &state, Value x, Value ids, Value key,
                      FloatAttr rate, IntegerAttr stream) {
  build(b, state, x, ids, key, ValueRange(), rate, stream, DenseI64ArrayAttr(),
        DenseI64ArrayAttr());
}

SmallVector<int64_t> DropoutOp::getLogicalSizes() {
  return llvm::to_vector(getSizes().value_or(tensor(getX()).getShape().drop_front()));
}

Value DropoutOp::getOffset(int64_t dim) {
  for (auto [offset, at] : llvm::zip(getOffsets(), getOffsetDims().value_or(ArrayRef<int64_t>())))
    if (at == dim)
      return offset;
  return {};
}

SmallVector<std::pair<Value, int64_t>> DropoutOp::getIndexedDims() {
  SmallVector<std::pair<Value, int64_t>> dims;
  for (int64_t d = 1; d < tensor(getX()).getRank(); ++d)
    dims.push_back({getX(), d});
  return dims;
}

void DropoutOp::keepLogicalSizes() { setSizes(getLogicalSizes()); }

SmallVector<Value> DropoutOp::getIndexOffsets() {
  SmallVector<Value> offsets;
  for (int64_t d = 1; d < tensor(getX()).getRank(); ++d)
    offsets.push_back(getOffset(d));
  return offsets;
}

void DropoutOp::setOffsets(ValueRange offsets) {
  SmallVector<Value> given;
  SmallVector<int64_t> dims;
  for (auto [d, offset] : llvm::enumerate(offsets))
    if (offset) {
      given.push_back(offset);
      dims.push_back(int64_t(d) + 1);
    }
  getOffsetsMutable().assign(given);
  if (!dims.empty())
    setOffsetDims(dims);
}

LogicalResult DropoutOp::inferReturnTypes(MLIRContext *, std::optional<Location>, Adaptor adaptor,
                                          SmallVectorImpl<Type> &types) {
  auto type = cast<RankedTensorType>(adaptor.getX().getType());
  types.push_back(withShape(type, type.getShape()));
  return success();
}

bool DropoutOp::dropRandomness() {
  getY().replaceAllUsesWith(getX());
  erase();
  return true;
}

LogicalResult DropoutOp::verify() {
  double rate = getRate().convertToDouble();
  if (rate < 0 || rate >= 1)
    return emitOpError("rate must be in [0, 1), found ") << rate;
  if (tensor(getX()).getRank() == 0 || tensor(getIds()).getRank() != 1 ||
      tensor(getIds()).getDimSize(0) != tensor(getX()).getDimSize(0))
    return emitOpError("needs one sequence id per row of ")
           << getX().getType() << ", found " << getIds().getType();
  if (tensor(getKey()).getNumElements() != 2)
    return emitOpError("needs a key of two words, found ") << getKey().getType();
  int64_t rank = tensor(getX()).getRank();
  if (getSizes() && int64_t(getSizes()->size()) != rank - 1)
    return emitOpError("needs the logical sizes of ")
           << rank - 1 << " dimensions, found " << getSizes()->size();
  // An element's number in its sequence is a word of what its random bits are made of.
  ArrayRef<int64_t> sizes = getSizes().value_or(tensor(getX()).getShape().drop_front());
  if (int64_t most = int64_t(1) << 32, all = 1; llvm::any_of(sizes, [&](int64_t size) {
        return (all *= std::min(size, most)) > most;
      }))
    return emitOpError("draws for more than 2^32 elements of a sequence of ") << getX().getType();
  ArrayRef<int64_t> dims = getOffsetDims().value_or(ArrayRef<int64_t>());
  if (dims.size() != getOffsets().size())
    return emitOpError("has ") << getOffsets().size() << " offsets for " << dims.size()
                               << " dimensions";
  for (int64_t d : dims)
    if (d < 1 || d >= rank)
      return emitOpError("has an offset in dimension ") << d << " of " << getX().getType();
  for (Value offset : getOffsets())
    if (failed(verifyOffset(*this, offset)))
      return failure();
  return success();
}

bool MaskOp::movesElements() { return true; }

ShardingRule MaskOp::getShardingRule() {
  ShardingRule rule = elementwiseRuleOf(*this, getValue().isZero(), false);
  if (getOffset())
    rule.operands.back() = TensorFactors();
  return rule;
}

LogicalResult MaskOp::inferReturnTypes(MLIRContext *, std::optional<Location>, Adaptor adaptor,
                                       SmallVectorImpl<Type> &types) {
  auto type = cast<RankedTensorType>(adaptor.getX().getType());
  types.push_back(withShape(type, type.getShape()));
  return success();
}

LogicalResult MaskOp::verify() {
  if (int64_t(getDim()) < 0 || int64_t(getDim()) >= tensor(getX()).getRank())
    return emitOpError("has no dimension ") << getDim() << " in " << getX().getType();
  if (int64_t(getBelow()) < 0)
    return emitOpError("needs a limit of 0 or more, found ") << int64_t(getBelow());
  return verifyOffset(*this, getOffset());
}

SmallVector<std::pair<Value, int64_t>> MaskOp::getIndexedDims() {
  return {{getX(), int64_t(getDim())}};
}

SmallVector<Value> MaskOp::getIndexOffsets() { return {getOffset()}; }

void MaskOp::setOffsets(ValueRange offsets) {
  if (offsets[0])
    getOffsetMutable().assign(offsets[0]);
}

ShardingRule PartOffsetOp::getShardingRule() {
  ShardingRule rule;
  rule.operands.resize(getNumOperands());
  rule.results.resize(1);
  return rule;
}

LogicalResult PartOffsetOp::inferReturnTypes(MLIRContext *, std::optional<Location>,
                                             Adaptor adaptor, SmallVectorImpl<Type> &types) {
  auto type = cast<RankedTensorType>(adaptor.getPart().getType());
  types.push_back(withShape(type, type.getShape()));
  return success();
}

LogicalResult PartOffsetOp::verify() {
  if (int64_t(getEvery()) < 1 || int64_t(getParts()) < 1 || int64_t(getSize()) < 1)
    return emitOpError("needs positive numbers, found every ")
           << int64_t(getEvery()) << " parts " << int64_t(getParts()) << " size "
           << int64_t(getSize());
  if (failed(verifyOffset(*this, getPart())))
    return failure();
  return verifyOffset(*this, getOffset());
}

ShardingRule FoldInOp::getShardingRule() { return ruleOf(*this, "k!,  -> k!"); }

LogicalResult FoldInOp::inferReturnTypes(MLIRContext *, std::optional<Location>, Adaptor adaptor,
                                         SmallVectorImpl<Type> &types) {
  auto type = cast<RankedTensorType>(adaptor.getKey().getType());
  types.push_back(withShape(type, type.getShape()));
  return success();
}

//===--- loss ---------------------------------------------------------------===//

/// The loss is one number, or one for each token.
static StringRef crossEntropyText(bool perToken) {
  return perToken ? "... v!, @v ... -> ..., ..." : CrossEntropyOp::einsumText();
}
ShardingRule CrossEntropyOp::getShardingRule() {
  return ruleOf(*this, crossEntropyText(getPerToken()));
}

LogicalResult CrossEntropyOp::inferReturnTypes(MLIRContext *, std::optional<Location> location,
                                               Adaptor adaptor, SmallVectorImpl<Type> &types) {
  if (failed(inferFromRule("cross_entropy", crossEntropyText(adaptor.getPerToken()), location,
                           adaptor.getOperands().getTypes(), types)))
    return failure();
  for (Type &type : types)
    type = statistic(type);
  return success();
}

static StringRef crossEntropyGradText(Type dloss) {
  return cast<RankedTensorType>(dloss).getRank() > 0 ? "... v, @v ..., ..., ... -> ... v"
                                                     : CrossEntropyGradOp::einsumText();
}
ShardingRule CrossEntropyGradOp::getShardingRule() {
  return ruleOf(*this, crossEntropyGradText(getDloss().getType()));
}
LogicalResult CrossEntropyGradOp::inferReturnTypes(MLIRContext *, std::optional<Location> location,
                                                   Adaptor adaptor, SmallVectorImpl<Type> &types) {
  return inferFromRule("cross_entropy_grad", crossEntropyGradText(adaptor.getDloss().getType()),
                       location, adaptor.getOperands().getTypes(), types);
}

static StringRef tokenLossText(bool perToken) {
  return perToken ? "..., ..., ... -> ..., ..." : TokenLossOp::einsumText();
}
ShardingRule TokenLossOp::getShardingRule() { return ruleOf(*this, tokenLossText(getPerToken())); }
LogicalResult TokenLossOp::inferReturnTypes(MLIRContext *, std::optional<Location> location,
                                            Adaptor adaptor, SmallVectorImpl<Type> &types) {
  return inferFromRule("token_loss", tokenLossText(adaptor.getPerToken()), location,
                       adaptor.getOperands().getTypes(), types);
}

/// The probability of a logit of 0 is not 0.
bool CrossEntropyGradOp::preservesZero(unsigned) { return false; }

std::optional<double> LogOp::getFinitePadding() { return 1; }
std::optional<double> InverseRootOp::getFinitePadding() {
  return getEps().isZero() ? std::optional<double>(1) : std::nullopt;
}

/// A column without probability, and so without gradient.
static std::optional<double> neutralLogit(unsigned operand) {
  return operand == 0 ? std::optional(-INFINITY) : std::nullopt;
}
std::optional<double> CrossEntropyOp::getNeutralPadding(unsigned operand) {
  return neutralLogit(operand);
}
std::optional<double> CrossEntropyGradOp::getNeutralPadding(unsigned operand) {
  return neutralLogit(operand);
}

//===--- optimizer ----------------------------------------------------------===//

ShardingRule GlobalNormOp::getShardingRule() {
  ShardingRule rule;
  rule.operands.resize(getNumOperands());
  rule.results.resize(1);
  return rule;
}

LogicalResult GlobalNormOp::inferReturnTypes(MLIRContext *context, std::optional<Location>, Adaptor,
                                             SmallVectorImpl<Type> &types) {
  types.push_back(RankedTensorType::get({}, Float32Type::get(context)));
  return success();
}
