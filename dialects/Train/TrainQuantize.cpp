//===- TrainQuantize.cpp - tensors of 8-bit floats ---------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Train/Quantize.h"
#include "Expr.h"

#include <cmath>

using namespace mlir;
using namespace meshwright;
using namespace meshwright::train;
using namespace meshwright::train::formula;

#define GET_OP_CLASSES
#include "Train/TensorType.h"
#include "Train/TrainQuantizeOps.cpp.inc"

static double largestOf(Type element) {
  return APFloat::getLargest(cast<FloatType>(element).getFloatSemantics()).convertToDouble();
}

Quantized train::quantize(OpBuilder &b, Location loc, Value x, FloatType element) {
  return quantize(b, loc, x, element, {});
}

Quantized train::quantize(OpBuilder &b, Location loc, Value x, FloatType element, ArrayRef<int64_t> dims) {
  Value amax = AmaxOp::create(b, loc, x, dims);
  Value scale = QuantizationScaleOp::create(b, loc, amax, TypeAttr::get(element));
  auto type = RankedTensorType::get(tensor(x).getShape(), element);
  return {QuantizeOp::create(b, loc, type, x, scale, dims), scale};
}

/// `x`, in blocks, rounded to `element` by ops that are before `b` in its block, or none.
static Value alreadyRounded(OpBuilder &b, Value x, FloatType element, ArrayRef<int64_t> within) {
  Block::iterator end = b.getInsertionPoint();
  auto isBefore = [&](Operation *op) {
    return op->getBlock() == b.getInsertionBlock() &&
           (end == b.getInsertionBlock()->end() || op->isBeforeInBlock(&*end));
  };
  for (Operation *user : x.getUsers()) {
    auto quantize = dyn_cast<QuantizeOp>(user);
    if (!quantize || quantize.getX() != x || quantize.getDims() != within || quantize.getType().getElementType() != element)
      continue;
    auto scale = quantize.getScale().getDefiningOp<QuantizationScaleOp>();
    auto amax = scale ? scale.getAmax().getDefiningOp<AmaxOp>() : nullptr;
    if (!amax || amax.getX() != x || amax.getDims() != within || scale.getElement() != element)
      continue;
    for (Operation *next : quantize->getUsers())
      if (auto dequantize = dyn_cast<DequantizeOp>(next);
          dequantize && dequantize.getScale() == quantize.getScale() && dequantize.getDims() == within &&
          dequantize.getType() == x.getType() && isBefore(dequantize))
        return dequantize;
  }
  return {};
}

Value train::roundInBlocks(OpBuilder &b, Location loc, Value x, FloatType element, ArrayRef<int64_t> block) {
  RankedTensorType type = tensor(x);
  SmallVector<int64_t> shape, within;
  for (auto [size, length] : llvm::zip_equal(type.getShape(), block)) {
    shape.push_back(size / length);
    if (length == 1)
      continue;
    within.push_back(shape.size());
    shape.push_back(length);
  }
  auto blocks = RankedTensorType::get(shape, type.getElementType());
  // What several products read is rounded once.
  for (Operation *user : x.getUsers())
    if (auto reshape = dyn_cast<ReshapeOp>(user); reshape && reshape.getType() == blocks)
      if (Value rounded = alreadyRounded(b, reshape, element, within))
        return ReshapeOp::create(b, loc, type, rounded);
  Value divided = ReshapeOp::create(b, loc, blocks, x);
  Quantized q = quantize(b, loc, divided, element, within);
  return ReshapeOp::create(b, loc, type, DequantizeOp::create(b, loc, blocks, q.values, q.scale, within));
}

LogicalResult train::verifyBlockShape(Operation *product, std::optional<ArrayRef<int64_t>> blocks) {
  if (!blocks || (blocks->size() == 2 && (*blocks)[1] > 1 && ((*blocks)[0] == 1 || (*blocks)[0] == (*blocks)[1])))
    return success();
  return product->emitOpError("has blocks ") << *blocks << "; they are [1, n] or [n, n] with n above 1";
}

Value train::roundedOf(ReshapeOp reshape) {
  auto dequantize = reshape.getX().getDefiningOp<DequantizeOp>();
  auto quantize = dequantize ? dequantize.getY().getDefiningOp<QuantizeOp>() : nullptr;
  auto blocks = quantize ? quantize.getX().getDefiningOp<ReshapeOp>() : nullptr;
  bool isWhole = blocks && tensor(blocks.getX()).getShape() == reshape.getType().getShape();
  return isWhole ? Value(blocks.getX()) : Value();
}

bool train::reshapesBlocks(ReshapeOp reshape) {
  return reshape.getX().getDefiningOp<DequantizeOp>() ||
         llvm::any_of(reshape->getUsers(), [](Operation *user) { return isa<AmaxOp, QuantizeOp>(user); });
}

