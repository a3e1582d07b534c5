//===- TrainShapes.cpp - ops that move or add elements, or change shapes -----===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Train/Redistribution.h"
#include "Train/TensorType.h"
#include "Train/Train.h"

#include <cmath>
#include <limits>

using namespace mlir;
using namespace meshwright;
using namespace meshwright::train;

ShardingRule ReshapeOp::getShardingRule() {
  return reshapeRule(tensor(getX()).getShape(), tensor(getY()).getShape());
}

double ReshapeOp::getFlops() { return 0; }

LogicalResult ReshapeOp::verify() {
  if (tensor(getX()).getNumElements() != tensor(getY()).getNumElements())
    return emitOpError("has ") << tensor(getX()).getNumElements() << " elements in and "
                               << tensor(getY()).getNumElements() << " out";
  if (tensor(getX()).getElementType() != tensor(getY()).getElementType())
    return emitOpError("makes elements of ") << tensor(getX()).getElementType() << " ones of " << tensor(getY()).getElementType()
                                             << "; train.cast does that";
  return success();
}

OpFoldResult ReshapeOp::fold(FoldAdaptor) {
  if (getX().getType() == getType())
    return getX();
  if (auto inner = getX().getDefiningOp<ReshapeOp>())
    if (inner.getX().getType() == getType())
      return inner.getX();
  return {};
}

/// A rule whose dimension `dim` differs between operand and result.
static ShardingRule rowsRule(Operation *op, int64_t dim) {
  ShardingRule rule = elementwiseRuleOf(op, true, false);
  auto in = cast<RankedTensorType>(op->getOperand(0).getType());
  rule.factors[dim].whole = true;
  rule.factors.push_back({"rows", in.getDimSize(dim), true, true});
  rule.operands[0].dims[dim] = {unsigned(rule.factors.size() - 1)};
  return rule;
}

bool SliceOp::movesElements() { return true; }
bool PadOp::movesElements() { return true; }
bool BroadcastOp::movesElements() { return true; }
bool DynamicSliceOp::movesElements() { return true; }
bool TransposeBlocksOp::movesElements() { return true; }

ShardingRule SliceOp::getShardingRule() { return rowsRule(*this, getDim()); }
ShardingRule PadOp::getShardingRule() {
  ShardingRule rule = rowsRule(*this, getDim());
  rule.operands[0].linear = getValue() == 0;
  return rule;
}
bool SliceOp::isPrefix() {
  return getFrom() == 0 && llvm::all_of(tensor(getX()).getShape().take_front(getDim()),
                                        [](int64_t size) { return size == 1; });
}
void SliceOp::updateSizes() { setRows(tensor(getY()).getDimSize(getDim())); }
void PadOp::updateSizes() { setRows(tensor(getY()).getDimSize(getDim())); }

static void inferRows(Value x, int64_t rows, int64_t dim, SmallVectorImpl<Type> &types) {
  auto type = cast<RankedTensorType>(x.getType());
  SmallVector<int64_t> shape(type.getShape());
  if (dim >= 0 && dim < int64_t(shape.size()))
    shape[dim] = rows;
  types.push_back(withShape(type, shape));
}

LogicalResult SliceOp::inferReturnTypes(MLIRContext *, std::optional<Location>, Adaptor adaptor,
                                        SmallVectorImpl<Type> &types) {
  inferRows(adaptor.getX(), adaptor.getRows(), adaptor.getDim(), types);
  return success();
}
LogicalResult PadOp::inferReturnTypes(MLIRContext *, std::optional<Location>, Adaptor adaptor,
                                      SmallVectorImpl<Type> &types) {
  inferRows(adaptor.getX(), adaptor.getRows(), adaptor.getDim(), types);
  return success();
}

template <typename Op> static LogicalResult verifyDim(Op op) {
  int64_t rank = tensor(op.getX()).getRank(), dim = op.getDim();
  if (dim < 0 || dim >= rank)
    return op.emitOpError("has no dimension ") << dim << " in " << op.getX().getType();
  return success();
}
static std::string fromText(int64_t from) {
  return from ? " from row " + std::to_string(from) : "";
}
LogicalResult SliceOp::verify() {
  if (failed(verifyDim(*this)))
    return failure();
  if (int64_t(getFrom()) < 0 || int64_t(getRows()) < 0 ||
      int64_t(getRows()) > tensor(getX()).getDimSize(getDim()) - int64_t(getFrom()))
    return emitOpError("takes ") << getRows() << " rows" << fromText(getFrom()) << " of "
                                 << getX().getType();
  if (redistributes(*this) && int64_t(getRows()) != tensor(getX()).getDimSize(getDim()))
    return emitOpError("has ") << redistributesAttr << ", but takes " << getRows() << " rows of "
                               << getX().getType() << "; all are to be taken";
  return success();
}
LogicalResult PadOp::verify() {
  if (failed(verifyDim(*this)))
    return failure();
  if (int64_t(getFrom()) < 0 ||
      int64_t(getRows()) - int64_t(getFrom()) < tensor(getX()).getDimSize(getDim()))
    return emitOpError("pads ") << getX().getType() << fromText(getFrom())
                                << " to fewer rows: " << getRows();
  return success();
}
OpFoldResult SliceOp::fold(FoldAdaptor) {
  if (redistributes(*this))
    return {};
  if (getX().getType() == getType())
    return getX();
  auto pad = getX().getDefiningOp<PadOp>();
  if (pad && pad.getDim() == getDim() && pad.getFrom() == getFrom() &&
      pad.getX().getType() == getType())
    return pad.getX();
  return {};
}
OpFoldResult PadOp::fold(FoldAdaptor) {
  return getX().getType() == getType() ? OpFoldResult(getX()) : OpFoldResult();
}

