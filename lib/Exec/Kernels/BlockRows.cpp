//===- BlockRows.cpp - blocks of 8-bit states as rows -----------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "BlockRows.h"
#include "RowSpace.h"

#include "Train/Quantize.h"
#include "Train/TensorType.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::exec;
using train::tensor;

static Value reshaped(OpBuilder &b, Value value, ArrayRef<int64_t> shape) {
  auto type = RankedTensorType::get(shape, tensor(value).getElementType());
  return b.createOrFold<train::ReshapeOp>(value.getLoc(), type, value);
}

/// The shape with a row for each block, if `op` has several blocks per row.
static std::optional<SmallVector<int64_t>> rowsOfBlocks(Operation *op) {
  Value x, amax;
  if (auto of = dyn_cast<train::BlockAmaxOp>(op))
    x = of.getX(), amax = of.getAmax();
  else if (auto of = dyn_cast<train::QuantizeBlocksOp>(op))
    x = of.getX(), amax = of.getAmax();
  else if (auto of = dyn_cast<train::DequantizeBlocksOp>(op))
    x = of.getX(), amax = of.getAmax();
  if (!x || tensor(x).getRank() != tensor(amax).getRank())
    return std::nullopt;
  SmallVector<int64_t> shape(tensor(amax).getShape());
  shape.push_back(tensor(x).getShape().back() / shape.back());
  return shape;
}

/// Adds to a list of all elements, as an embedding's gradient to rows of one element.
static void addToList(train::DensifyOp densify) {
  OpBuilder b(densify);
  Location loc = densify.getLoc();
  Value values = densify.getValues(), y = densify.getY();
  int64_t count = tensor(values).getNumElements(), size = tensor(y).getNumElements();
  Value places = train::PlaceIdsOp::create(b, loc, densify.getIds(), tensor(y).getShape().back(), densify.getDim());
  auto list = RankedTensorType::get({size, 1}, tensor(y).getElementType());
  Value sums = train::EmbeddingGradOp::create(b, loc, list, reshaped(b, values, {count, 1}), reshaped(b, places, {count}),
                                              size, Value());
  y.replaceAllUsesWith(reshaped(b, sums, tensor(y).getShape()));
  densify.erase();
}

/// Adds what is a number for each bit by then.
static void addSigns(train::SumSignsOp sum) {
  OpBuilder b(sum);
  SmallVector<int64_t> shape(tensor(sum.getBits()).getShape());
  shape.push_back(tensor(sum.getY()).getShape().back());
  Value signs = train::SignsOp::create(b, sum.getLoc(), tensor(sum.getY()).clone(shape), sum.getBits(), sum.getScale());
  Value added = train::ReduceOp::create(b, sum.getLoc(), train::ReduceKind::Sum, signs, {int64_t(sum.getDim())});
  sum.getY().replaceAllUsesWith(added);
  sum.erase();
}

namespace {
class RowMaker {
public:
  void run(Block &block) {
    for (Operation &op : llvm::make_early_inc_range(block)) {
      std::optional<SmallVector<int64_t>> rows = rowsOfBlocks(&op);
      if (!rows)
        rows = rowsOfElements(&op);
      if (rows)
        runOnRows(&op, *rows);
    }
  }

private:
  /// Whether `op` depends on indices along the last dimension, which rows of blocks do not have.
  static bool dependsOnColumns(Operation *op) {
    auto indexed = dyn_cast<train::IndexedOpInterface>(op);
    return indexed && llvm::any_of(indexed.getIndexedDims(), [](auto of) {
             return of.second + 1 == tensor(of.first).getRank();
           });
  }

  /// The shape of which `op`, if it is element-wise, reads an operand in another one.
  std::optional<SmallVector<int64_t>> rowsOfElements(Operation *op) const {
    if (!isa<train::KernelOpInterface>(op) || dependsOnColumns(op))
      return std::nullopt;
    auto made = llvm::find_if(op->getOperands(), [&](Value operand) { return wholes.contains(operand); });
    if (made == op->operand_end())
      return std::nullopt;
    RowSpace space(op);
    auto isAlike = [](Extent extent) { return extent == Extent::Full || extent == Extent::Scalar; };
    if (!llvm::all_of(space.operands, isAlike) || !llvm::all_of(space.results, isAlike))
      return std::nullopt;
    return SmallVector<int64_t>(tensor((*made).getDefiningOp()->getOperand(0)).getShape());
  }

  /// Runs `op` on tensors of shape `rows` in place of their own.
  void runOnRows(Operation *op, ArrayRef<int64_t> rows) {
    OpBuilder b(op);
    auto isWhole = [&](Value value) {
      return tensor(value).getRank() + 1 == int64_t(rows.size()) &&
             tensor(value).getNumElements() == ShapedType::getNumElements(rows);
    };
    Operation *onRows = op->clone();
    for (OpOperand &operand : onRows->getOpOperands())
      if (Value value = operand.get(); isWhole(value)) {
        Value &known = asRows[value];
        if (!known)
          known = reshaped(b, value, rows);
        operand.set(known);
      }
    for (OpResult result : onRows->getResults())
      if (isWhole(result))
        result.setType(RankedTensorType::get(rows, tensor(result).getElementType()));
    b.insert(onRows);
    for (auto [result, of] : llvm::zip_equal(onRows->getResults(), op->getResults())) {
      Value whole = reshaped(b, result, tensor(of).getShape());
      if (whole != result)
        wholes.insert(whole);
      of.replaceAllUsesWith(whole);
    }
    op->erase();
  }

  DenseSet<Value> wholes;        ///< results in their own shape
  DenseMap<Value, Value> asRows; ///< values with a row for each block; a value has one length of blocks
};
} // namespace

void exec::makeRowsOfBlocks(Block &block) {
  for (auto densify : llvm::make_early_inc_range(block.getOps<train::DensifyOp>()))
    addToList(densify);
  for (auto sum : llvm::make_early_inc_range(block.getOps<train::SumSignsOp>()))
    addSigns(sum);
  RowMaker().run(block);
}