//===--- blocks ---------------------------------------------------------------===//

/// `rule` with the factors of a tensor of `rank` for X, and for S those of its scales, which lack `dims`.
static std::string blockText(StringRef rule, int64_t rank, ArrayRef<int64_t> dims) {
  std::string whole, rest, text;
  for (int64_t dim = 0; dim < rank; ++dim) {
    std::string name = "d" + std::to_string(dim) + " ";
    whole += name;
    rest += dims.empty() || llvm::is_contained(dims, dim) ? "" : name;
  }
  for (char c : rule)
    text += c == 'X' ? whole : c == 'S' ? rest : std::string(1, c);
  return text;
}

/// `shape` without `dims`, or without any.
static SmallVector<int64_t> shapeOfBlocks(ArrayRef<int64_t> shape, ArrayRef<int64_t> dims) {
  SmallVector<int64_t> rest;
  for (auto [dim, size] : llvm::enumerate(shape))
    if (!dims.empty() && !llvm::is_contained(dims, int64_t(dim)))
      rest.push_back(size);
  return rest;
}

static LogicalResult verifyDims(Operation *op, ArrayRef<int64_t> dims, int64_t rank) {
  int64_t after = 0;
  for (int64_t dim : dims) {
    if (dim < after || dim >= rank)
      return op->emitOpError("needs ascending dimensions below ") << rank << ", found " << dims;
    after = dim + 1;
  }
  return success();
}

/// Checks that `from` becomes `to`, of its shape, with a scale for each block.
static LogicalResult verifyScaled(Operation *op, Value from, Value to, Value scale, ArrayRef<int64_t> dims) {
  ArrayRef<int64_t> shape = tensor(from).getShape();
  if (shape != tensor(to).getShape())
    return op->emitOpError("changes the shape of ") << from.getType() << " to " << to.getType();
  if (failed(verifyDims(op, dims, shape.size())))
    return failure();
  if (ArrayRef(shapeOfBlocks(shape, dims)) != tensor(scale).getShape())
    return op->emitOpError() << scale.getType() << " is not a scale for each block of " << from.getType();
  return success();
}

/// The scale of each element of `like`.
static Expr ofElements(Expr scale, Expr like, ArrayRef<int64_t> dims) {
  if (tensor(scale.v).getRank() == 0)
    return scale.to(like.v);
  auto type = RankedTensorType::get(tensor(like.v).getShape(), tensor(scale.v).getElementType());
  return scale.with(BroadcastOp::create(*like.b, like.loc, type, scale.v, dims));
}

//===--- amax and scale -----------------------------------------------------===//

ShardingRule AmaxOp::getShardingRule() {
  ShardingRule rule = ruleOf(*this, blockText("X -> S", tensor(getX()).getRank(), getDims()));
  rule.max = true;
  return rule;
}

LogicalResult AmaxOp::inferReturnTypes(MLIRContext *context, std::optional<Location>, Adaptor adaptor,
                                       SmallVectorImpl<Type> &types) {
  auto x = cast<RankedTensorType>(adaptor.getX().getType());
  types.push_back(RankedTensorType::get(shapeOfBlocks(x.getShape(), adaptor.getDims()), Float32Type::get(context)));
  return success();
}

LogicalResult AmaxOp::verify() { return verifyDims(*this, getDims(), tensor(getX()).getRank()); }

SmallVector<Value> AmaxOp::decompose(OpBuilder &b) {
  Expr size = apply<math::AbsFOp>(expr(b, getLoc(), getX()));
  int64_t rank = tensor(getX()).getRank();
  if (rank == 0)
    return {size.v};
  SmallVector<int64_t> dims(getDims());
  if (dims.empty())
    dims = llvm::to_vector(llvm::seq<int64_t>(0, rank));
  return {size.over(dims, ReduceKind::Max).v};
}

LogicalResult QuantizationScaleOp::verify() {
  if (isa<Float8E4M3FNType, Float8E5M2Type>(getElement()))
    return success();
  return emitOpError("is of tensors of ")
         << getElement() << "; f8E4M3FN and f8E5M2 are the types of 8 bits";
}

