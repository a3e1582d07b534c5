//===- TrainBlocks.cpp - 8-bit states in blocks -----------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// Kernels compute codes and numbers by arithmetic, as processors look up tables slowly. With w cells in decade i,
// which ends at P = 10^(i-6), cells counted from w on make one count over all decades: cell c has the
// center P (0.1 + 0.9 (c - w + 1/2) / w), which is linear in c. A code is its cell, less one without a sign.
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

//===--- shapes -------------------------------------------------------------===//

/// Whether each row of a tensor is one block.
static bool areRows(Value x, Value amax) { return tensor(amax).getRank() < tensor(x).getRank(); }

/// The op's tensors in `text`: X stands for one of elements, A for one of amaxes.
static ShardingRule blockRule(Operation *op, StringRef text, Value x, Value amax) {
  bool rows = areRows(x, amax);
  std::string full;
  for (char c : text)
    full += c == 'X' ? (rows ? "... k" : "... (b k)") : c == 'A' ? (rows ? "..." : "... b") : std::string(1, c);
  if (rows)
    return ruleOf(op, full);
  return ruleOf(op, full, {{"b", tensor(amax).getShape().back()}});
}

static LogicalResult verifyBlocks(Operation *op, Value x, Value amax) {
  ArrayRef<int64_t> shape = tensor(x).getShape(), of = tensor(amax).getShape();
  if (shape.empty())
    return op->emitOpError("needs a dimension with blocks, found ") << x.getType();
  if (of == shape.drop_back() ||
      (of.size() == shape.size() && of.drop_back() == shape.drop_back() && of.back() > 0 && shape.back() % of.back() == 0))
    return success();
  return op->emitOpError() << amax.getType() << " is not the amax of blocks of " << x.getType()
                           << ": its last dimension has to divide that of the blocks, or to be left out";
}

ShardingRule BlockAmaxOp::getShardingRule() {
  ShardingRule rule = blockRule(*this, "X -> A", getX(), getAmax());
  rule.max = true;
  return rule;
}
ShardingRule QuantizeBlocksOp::getShardingRule() { return blockRule(*this, "X, A -> X", getX(), getAmax()); }
ShardingRule DequantizeBlocksOp::getShardingRule() { return blockRule(*this, "X, A -> X", getX(), getAmax()); }

LogicalResult BlockAmaxOp::verify() {
  if (tensor(getX()).getElementType() != tensor(getAmax()).getElementType())
    return emitOpError("makes ") << getAmax().getType() << " of " << getX().getType();
  if (failed(verifyBlocks(*this, getX(), getAmax())))
    return failure();
  int64_t blocks = areRows(getX(), getAmax()) ? 1 : tensor(getAmax()).getShape().back();
  int64_t length = tensor(getX()).getShape().back() / blocks;
  if (length == int64_t(getLength()) || (blocks == 1 && length < int64_t(getLength())))
    return success();
  return emitOpError("has blocks of ") << length << " elements, not of " << int64_t(getLength());
}

/// Checks the blocks, and that `from` and `to` have one shape.
static LogicalResult verifyCodes(Operation *op, Value from, Value to, Value amax) {
  Value numbers = tensor(from).getElementType().isInteger(8) ? to : from;
  if (tensor(numbers).getElementType() != tensor(amax).getElementType())
    return op->emitOpError("has ") << numbers.getType() << " and the amax " << amax.getType() << " of another element type";
  if (tensor(from).getShape() != tensor(to).getShape())
    return op->emitOpError("changes the shape of ") << from.getType() << " to " << to.getType();
  return verifyBlocks(op, from, amax);
}
LogicalResult QuantizeBlocksOp::verify() { return verifyCodes(*this, getX(), getCodes(), getAmax()); }
LogicalResult DequantizeBlocksOp::verify() { return verifyCodes(*this, getCodes(), getX(), getAmax()); }

//===--- kernels ------------------------------------------------------------===//

namespace {
/// A decade of the map.
struct Decade {
  Decade(int i, bool isSigned) : cells(std::ldexp(1, isSigned ? i : i + 1)), end(std::pow(10, i - 6)) {}

  double center(double cell) const { return end * (0.1 + 0.9 * (cell - cells + 0.5) / cells); }
  double first() const { return center(cells); }
  double last() const { return center(2 * cells - 1); }

  double cells, end;
};
constexpr int decades = 7;
} // namespace

/// `from` of the decade in which `x` is: the last one whose `begin` is not above x.
static Expr ofDecade(Expr x, bool isSigned, llvm::function_ref<double(Decade, Decade)> begin,
                     llvm::function_ref<double(Decade)> from) {
  Expr value = x.constant(from(Decade(0, isSigned)));
  for (int i = 1; i < decades; ++i) {
    Decade before(i - 1, isSigned), decade(i, isSigned);
    value = select(atLeast(x, begin(before, decade)), x.constant(from(decade)), value);
  }
  return value;
}