ShardingRule DynamicSliceOp::getShardingRule() {
  ShardingRule rule = elementwiseRule(tensor(getY()).getShape(), {}, false, false);
  TensorFactors x = rule.results[0];
  unsigned split = x.dims[getDim()][0];
  rule.factors[split].whole = true;
  rule.factors.push_back({"n", tensor(getX()).getDimSize(getDim()), true, true});
  x.dims[getDim()] = {unsigned(rule.factors.size() - 1)};
  rule.operands = {x, TensorFactors()};
  return rule;
}

LogicalResult DynamicSliceOp::verify() {
  auto x = tensor(getX()), y = tensor(getY());
  int64_t dim = getDim();
  if (dim < 0 || dim >= x.getRank())
    return emitOpError("has no dimension ") << dim << " in " << x;
  SmallVector<int64_t> shape(x.getShape());
  if (y.getRank() == x.getRank())
    shape[dim] = std::min(y.getDimSize(dim), shape[dim]);
  if (y.getElementType() != x.getElementType() || y.getShape() != ArrayRef(shape))
    return emitOpError("along dimension ") << dim << " cannot make " << y << " of " << x;
  return success();
}

/// The rule of dimensions `dims` of the wide tensor missing in the narrow one.
static ShardingRule dropRule(ArrayRef<int64_t> wide, ArrayRef<int64_t> dims, bool wideIsOperand) {
  ShardingRule rule = elementwiseRule(wide, {}, false, false);
  TensorFactors narrow, full = rule.results[0];
  for (auto [d, dim] : llvm::enumerate(full.dims))
    if (!llvm::is_contained(dims, int64_t(d)))
      narrow.dims.push_back(dim);
  rule.operands = {wideIsOperand ? full : narrow};
  rule.results = {wideIsOperand ? narrow : full};
  rule.operands[0].linear = true;
  rule.markReduced();
  return rule;
}

ShardingRule ReduceOp::getShardingRule() {
  ShardingRule rule = dropRule(tensor(getX()).getShape(), getDims(), true);
  rule.max = getKind() == ReduceKind::Max;
  rule.operands[0].linear = !rule.max;
  return rule;
}

/// `dims` ascending and inside `rank`.
static bool validDims(ArrayRef<int64_t> dims, int64_t rank) {
  for (auto [i, d] : llvm::enumerate(dims))
    if (d < 0 || d >= rank || (i && dims[i - 1] >= d))
      return false;
  return true;
}

LogicalResult ReduceOp::inferReturnTypes(MLIRContext *, std::optional<Location> location,
                                         Adaptor adaptor, SmallVectorImpl<Type> &types) {
  auto type = cast<RankedTensorType>(adaptor.getX().getType());
  SmallVector<int64_t> shape;
  for (auto [d, size] : llvm::enumerate(type.getShape()))
    if (!llvm::is_contained(adaptor.getDims(), int64_t(d)))
      shape.push_back(size);
  types.push_back(withShape(type, shape));
  return success();
}

LogicalResult ReduceOp::verify() {
  if (!validDims(getDims(), tensor(getX()).getRank()))
    return emitOpError("dims must be ascending and below ") << tensor(getX()).getRank();
  return success();
}

ShardingRule BroadcastOp::getShardingRule() {
  return dropRule(tensor(getY()).getShape(), getDims(), false);
}

LogicalResult BroadcastOp::verify() {
  auto narrow = tensor(getX()), wide = tensor(getY());
  SmallVector<int64_t> kept;
  for (auto [d, size] : llvm::enumerate(wide.getShape()))
    if (!llvm::is_contained(getDims(), int64_t(d)))
      kept.push_back(size);
  if (!validDims(getDims(), wide.getRank()) || narrow.getShape() != ArrayRef(kept) ||
      narrow.getElementType() != wide.getElementType())
    return emitOpError("cannot make ") << getY().getType() << " of " << getX().getType();
  return success();
}

