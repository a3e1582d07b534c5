//===- TrainSparse.cpp - the few elements of a tensor that are kept ---------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Expr.h"
#include "Train/TensorType.h"

#include <cmath>

using namespace mlir;
using namespace meshwright;
using namespace meshwright::train;
using namespace meshwright::train::formula;

static RankedTensorType withLast(RankedTensorType type, int64_t length, Type element) {
  SmallVector<int64_t> shape(type.getShape());
  shape.back() = length;
  return RankedTensorType::get(shape, element);
}

//===--- sparsify -----------------------------------------------------------===//

ShardingRule SparsifyOp::getShardingRule() { return ruleOf(*this, einsumText()); }

/// Ids are columns, of rows of zeros too.
bool SparsifyOp::preservesZero(unsigned result) { return result != 1; }

LogicalResult SparsifyOp::verify() {
  RankedTensorType x = tensor(getX()), values = tensor(getValues()), ids = tensor(getIds());
  if (x.getRank() == 0)
    return emitOpError("needs rows, found ") << x;
  int64_t k = values.getRank() ? values.getShape().back() : 0, width = x.getShape().back();
  if (k < 1 || k > width)
    return emitOpError("keeps from 1 to the ") << width << " elements of a row, found " << values;
  if (values.getShape() != withLast(x, k, x.getElementType()).getShape() || ids.getShape() != values.getShape() ||
      tensor(getRest()).getShape() != x.getShape() || values.getElementType() != x.getElementType() ||
      tensor(getRest()).getElementType() != x.getElementType())
    return emitOpError("makes ") << values << ", " << ids << " and " << getRest().getType() << " of " << x
                                 << ": values and ids have a row for each of its rows, and the rest is of its type";
  return success();
}

SmallVector<Value> SparsifyOp::decompose(OpBuilder &b) {
  Location loc = getLoc();
  Expr x = expr(b, loc, getX()), size = apply<math::AbsFOp>(x);
  RankedTensorType type = tensor(getX()), kept = tensor(getValues()), ids = tensor(getIds());
  int64_t last = type.getRank() - 1, width = type.getDimSize(last);
  auto numbered = [&](RankedTensorType type) {
    Value columns = IotaOp::create(b, loc, type.clone(b.getI32Type()), last);
    return x.with(arith::SIToFPOp::create(b, loc, type, columns));
  };
  // The first element is the largest of these, and none is 0.
  Expr order = double(width) - numbered(type), place = numbered(kept);
  Expr values = place.constant(0), columns = place.constant(0);
  for (int64_t i = 0; i < kept.getDimSize(last); ++i) {
    Expr most = size.overLast(ReduceKind::Max);
    Expr candidate = select(equal(size, most.to(x.v, true)), order, x.constant(0));
    Expr first = candidate.overLast(ReduceKind::Max), isFirst = equal(order, first.to(x.v, true));
    Expr value = select(isFirst, x, x.constant(0)).overLast();
    // NaN where the largest is no finite number.
    value = value + (most - most);
    Expr isHere = equal(place, place.constant(double(i)));
    values = select(isHere, value.to(place.v, true), values);
    // Nothing is as large as NaN, which is said to be in the last column.
    Expr column = minimum(double(width) - first, first.constant(double(width - 1)));
    columns = select(isHere, column.to(place.v, true), columns);
    size = select(isFirst, x.constant(-1), size);
  }
  Expr rest = select(greater(x.constant(0), size), x.constant(0), x);
  return {values.v, arith::FPToSIOp::create(b, loc, ids, columns.v), rest.v};
}

//===--- densify ------------------------------------------------------------===//

ShardingRule DensifyOp::getShardingRule() {
  std::string rows, kept;
  for (int64_t dim = 0; dim + 1 < tensor(getValues()).getRank(); ++dim) {
    std::string index = "i" + std::to_string(dim);
    rows += index + (dim == int64_t(getDim()) ? "! " : " ");
    if (dim != int64_t(getDim()))
      kept += index + " ";
  }
  return ruleOf(*this, "~" + rows + "k!, " + rows + "k! -> " + kept + "n!");
}

LogicalResult DensifyOp::verify() {
  RankedTensorType values = tensor(getValues()), y = tensor(getY());
  int64_t rank = values.getRank(), dim = getDim();
  if (dim < 0 || dim + 1 >= rank)
    return emitOpError("adds over dimension ") << dim << " of " << values << ", which has to be one before the last";
  SmallVector<int64_t> shape(values.getShape());
  shape.erase(shape.begin() + dim);
  if (tensor(getIds()).getShape() != values.getShape() || y.getRank() + 1 != rank ||
      y.getShape().drop_back() != ArrayRef(shape).drop_back() || y.getElementType() != values.getElementType())
    return emitOpError("makes ") << y << " of " << values << " at " << getIds().getType()
                                 << ": there is an id for each value, and y lacks dimension " << dim << " and has its own last one";
  if (y.getNumElements() > INT32_MAX)
    return emitOpError("makes ") << y << " of " << y.getNumElements() << " elements; a device may have at most 2147483647";
  return success();
}

//===--- place_ids ----------------------------------------------------------===//

ShardingRule PlaceIdsOp::getShardingRule() { return ruleOf(*this, einsumText()); }

LogicalResult PlaceIdsOp::verify() {
  RankedTensorType ids = tensor(getIds());
  int64_t dim = getDim(), length = getLength();
  if (dim < 0 || dim + 1 >= ids.getRank())
    return emitOpError("counts rows without dimension ") << dim << " of " << ids << ", which has to be one before the last";
  int64_t rows = ids.getNumElements() / std::max<int64_t>(1, ids.getShape().back() * ids.getDimSize(dim));
  if (length < 1 || length > INT32_MAX || rows * length > INT32_MAX)
    return emitOpError("has ") << rows << " rows of " << length << " elements; together they may have at most 2147483647";
  return success();
}

SmallVector<Value> PlaceIdsOp::decompose(OpBuilder &b) {
  RankedTensorType type = tensor(getIds());
  Expr ids = expr(b, getLoc(), getIds()), row = ids.constant(0);
  for (int64_t dim = 0; dim + 1 < type.getRank(); ++dim)
    if (dim != int64_t(getDim())) {
      row = combine<arith::MulIOp>(row, ids.constant(double(type.getDimSize(dim))));
      row = combine<arith::AddIOp>(row, row.with(IotaOp::create(b, getLoc(), type, dim)));
    }
  return {combine<arith::AddIOp>(combine<arith::MulIOp>(row, ids.constant(double(int64_t(getLength())))), ids).v};
}