/// `x` with blocks as rows, as its amax says how many there are.
static Value blocksAsRows(OpBuilder &b, Value x, Value amax) {
  if (areRows(x, amax))
    return x;
  SmallVector<int64_t> shape(tensor(amax).getShape());
  shape.push_back(tensor(x).getShape().back() / shape.back());
  return ReshapeOp::create(b, x.getLoc(), RankedTensorType::get(shape, tensor(x).getElementType()), x);
}
/// `rows` of `blocksAsRows` as `type`.
static Value asType(OpBuilder &b, Type type, Value rows) {
  return rows.getType() == type ? rows : Value(ReshapeOp::create(b, rows.getLoc(), type, rows));
}

SmallVector<Value> BlockAmaxOp::decompose(OpBuilder &b) {
  return {apply<math::AbsFOp>(expr(b, getLoc(), blocksAsRows(b, getX(), getAmax()))).overLast(ReduceKind::Max).v};
}

SmallVector<Value> QuantizeBlocksOp::decompose(OpBuilder &b) {
  bool isSigned = getIsSigned();
  Expr x = expr(b, getLoc(), blocksAsRows(b, getX(), getAmax()));
  Expr y = apply<math::AbsFOp>(x) / x.with(getAmax()).to(x.v, /*rows=*/true);
  auto middle = [](Decade before, Decade decade) { return (before.last() + decade.first()) / 2; };
  auto pick = [&](llvm::function_ref<double(Decade)> from) { return ofDecade(y, isSigned, middle, from); };
  Expr perUnit = pick([](Decade decade) { return decade.cells / (0.9 * decade.end); });
  Expr cells = pick([](Decade decade) { return decade.cells; });
  Expr cell = minimum(y * perUnit + cells * (8.0 / 9), cells * 2.0 - y.constant(1));
  Decade lowest(0, isSigned), highest(decades - 1, isSigned);
  cell = select(atLeast(y, lowest.first() / 2), cell, y.constant(lowest.cells - 1));
  Expr isMost = atLeast(y, (highest.last() + 1) / 2), isNegative = greater(x.constant(0), x);
  auto words = RankedTensorType::get(tensor(x.v).getShape(), b.getI32Type());
  Expr number = x.with(arith::FPToSIOp::create(b, getLoc(), words, cell.v));
  // The most negative number of a block is not -1 but the one beside it.
  Expr most = number.constant(2 * highest.cells);
  if (isSigned) {
    Expr negative = number.with(arith::SubIOp::create(b, getLoc(), number.constant(0).v, number.v));
    number = select(isNegative, negative, select(isMost, most, number));
  } else {
    number = select(isMost, most, number);
    number = number.with(arith::SubIOp::create(b, getLoc(), number.v, number.constant(1).v));
  }
  auto bytes = RankedTensorType::get(words.getShape(), b.getI8Type());
  return {asType(b, getCodes().getType(), arith::TruncIOp::create(b, getLoc(), bytes, number.v))};
}

SmallVector<Value> DequantizeBlocksOp::decompose(OpBuilder &b) {
  bool isSigned = getIsSigned();
  Expr code = expr(b, getLoc(), blocksAsRows(b, getCodes(), getAmax()));
  auto words = RankedTensorType::get(tensor(code.v).getShape(), b.getI32Type());
  Expr number = code.with(arith::ExtSIOp::create(b, getLoc(), words, code.v));
  Expr isNegative = number.with(
      arith::CmpIOp::create(b, getLoc(), arith::CmpIPredicate::slt, number.v, number.constant(0).v));
  if (isSigned) {
    Expr positive = number.with(arith::SubIOp::create(b, getLoc(), number.constant(0).v, number.v));
    number = select(isNegative, positive, number);
  } else {
    number = number.with(arith::AndIOp::create(b, getLoc(), number.v, number.constant(255).v));
    number = number.with(arith::AddIOp::create(b, getLoc(), number.v, number.constant(1).v));
  }
  auto numbers = RankedTensorType::get(words.getShape(), tensor(getX()).getElementType());
  Expr cell = number.with(arith::SIToFPOp::create(b, getLoc(), numbers, number.v));
  auto first = [](Decade, Decade decade) { return decade.cells; };
  auto pick = [&](llvm::function_ref<double(Decade)> from) { return ofDecade(cell, isSigned, first, from); };
  Expr width = pick([](Decade decade) { return 0.9 * decade.end / decade.cells; });
  Expr atZero = pick([](Decade decade) { return decade.center(0); });
  Expr size = cell * width + atZero;
  size = select(atLeast(cell, Decade(0, isSigned).cells), size, cell.constant(0));
  if (isSigned)
    size = select(isNegative, -1.0 * size, size);
  size = select(atLeast(cell, 2 * Decade(decades - 1, isSigned).cells), cell.constant(1), size);
  return {asType(b, getX().getType(), (size * size.with(getAmax()).to(size.v, /*rows=*/true)).v)};
}