SmallVector<Value> QuantizationScaleOp::decompose(OpBuilder &b) {
  // The largest number of both types is 1.75 times a power of two, so the scale follows from amax's bits:
  // its exponent, one more if its digits are above 1.75, less that power's.
  constexpr int32_t one = 1 << 23, aboveDigits = one - 1 - (one / 4 * 3), exponent = 0x7f800000;
  int power = std::ilogb(largestOf(getElement()));
  Expr amax = expr(b, getLoc(), getAmax());
  auto words = RankedTensorType::get(tensor(amax.v).getShape(), b.getI32Type());
  Expr bits = amax.with(arith::BitcastOp::create(b, getLoc(), words, amax.v));
  bits = bits.with(arith::AddIOp::create(b, getLoc(), bits.v, bits.constant(aboveDigits).v));
  bits = bits.with(arith::AndIOp::create(b, getLoc(), bits.v, bits.constant(exponent).v));
  Expr isNormal = bits.with(arith::CmpIOp::create(b, getLoc(), arith::CmpIPredicate::uge, bits.v,
                                                  bits.constant(double(power + 1) * one).v));
  Expr shifted = bits.with(
      arith::SubIOp::create(b, getLoc(), bits.v, bits.constant(double(power) * one).v));
  bits = select(isNormal, shifted, bits.constant(one));
  Expr scale = amax.with(arith::BitcastOp::create(b, getLoc(), amax.v.getType(), bits.v));
  scale = select(greater(amax, amax.constant(0)), scale, amax.constant(1));
  return {select(greater(amax.constant(INFINITY), amax), scale, amax.constant(NAN)).v};
}

//===--- delayed scaling ------------------------------------------------------===//

VariableOp train::makeStateOfScaling(OpBuilder &b, VariableOp parameter, StringRef role, ArrayRef<int64_t> behind) {
  SmallVector<int64_t> shape{parameter.getTensorType().getDimSize(0)};
  llvm::append_range(shape, behind);
  std::string name = (parameter.getSymName() + "." + role).str();
  // Its place in files is beside the weight's, by which runs on other meshes find it. Several weights may be rows of
  // one tensor.
  StorageAttr storage = parameter.getStorageAttr();
  if (storage) {
    std::string tensor = storage.getTensor().str();
    if (storage.getFull())
      tensor += "." + std::to_string(storage.getOffset());
    storage = StorageAttr::get(b.getContext(), tensor + "." + role.str(), false, 0, 0, 0, 0, {}, /*optional=*/false);
  }
  return VariableOp::create(b, NameLoc::get(b.getStringAttr(name), parameter.getLoc()), name,
                            RankedTensorType::get(shape, b.getF32Type()), /*stacked=*/true, IntegerAttr(),
                            InitAttr::get(b.getContext(), "constant", b.getF64FloatAttr(0)), storage,
                            FlatSymbolRefAttr::get(parameter.getSymNameAttr()), b.getStringAttr(role), StringAttr());
}

LogicalResult ObserveOp::buildVJP(OpBuilder &b, ValueRange cotangents, ArrayRef<bool>, SmallVectorImpl<Value> &grads) {
  grads.append({cotangents[0], AmaxOp::create(b, getLoc(), getX(), ArrayRef<int64_t>())});
  return success();
}

LogicalResult QuantizeGradientOp::buildVJP(OpBuilder &b, ValueRange cotangents, ArrayRef<bool>,
                                           SmallVectorImpl<Value> &grads) {
  RankedTensorType type = tensor(cotangents[0]);
  Value scale = QuantizationScaleOp::create(b, getLoc(), getAmax(), getElementAttr());
  Value codes = QuantizeOp::create(b, getLoc(), withElementType(type, getElement()), cotangents[0], scale,
                                   ArrayRef<int64_t>());
  grads.append({DequantizeOp::create(b, getLoc(), type, codes, scale, ArrayRef<int64_t>()),
                AmaxOp::create(b, getLoc(), cotangents[0], ArrayRef<int64_t>())});
  return success();
}

//===--- quantization -------------------------------------------------------===//

ShardingRule QuantizeOp::getShardingRule() {
  return ruleOf(*this, blockText("X, S -> X", getType().getRank(), getDims()));
}

LogicalResult QuantizeOp::verify() { return verifyScaled(*this, getX(), getY(), getScale(), getDims()); }

LogicalResult QuantizeOp::buildVJP(OpBuilder &, ValueRange cotangents, ArrayRef<bool>,
                                   SmallVectorImpl<Value> &grads) {
  grads.append({cotangents[0], Value()});
  return success();
}

SmallVector<Value> QuantizeOp::decompose(OpBuilder &b) {
  Expr x = expr(b, getLoc(), getX());
  // Of a power of two the inverse is exact.
  Expr inverse = 1.0 / x.with(getScale());
  double largest = largestOf(getType().getElementType());
  Expr y = x * ofElements(inverse, x, getDims());
  y = minimum(maximum(y, y.constant(-largest)), y.constant(largest));
  // A scale of earlier steps does not show that x is infinite.
  return {select(greater(x.constant(INFINITY), apply<math::AbsFOp>(x)), y, y.constant(NAN)).v};
}

ShardingRule DequantizeOp::getShardingRule() {
  return ruleOf(*this, blockText("X, S -> X", getType().getRank(), getDims()));
}

LogicalResult DequantizeOp::verify() { return verifyScaled(*this, getY(), getX(), getScale(), getDims()); }

