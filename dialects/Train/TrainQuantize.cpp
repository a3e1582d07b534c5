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
  Value amax = AmaxOp::create(b, loc, x);
  Value scale = QuantizationScaleOp::create(b, loc, amax, TypeAttr::get(element));
  auto type = RankedTensorType::get(tensor(x).getShape(), element);
  return {QuantizeOp::create(b, loc, type, x, scale), scale};
}

//===--- amax and scale -----------------------------------------------------===//

ShardingRule AmaxOp::getShardingRule() {
  ShardingRule rule = ruleOf(*this, einsumText());
  rule.max = true;
  return rule;
}

LogicalResult AmaxOp::inferReturnTypes(MLIRContext *context, std::optional<Location>, Adaptor,
                                       SmallVectorImpl<Type> &types) {
  types.push_back(RankedTensorType::get({}, Float32Type::get(context)));
  return success();
}

SmallVector<Value> AmaxOp::decompose(OpBuilder &b) {
  Expr size = apply<math::AbsFOp>(expr(b, getLoc(), getX()));
  int64_t rank = tensor(getX()).getRank();
  if (rank == 0)
    return {size.v};
  return {ReduceOp::create(b, getLoc(), ReduceKind::Max, size.v,
                           llvm::to_vector(llvm::seq<int64_t>(0, rank)))};
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
  return {select(greater(amax.constant(INFINITY), amax), scale, amax.constant(NAN)).v};
}

//===--- quantization -------------------------------------------------------===//

ShardingRule QuantizeOp::getShardingRule() { return ruleOf(*this, einsumText()); }

LogicalResult QuantizeOp::verify() {
  if (tensor(getX()).getShape() != getType().getShape())
    return emitOpError("changes the shape of ") << getX().getType() << " to " << getType();
  return success();
}

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
  Expr y = x * inverse.to(x.v);
  return {minimum(maximum(y, y.constant(-largest)), y.constant(largest)).v};
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
  auto dy = quantize(b, getLoc(), cotangents[0], Float8E5M2Type::get(b.getContext()));
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
