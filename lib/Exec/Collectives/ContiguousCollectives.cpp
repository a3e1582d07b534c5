//===- ContiguousCollectives.cpp - exec-contiguous-collectives --------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Exec/Passes.h"
#include "NarrowReductions.h"

#include "Dist/Dist.h"
#include "Exec/Exec.h"
#include "Train/TensorType.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::exec;
using train::tensor;

namespace meshwright::exec {
#define GEN_PASS_DEF_EXECCONTIGUOUSCOLLECTIVES
#include "Exec/Passes.h.inc"
} // namespace meshwright::exec

/// The elements of `type` before dimension `dim`, and from there on.
static int64_t outer(RankedTensorType type, int64_t dim) {
  return llvm::product_of(type.getShape().take_front(dim));
}
static int64_t inner(RankedTensorType type, int64_t dim) {
  return llvm::product_of(type.getShape().drop_front(dim));
}

namespace {
/// Makes what one op needs, in front of it.
class Rewriter {
public:
  explicit Rewriter(Operation *op) : b(op), loc(op->getLoc()) {}

  Value reshape(Value x, ArrayRef<int64_t> shape) {
    auto type = RankedTensorType::get(shape, tensor(x).getElementType());
    return x.getType() == type ? x : train::ReshapeOp::create(b, loc, type, x).getResult();
  }
  /// [a, n k] to [n, a, k]: the n parts of each row, part by part.
  Value pack(Value x, int64_t a, int64_t n, int64_t k) {
    return train::TransposeBlocksOp::create(b, loc, reshape(x, {a, n, k}));
  }
  /// [n, a, k] to [a, n k], of the shape `shape`.
  Value unpack(Value x, int64_t n, int64_t a, int64_t k, ArrayRef<int64_t> shape) {
    return reshape(train::TransposeBlocksOp::create(b, loc, reshape(x, {n, a, k})), shape);
  }

  OpBuilder b;
  Location loc;
};
} // namespace

/// x: [a, k] to y: [a, n k]: gathered part after part, then put together by rows.
/// x: [a, n k] to y: [a, k]: laid out part after part first.
static void rewrite(dist::CollectiveOpInterface op) {
  SmallVector<int64_t> dims = op.getGrowingDims();
  bool grows = !dims.empty();
  if (!grows)
    dims = op.getShrinkingDims();
  Rewriter r(op);
  SmallVector<Value> xs(op->getOperands());
  SmallVector<Type> types(op->getResultTypes());
  SmallVector<int64_t> rows(dims.size(), 1);
  for (auto [i, dim] : llvm::enumerate(dims)) {
    auto x = tensor(op->getOperand(i)), y = tensor(op->getResult(i));
    int64_t a = outer(x, dim), k = inner(grows ? x : y, dim), n = inner(grows ? y : x, dim) / k;
    if (a == 1 || n == 1)
      continue;
    xs[i] = grows ? r.reshape(xs[i], {1, a, k}) : r.pack(xs[i], a, n, k);
    types[i] = RankedTensorType::get({grows ? n : 1, a, k}, x.getElementType());
    dim = 0;
    rows[i] = a;
  }
  if (llvm::all_of(rows, [](int64_t a) { return a == 1; }))
    return;
  Operation *parts = r.b.clone(*op);
  parts->setDiscardableAttrs(r.b.getDictionaryAttr({}));
  parts->setOperands(xs);
  if (parts->hasAttr("dims"))
    parts->setAttr("dims", r.b.getDenseI64ArrayAttr(dims));
  else
    parts->setAttr("dim", r.b.getI64IntegerAttr(dims.front()));
  for (size_t i = 0; i < rows.size(); ++i) {
    OpResult part = parts->getResult(i), y = op->getResult(i);
    part.setType(types[i]);
    ArrayRef<int64_t> shape = tensor(y).getShape();
    y.replaceAllUsesWith(grows && rows[i] > 1 ? r.unpack(part, tensor(part).getDimSize(0), rows[i],
                                                         tensor(part).getDimSize(2), shape)
                                              : r.reshape(part, shape));
  }
  op.erase();
}

/// Split along one dimension and concatenated along another: both in the terms of
/// n blocks, [n, 1, elements], that are swapped.
static void rewrite(dist::AllToAllOp op) {
  auto x = tensor(op.getX()), y = tensor(op.getY());
  int64_t split = op.getSplit(), concat = op.getConcat();
  int64_t n = x.getDimSize(split) / y.getDimSize(split), block = x.getNumElements() / n;
  if (n == 1 || (outer(x, split) == 1 && outer(y, concat) == 1))
    return;
  Rewriter r(op);
  Value parts = op.getX();
  if (int64_t a = outer(x, split); a > 1)
    parts = r.pack(parts, a, n, block / a);
  parts = r.reshape(parts, {n, 1, block});
  Value moved =
      dist::AllToAllOp::create(r.b, r.loc, RankedTensorType::get({1, n, block}, x.getElementType()),
                               parts, 0, 1, op.getGroup());
  if (int64_t a = outer(y, concat); a > 1)
    moved = r.unpack(moved, n, a, block / a, y.getShape());
  op.replaceAllUsesWith(r.reshape(moved, y.getShape()));
  op.erase();
}

/// A part that is contiguous becomes a window of memory later; one inside rows is
/// copied out by a kernel.
static void rewrite(dist::SliceOp op) {
  auto x = tensor(op.getX()), y = tensor(op.getY());
  int64_t dim = op.getDim();
  if (outer(x, dim) == 1)
    return;
  Rewriter r(op);
  Value begin = dist::OffsetOp::create(r.b, r.loc, y.getDimSize(dim), op.getGroup(), op.getShift());
  op.replaceAllUsesWith(
      train::DynamicSliceOp::create(r.b, r.loc, y, op.getX(), begin, dim).getResult());
  op.erase();
}

/// Parts one after the other, then put together by rows.
static void rewrite(dist::ConcatOp op) {
  auto x = tensor(op.getXs().front()), y = tensor(op.getY());
  int64_t dim = op.getDim(), a = outer(x, dim), k = inner(x, dim), n = op.getXs().size();
  if (a == 1 || n == 1)
    return;
  Rewriter r(op);
  SmallVector<Value> xs = llvm::map_to_vector(op.getXs(), [&](Value part) {
    return r.reshape(part, {1, a, k});
  });
  Value parts = dist::ConcatOp::create(r.b, r.loc, RankedTensorType::get({n, a, k}, x.getElementType()),
                                       xs, 0, op.getGroup());
  op.replaceAllUsesWith(r.unpack(parts, n, a, k, y.getShape()));
  op.erase();
}

namespace {
struct ExecContiguousCollectives
    : exec::impl::ExecContiguousCollectivesBase<ExecContiguousCollectives> {
  void runOnModule() override {
    if (failed(narrowReductions(getOperation())))
      return signalPassFailure();
    getOperation().walk([](Operation *op) {
      llvm::TypeSwitch<Operation *>(op)
          .Case<dist::AllToAllOp, dist::SliceOp, dist::ConcatOp, dist::CollectiveOpInterface>(
              [](auto moving) { rewrite(moving); });
    });
  }
};
} // namespace