LogicalResult GatherRowsOp::verify() {
  auto table = tensor(getTable()), ids = tensor(getIds()), y = tensor(getY());
  int64_t inner = y.getRank() - ids.getRank();
  if (inner < 0 || inner >= table.getRank() ||
      y.getShape().take_front(ids.getRank()) != ids.getShape() ||
      y.getShape().take_back(inner) != table.getShape().take_back(inner) ||
      y.getElementType() != table.getElementType())
    return emitOpError("cannot make ")
           << y << " of rows of " << table << " that " << ids << " says";
  return success();
}

LogicalResult IotaOp::verify() {
  if (int64_t(getDim()) < 0 || int64_t(getDim()) >= tensor(getY()).getRank())
    return emitOpError("has no dimension ") << int64_t(getDim()) << " in " << getY().getType();
  return success();
}

LogicalResult ScatterRowsOp::verify() {
  auto x = tensor(getX()), ids = tensor(getIds()), y = tensor(getY());
  if (y.getRank() != 2 || x.getRank() != ids.getRank() + 1 ||
      x.getShape().drop_back() != ids.getShape() || x.getShape().back() != y.getDimSize(1))
    return emitOpError("cannot add rows of ") << x << " to those of " << y << " that " << ids << " says";
  if (getInit() && !equalButEncoding({getInit().getType()}, {y}))
    return emitOpError("init is ") << getInit().getType() << " but the result is " << y;
  return success();
}

LogicalResult RotateHalfOp::verify() {
  auto x = tensor(getX());
  if (x.getRank() == 0 || x.getShape().back() % 2)
    return emitOpError("needs an even last dimension, found ") << x;
  return success();
}

LogicalResult DuplicateHalfOp::verify() {
  auto x = tensor(getX()), y = tensor(getY());
  if (x.getRank() == 0 || y.getRank() != x.getRank() || x.getElementType() != y.getElementType() ||
      x.getShape().drop_back() != y.getShape().drop_back() ||
      y.getShape().back() != 2 * x.getShape().back())
    return emitOpError("cannot make ") << y << " of " << x << " twice";
  return success();
}

ShardingRule FillOp::getShardingRule() { return elementwiseRuleOf(*this, false, false); }

ShardingRule SquareSumOp::getShardingRule() {
  SmallVector<int64_t> all = llvm::to_vector(llvm::seq<int64_t>(0, tensor(getX()).getRank()));
  ShardingRule rule = dropRule(tensor(getX()).getShape(), all, true);
  rule.operands[0].linear = false;
  return rule;
}

LogicalResult SquareSumOp::inferReturnTypes(MLIRContext *context, std::optional<Location>, Adaptor,
                                            SmallVectorImpl<Type> &types) {
  types.push_back(RankedTensorType::get({}, Float32Type::get(context)));
  return success();
}

//===--- buckets of distances ---------------------------------------------===//

ShardingRule DistanceBucketsOp::getShardingRule() {
  ShardingRule rule;
  rule.factors.push_back({"n", tensor(getY()).getDimSize(0), true, true});
  rule.results.emplace_back().dims.push_back({0});
  return rule;
}

LogicalResult DistanceBucketsOp::verify() {
  // The logarithm of max_distance over the distances that have a bucket of their own divides.
  int64_t buckets = getBuckets(), alone = getCausal() ? buckets / 2 : buckets / 4;
  if (buckets < 4 || buckets > std::numeric_limits<int32_t>::max())
    return emitOpError("needs 4 buckets or more, found ") << buckets;
  if (int64_t(getMaxDistance()) <= alone)
    return emitOpError("needs a largest distance above ")
           << alone << ", that up to which each of its " << buckets
           << " buckets has one distance, found " << int64_t(getMaxDistance());
  int64_t queries = getQueries(), keys = getKeys();
  if (queries < 1 || keys < 1 || tensor(getY()).getShape() != ArrayRef<int64_t>{queries + keys - 1})
    return emitOpError("gives the distances of ")
           << queries << " queries and " << keys << " keys, which " << getY().getType() << " is not";
  return success();
}

SmallVector<int32_t> DistanceBucketsOp::getNumbers() {
  int32_t all = getCausal() ? int32_t(getBuckets()) : int32_t(getBuckets()) / 2, alone = all / 2;
  SmallVector<int32_t> numbers;
  for (int64_t i = 0; i < int64_t(getQueries() + getKeys()) - 1; ++i) {
    int64_t distance = i - (int64_t(getQueries()) - 1);
    int32_t number = !getCausal() && distance > 0 ? all : 0;
    int64_t far = getCausal() ? std::max<int64_t>(-distance, 0) : std::abs(distance);
    if (far < alone) {
      number += int32_t(far);
    } else {
      float share = std::log(float(far) / float(alone)) /
                    float(std::log(double(getMaxDistance()) / double(alone)));
      // The logarithm of far distances may be beyond what an integer holds.
      number += std::min(alone + int32_t(std::min(share * float(all - alone), float(all))), all - 1);
    }
    numbers.push_back(number);
  }
  return numbers;
}
