//===- TrainSigns.cpp - signs of numbers as bits ----------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Expr.h"
#include "Train/TensorType.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::train;
using namespace meshwright::train::formula;

static constexpr int64_t bitsOfByte = 8;

/// Numbers of i32 along the last dimension of a tensor of `type`'s shape.
static Value numbered(OpBuilder &b, Location loc, RankedTensorType type) {
  return IotaOp::create(b, loc, type.clone(b.getI32Type()), type.getRank() - 1);
}

//===--- sign_bits ----------------------------------------------------------===//

ShardingRule SignBitsOp::getShardingRule() { return ruleOf(*this, einsumText()); }

LogicalResult SignBitsOp::verify() {
  RankedTensorType x = tensor(getX()), bits = tensor(getBits());
  if (x.getRank() == 0 || x.getShape().back() != bitsOfByte || bits.getShape() != x.getShape().drop_back())
    return emitOpError("makes ") << bits << " of " << x << ": a byte of the 8 elements of each row";
  return success();
}

SmallVector<Value> SignBitsOp::decompose(OpBuilder &b) {
  Location loc = getLoc();
  Expr x = expr(b, loc, getX());
  RankedTensorType type = tensor(getX()), words = tensor(getBits()).clone(b.getI32Type());
  Expr place = x.with(numbered(b, loc, type));
  Expr power = x.with(arith::SIToFPOp::create(b, loc, type, combine<arith::ShLIOp>(place.constant(1), place).v));
  Expr sum = select(atLeast(x, 0), power, x.constant(0)).overLast();
  Value number = arith::FPToSIOp::create(b, loc, words, sum.v);
  return {arith::TruncIOp::create(b, loc, getBits().getType(), number)};
}

//===--- magnitude ----------------------------------------------------------===//

ShardingRule MagnitudeOp::getShardingRule() { return ruleOf(*this, einsumText()); }

LogicalResult MagnitudeOp::verify() {
  RankedTensorType x = tensor(getX()), y = tensor(getY());
  if (x.getRank() == 0 || x.getShape().back() == 0 || y.getShape() != x.getShape().drop_back() ||
      y.getElementType() != x.getElementType())
    return emitOpError("makes ") << y << " of " << x << ": a number of its type for each of its rows";
  return success();
}

SmallVector<Value> MagnitudeOp::decompose(OpBuilder &b) {
  Expr x = expr(b, getLoc(), getX());
  return {(apply<math::AbsFOp>(x).overLast() * (1.0 / double(tensor(getX()).getShape().back()))).v};
}

//===--- signs --------------------------------------------------------------===//

ShardingRule SignsOp::getShardingRule() { return ruleOf(*this, einsumText()); }

/// Checks that there are eight numbers for each byte, of rows without dimension `dim`, and a scale for each row of bytes.
static LogicalResult verifySigns(Operation *op, Value bits, Value scale, Value y, std::optional<int64_t> dim) {
  SmallVector<int64_t> wanted(tensor(bits).getShape());
  bool hasRows = !wanted.empty() && tensor(scale).getShape() == ArrayRef(wanted).drop_back();
  if (dim && (*dim < 0 || *dim >= tensor(scale).getRank()))
    return op->emitOpError("adds over dimension ") << *dim << " of " << scale.getType() << ", which it does not have";
  if (dim)
    wanted.erase(wanted.begin() + *dim);
  wanted.push_back(bitsOfByte);
  if (!hasRows || tensor(y).getShape() != ArrayRef(wanted) || tensor(y).getElementType() != tensor(scale).getElementType())
    return op->emitOpError("makes ") << y.getType() << " of " << bits.getType() << " by " << scale.getType()
                                     << ": there are 8 numbers for a byte, and a scale for a row of bytes";
  return success();
}

LogicalResult SignsOp::verify() { return verifySigns(*this, getBits(), getScale(), getY(), std::nullopt); }

SmallVector<Value> SignsOp::decompose(OpBuilder &b) {
  Location loc = getLoc();
  RankedTensorType type = tensor(getY()), words = tensor(getBits()).clone(b.getI32Type());
  Expr like = expr(b, loc, numbered(b, loc, type));
  Expr byte = like.with(arith::ExtUIOp::create(b, loc, words, getBits())).to(like.v, /*rows=*/true);
  Expr bit = combine<arith::AndIOp>(combine<arith::ShRUIOp>(byte, like), like.constant(1));
  Expr scale = like.with(getScale()).to(getY(), /*rows=*/true);
  Expr number = scale.with(arith::SIToFPOp::create(b, loc, type, bit.v));
  return {select(greater(number, 0), scale, -1.0 * scale).v};
}

//===--- sum_signs ----------------------------------------------------------===//

ShardingRule SumSignsOp::getShardingRule() {
  std::string rows, kept;
  for (int64_t dim = 0; dim < tensor(getScale()).getRank(); ++dim) {
    std::string index = "i" + std::to_string(dim);
    rows += index + (dim == int64_t(getDim()) ? "! " : " ");
    if (dim != int64_t(getDim()))
      kept += index + " ";
  }
  return ruleOf(*this, rows + "q, ~" + rows + "-> " + kept + "q k!");
}

LogicalResult SumSignsOp::verify() { return verifySigns(*this, getBits(), getScale(), getY(), int64_t(getDim())); }
