//===- NarrowScatter.cpp - rows added to a narrow tensor --------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "NarrowScatter.h"

#include "Train/Train.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace meshwright;

namespace {
/// truncf(scatter_rows x, ids init extf(start)).
struct SumEqualIdsFirst : OpRewritePattern<arith::TruncFOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(arith::TruncFOp op, PatternRewriter &b) const override;
};

/// Values of one shape, that of the ids.
struct PerId {
  PerId(train::ScatterRowsOp scatter, OpBuilder &b)
      : b(b), loc(scatter.getLoc()), ids(scatter.getIds()),
        type(cast<RankedTensorType>(ids.getType())) {}

  Value iota(RankedTensorType type, int64_t dim) {
    return train::IotaOp::create(b, loc, type, dim);
  }
  Value constant(RankedTensorType type, double value) {
    Attribute element = isa<FloatType>(type.getElementType())
                            ? Attribute(b.getFloatAttr(type.getElementType(), value))
                            : Attribute(b.getIntegerAttr(type.getElementType(), int64_t(value)));
    return arith::ConstantOp::create(b, loc, DenseElementsAttr::get(type, element));
  }
  /// The number of an element in row-major order, of tensors that end with the ids' dimensions.
  Value numbers(RankedTensorType of);
  /// The number of the last id that is the same.
  Value lastEqual();

  OpBuilder &b;
  Location loc;
  Value ids;
  RankedTensorType type;
};
} // namespace

Value PerId::numbers(RankedTensorType of) {
  Value sum;
  int64_t outer = of.getRank() - type.getRank(), stride = 1;
  for (int64_t dim = type.getRank() - 1; dim >= 0; stride *= type.getDimSize(dim--)) {
    Value index = iota(of, outer + dim);
    if (stride != 1)
      index = arith::MulIOp::create(b, loc, index, constant(of, double(stride)));
    sum = sum ? Value(arith::AddIOp::create(b, loc, sum, index)) : index;
  }
  return sum;
}

Value PerId::lastEqual() {
  int64_t rank = type.getRank();
  SmallVector<int64_t> shape(type.getShape());
  llvm::append_range(shape, type.getShape());
  auto pairs = RankedTensorType::get(shape, type.getElementType());
  auto floats = pairs.clone(b.getF32Type());
  auto along = [&](int64_t first) -> Value {
    return train::BroadcastOp::create(b, loc, pairs, ids,
                                      llvm::to_vector(llvm::seq<int64_t>(first, first + rank)));
  };
  Value same = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, along(rank), along(0));
  // Reductions are of floats, which hold these numbers exactly.
  Value number = arith::SIToFPOp::create(b, loc, floats, numbers(pairs));
  Value last = arith::SelectOp::create(b, loc, same, number, constant(floats, -1));
  for (int64_t dim = 2 * rank - 1; dim >= rank; --dim)
    last = train::ReduceOp::create(b, loc, train::ReduceKind::Max, last, ArrayRef<int64_t>{dim});
  return arith::FPToSIOp::create(b, loc, type, last);
}

/// Whether sums of equal ids take less memory than all rows of the target: for each id a row, two
/// numbers, and what has been found among others when some of their dimensions are reduced.
static bool takesLess(train::ScatterRowsOp scatter) {
  auto ids = cast<RankedTensorType>(scatter.getIds().getType());
  auto target = cast<RankedTensorType>(scatter.getType());
  constexpr int64_t exactInF32 = int64_t(1) << 24;
  int64_t count = ids.getNumElements();
  if (ids.getRank() == 0 || target.getRank() != 2 || count == 0 || count > exactInF32)
    return false;
  int64_t found = 0, left = count;
  for (int64_t size : llvm::reverse(ids.getShape().drop_front())) {
    left /= size;
    found += left;
  }
  return count * (target.getDimSize(1) + 2 + found) < target.getNumElements();
}

LogicalResult SumEqualIdsFirst::matchAndRewrite(arith::TruncFOp op, PatternRewriter &b) const {
  auto scatter = op.getIn().getDefiningOp<train::ScatterRowsOp>();
  if (!scatter || !scatter->hasOneUse() || !takesLess(scatter))
    return failure();
  Value start = scatter.getInit();
  if (start) {
    auto extended = start.getDefiningOp<arith::ExtFOp>();
    if (!extended || extended.getIn().getType() != op.getType())
      return failure();
    start = extended.getIn();
  }
  PerId of(scatter, b);
  auto target = cast<RankedTensorType>(scatter.getType());
  Value last = of.lastEqual(), number = of.numbers(of.type);
  auto sumsType = RankedTensorType::get({of.type.getNumElements(), target.getDimSize(1)},
                                        target.getElementType());
  Value sums =
      train::ScatterRowsOp::create(b, of.loc, sumsType, scatter.getX(), last, /*init=*/Value());
  // Of equal ids one alone adds their sum, so that it is rounded once.
  Value adds = arith::CmpIOp::create(b, of.loc, arith::CmpIPredicate::eq, last, number);
  Value ids = arith::SelectOp::create(b, of.loc, adds, of.ids, of.constant(of.type, -1));
  Value rows = train::GatherRowsOp::create(b, of.loc, scatter.getX().getType(), sums, number);
  b.replaceOpWithNewOp<train::ScatterRowsOp>(op, op.getType(), rows, ids, start);
  return success();
}

void exec::populateNarrowScatterPatterns(RewritePatternSet &patterns) {
  patterns.add<SumEqualIdsFirst>(patterns.getContext());
}