LogicalResult DequantizeOp::buildVJP(OpBuilder &, ValueRange cotangents, ArrayRef<bool>,
                                     SmallVectorImpl<Value> &grads) {
  grads.append({cotangents[0], Value()});
  return success();
}

SmallVector<Value> DequantizeOp::decompose(OpBuilder &b) {
  Expr y = expr(b, getLoc(), getY());
  return {(y * ofElements(y.with(getScale()), y, getDims())).v};
}

//===--- weights in 8 bits ---------------------------------------------------===//

ShardingRule DequantizeRowsOp::getShardingRule() { return ruleOf(*this, einsumText()); }

LogicalResult DequantizeRowsOp::verify() {
  ArrayRef<int64_t> shape = tensor(getCodes()).getShape();
  if (shape != tensor(getWeight()).getShape())
    return emitOpError("changes the shape of ") << getCodes().getType() << " to " << getWeight().getType();
  if (shape.empty() || shape.drop_back() != tensor(getScale()).getShape())
    return emitOpError() << getScale().getType() << " is not a scale for each row of " << getCodes().getType();
  return success();
}

SmallVector<Value> DequantizeRowsOp::decompose(OpBuilder &b) {
  Expr codes = expr(b, getLoc(), getCodes());
  auto words = RankedTensorType::get(tensor(codes.v).getShape(), b.getI32Type());
  Value number = arith::ExtSIOp::create(b, getLoc(), words, codes.v);
  auto numbers = RankedTensorType::get(words.getShape(), b.getF32Type());
  Expr weight = codes.with(arith::SIToFPOp::create(b, getLoc(), numbers, number));
  return {(weight * weight.with(getScale()).to(weight.v, /*rows=*/true)).v};
}

//===--- products -----------------------------------------------------------===//

double ScaledContractOp::getFlops() { return contractionFlops(*this); }

/// The text's factors with the linear mark.
static std::string linearText(StringRef rule) {
  auto [left, right] = rule.split("->");
  auto [lhs, rhs] = left.split(',');
  return ("~" + lhs.trim() + ", ~" + rhs.trim() + " -> " + right.trim()).str();
}

ShardingRule ScaledContractOp::getShardingRule() {
  std::string error;
  int64_t ranks[] = {tensor(getLhs()).getRank(), tensor(getRhs()).getRank()};
  ShardingRule rule = *parseShardingRule(linearText(getRule()), ranks, error);
  (void)inferFactorSizes(rule, {tensor(getLhs()).getShape(), tensor(getRhs()).getShape()}, {},
                         error);
  rule.operands.resize(4);
  if (getInit())
    rule.operands.push_back(rule.results[0]);
  return rule;
}

LogicalResult ScaledContractOp::verify() {
  if (getRule().count("->") != 1 || getRule().count(',') != 1)
    return emitOpError("rule '") << getRule() << "' is not of the form \"a b, b c -> a c\"";
  SmallVector<Type> factors{getLhs().getType(), getRhs().getType()}, types;
  if (failed(inferFromRule("scaled_contract", linearText(getRule()), getLoc(), factors, types)))
    return failure();
  if (cast<RankedTensorType>(types[0]).getShape() != getType().getShape())
    return emitOpError("makes ") << types[0] << ", not " << getType();
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

LogicalResult ScaledContractOp::buildVJP(OpBuilder &b, ValueRange cotangents, ArrayRef<bool> needed,
                                         SmallVectorImpl<Value> &grads) {
  auto [left, result] = getRule().split("->");
  auto [lhs, rhs] = left.split(',');
  std::string first = (result.trim() + ", ").str();
  auto spec = [&](StringRef other, StringRef self) {
    return first + (other.trim() + " -> " + self.trim()).str();
  };
  auto element = Float8E5M2Type::get(b.getContext());
  auto rounded = cotangents[0].getDefiningOp<DequantizeOp>();
  bool isQuantized = rounded && rounded.getDims().empty() && getElementTypeOrSelf(rounded.getY().getType()) == element;
  Quantized dy = isQuantized ? Quantized{rounded.getY(), rounded.getScale()}
                             : quantize(b, getLoc(), cotangents[0], element);
  auto gradient = [&](Value of, Value other, Value scale, const std::string &rule) -> Value {
    Type type = withElementType(of.getType(), tensor(cotangents[0]).getElementType());
    return ScaledContractOp::create(b, getLoc(), type, b.getStringAttr(rule), dy.values, other,
                                    dy.scale, scale, Value());
  };
  grads.resize(getNumOperands());
  if (needed[0])
    grads[0] = gradient(getLhs(), getRhs(), getRhsScale(), spec(rhs, lhs));
  if (needed[1])
    grads[1] = gradient(getRhs(), getLhs(), getLhsScale(), spec(lhs, rhs));
  if (getInit())
    grads.back() = cotangents[0];
  return success();
}
