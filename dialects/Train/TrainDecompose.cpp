//===- TrainDecompose.cpp - memory-bound ops as kernel primitives -----------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// The formulas of generated kernels, for every target: arith and math ops on
// whole tensors and train's structural primitives, in the words of Expr.h.
//
//===----------------------------------------------------------------------===//
#include "Train/Quantize.h"
#include "Train/TensorType.h"
#include "Expr.h"
#include "Optimizer.h"

#include "llvm/Support/MathExtras.h"

#include <cmath>

using namespace mlir;
using namespace meshwright;
using namespace meshwright::train;
using namespace meshwright::train::formula;

namespace {
//===--- integers, for random bits ------------------------------------------===//

Expr addI(Expr x, Expr y) { return x.with(arith::AddIOp::create(*x.b, x.loc, x.v, y.v)); }
Expr mulI(Expr x, Expr y) { return x.with(arith::MulIOp::create(*x.b, x.loc, x.v, y.v)); }
Expr operator^(Expr x, Expr y) { return x.with(arith::XOrIOp::create(*x.b, x.loc, x.v, y.v)); }
std::pair<Expr, Expr> mulWide(Expr x, uint32_t y) {
  auto op = arith::MulUIExtendedOp::create(*x.b, x.loc, x.v, x.constant(int32_t(y)).v);
  return {x.with(op.getLow()), x.with(op.getHigh())};
}

/// First two output words of Philox4x32-10, all words tensors of one shape.
std::pair<Expr, Expr> philox(Expr c0, Expr c1, Expr c2, Expr c3, Expr k0, Expr k1) {
  for (int round = 0; round < 10; ++round) {
    auto [lo0, hi0] = mulWide(c0, 0xD2511F53u);
    auto [lo1, hi1] = mulWide(c2, 0xCD9E8D57u);
    c0 = hi1 ^ c1 ^ k0;
    c1 = lo1;
    c2 = hi0 ^ c3 ^ k1;
    c3 = lo0;
    k0 = addI(k0, k0.constant(int32_t(0x9E3779B9u)));
    k1 = addI(k1, k1.constant(int32_t(0xBB67AE85u)));
  }
  return {c0, c1};
}

/// Row statistics count elements of the last dimension.
double width(Value x) { return tensor(x).getShape().back(); }
} // namespace

/// `value` in another float type of its shape.
static Value convert(OpBuilder &b, Location loc, Value value, Type element) {
  auto from = cast<FloatType>(tensor(value).getElementType()), to = cast<FloatType>(element);
  if (from == to)
    return value;
  auto step = [&](auto op, FloatType type) -> Value {
    return decltype(op)::create(b, loc, withElementType(value.getType(), type), value);
  };
  if (from.getWidth() == to.getWidth()) // bf16 and f16: through a type that holds both
    value = step(arith::ExtFOp(), Float32Type::get(b.getContext()));
  return from.getWidth() < to.getWidth() ? step(arith::ExtFOp(), to) : step(arith::TruncFOp(), to);
}

static bool isNarrow(Type type) {
  Type element = getElementTypeOrSelf(type);
  return atLeastF32(element) != element;
}

SmallVector<Value> train::decomposeInF32(KernelOpInterface op, OpBuilder &b) {
  if (op.movesElements() || (llvm::none_of(op->getOperandTypes(), isNarrow) &&
                             llvm::none_of(op->getResultTypes(), isNarrow)))
    return op.decompose(b);
  auto widened = [](Type type) -> Type {
    return withElementType(type, atLeastF32(getElementTypeOrSelf(type)));
  };
  Location loc = op->getLoc();
  Operation *wide = b.clone(*op);
  OpBuilder before(wide);
  for (OpOperand &operand : wide->getOpOperands())
    if (isNarrow(operand.get().getType()))
      operand.set(convert(before, loc, operand.get(), before.getF32Type()));
  // Quantization depends on the type that it rounds to.
  for (Value result : wide->getResults())
    if (!isa<QuantizeOp>(*op))
      result.setType(widened(result.getType()));
  SmallVector<Value> values = cast<KernelOpInterface>(wide).decompose(b);
  wide->erase();
  for (auto [value, result] : llvm::zip_equal(values, op->getResults()))
    if (isNarrow(result.getType()))
      value = convert(b, loc, value, getElementTypeOrSelf(result.getType()));
  return values;
}

//===--- embedding ----------------------------------------------------------===//

SmallVector<Value> EmbeddingOp::decompose(OpBuilder &b) {
  return {GatherRowsOp::create(b, getLoc(), getType(), getTable(), getIds())};
}

SmallVector<Value> EmbeddingGradOp::decompose(OpBuilder &b) {
  return {ScatterRowsOp::create(b, getLoc(), getType(), getDy(), getIds(), getInit())};
}

SmallVector<Value> ShiftIdsOp::decompose(OpBuilder &b) {
  Expr ids = expr(b, getLoc(), getIds());
  return {arith::SubIOp::create(b, getLoc(), ids.v, ids.with(getOffset()).to(ids.v).v)};
}

SmallVector<Value> IgnoreIdOp::decompose(OpBuilder &b) {
  Expr ids = expr(b, getLoc(), getIds());
  Expr ignored = ids.with(arith::CmpIOp::create(b, getLoc(), arith::CmpIPredicate::eq, ids.v,
                                                ids.constant(double(getId())).v));
  return {select(ignored, ids.constant(-1), ids).v};
}

//===--- normalization ------------------------------------------------------===//

SmallVector<Value> LayerNormOp::decompose(OpBuilder &b) {
  Expr x = expr(b, getLoc(), getX()), w = x.with(getWeight()), bias = x.with(getBias());
  Expr centered = x - (x.overLast() * (1 / width(x.v))).to(x.v, true);
  Expr variance = (centered * centered).overLast() * (1 / width(x.v));
  Expr scale = 1.0 / sqrt(variance + getEps().convertToDouble());
  return {(centered * scale.to(x.v, true) * w.to(x.v) + bias.to(x.v)).v};
}

SmallVector<Value> LayerNormGradOp::decompose(OpBuilder &b) {
  Expr x = expr(b, getLoc(), getX()), dy = x.with(getDy()), w = x.with(getWeight());
  double n = 1 / width(x.v);
  Expr centered = x - (x.overLast() * n).to(x.v, true);
  Expr variance = (centered * centered).overLast() * n;
  Expr scale = 1.0 / sqrt(variance + getEps().convertToDouble());
  Expr normal = centered * scale.to(x.v, true);
  Expr g = dy * w.to(x.v);
  Expr meanG = g.overLast() * n, meanGN = (g * normal).overLast() * n;
  Expr dx = (g - meanG.to(x.v, true) - normal * meanGN.to(x.v, true)) * scale.to(x.v, true);
  return {dx.v, (dy * normal).overRows().v, dy.overRows().v};
}

SmallVector<Value> RmsNormOp::decompose(OpBuilder &b) {
  Expr x = expr(b, getLoc(), getX()), w = x.with(getWeight());
  Expr scale = 1.0 / sqrt((x * x).overLast() * (1 / width(x.v)) + getEps().convertToDouble());
  return {(x * scale.to(x.v, true) * w.to(x.v)).v};
}

SmallVector<Value> RmsNormGradOp::decompose(OpBuilder &b) {
  Expr x = expr(b, getLoc(), getX()), dy = x.with(getDy()), w = x.with(getWeight());
  double n = 1 / width(x.v);
  Expr scale = 1.0 / sqrt((x * x).overLast() * n + getEps().convertToDouble());
  Expr normal = x * scale.to(x.v, true);
  Expr g = dy * w.to(x.v);
  Expr meanGN = (g * normal).overLast() * n;
  Expr dx = (g - normal * meanGN.to(x.v, true)) * scale.to(x.v, true);
  return {dx.v, (dy * normal).overRows().v};
}

//===--- rotary positions ---------------------------------------------------===//

SmallVector<Value> RopeTableOp::decompose(OpBuilder &b) {
  auto type = tensor(getCos());
  auto element = type.getElementType();
  SmallVector<Attribute> frequencies;
  for (double f : getFrequencies())
    frequencies.push_back(b.getFloatAttr(element, f));
  auto row = RankedTensorType::get({type.getShape().back()}, element);
  Value table = arith::ConstantOp::create(b, getLoc(), DenseElementsAttr::get(row, frequencies));
  Value position;
  if (getPositions()) {
    auto numbers = RankedTensorType::get(tensor(getPositions()).getShape(), element);
    Value number = arith::SIToFPOp::create(b, getLoc(), numbers, getPositions());
    SmallVector<int64_t> repeated{2};
    position = BroadcastOp::create(b, getLoc(), type, number, repeated);
  } else {
    auto ids = RankedTensorType::get(type.getShape(), b.getI32Type());
    Expr index = expr(b, getLoc(), IotaOp::create(b, getLoc(), ids, 0));
    if (getOffset())
      index = addI(index, index.with(getOffset()).to(index.v));
    position = arith::SIToFPOp::create(b, getLoc(), type, index.v);
  }
  Expr angle = expr(b, getLoc(), position) * expr(b, getLoc(), table).to(position);
  double scale = getScale().convertToDouble();
  Expr cos = apply<math::CosOp>(angle), sin = apply<math::SinOp>(angle);
  if (scale == 1.0)
    return {cos.v, sin.v};
  SmallVector<Attribute> scales;
  for (double f : getFrequencies())
    scales.push_back(b.getFloatAttr(element, f == 0 ? 1.0 : scale));
  Value scaleRow = arith::ConstantOp::create(b, getLoc(), DenseElementsAttr::get(row, scales));
  Expr factor = expr(b, getLoc(), scaleRow).to(position);
  return {(cos * factor).v, (sin * factor).v};
}

/// A power of two is exp(x ln 2).
SmallVector<Value> AlibiSlopesOp::decompose(OpBuilder &b) {
  auto type = tensor(getY());
  auto ids = RankedTensorType::get(type.getShape(), b.getI32Type());
  int64_t heads = getHeads() ? int64_t(getHeads()) : type.getDimSize(0);
  double regular = double(llvm::bit_floor(uint64_t(heads)));
  double unit = -getBias().convertToDouble() * std::log(2.0) / regular;
  Expr index = expr(b, getLoc(), IotaOp::create(b, getLoc(), ids, 0));
  if (getOffset())
    index = addI(index, index.with(getOffset()).to(index.v));
  Expr head = index.with(arith::SIToFPOp::create(b, getLoc(), type, index.v));
  Expr between = (head + (0.5 - regular)) * unit;
  return {exp(select(greater(head, regular - 0.5), between, (head + 1.0) * unit)).v};
}

SmallVector<Value> DistanceBucketsOp::decompose(OpBuilder &b) {
  auto numbers = DenseElementsAttr::get(tensor(getY()), ArrayRef<int32_t>(getNumbers()));
  return {arith::ConstantOp::create(b, getLoc(), numbers)};
}

SmallVector<Value> RopeOp::decompose(OpBuilder &b) {
  // y = x cos + rotate_half(x) sin over full-width tables, [b, s, h, d].
  Expr x = expr(b, getLoc(), getX());
  auto type = tensor(getX());
  SmallVector<int64_t> repeated{2};
  if (tensor(getCos()).getRank() == 2)
    repeated.insert(repeated.begin(), 0);
  auto wide = [&](Value half) {
    SmallVector<int64_t> shape(tensor(half).getShape());
    shape.back() = type.getDimSize(3);
    auto full = RankedTensorType::get(shape, type.getElementType());
    Value both = DuplicateHalfOp::create(b, getLoc(), full, half);
    return x.with(BroadcastOp::create(b, getLoc(), type, both, repeated));
  };
  Expr rotated = x.with(RotateHalfOp::create(b, getLoc(), type, x.v));
  Expr sin = wide(getSin());
  return {
      (getInverse() ? x * wide(getCos()) - rotated * sin : x * wide(getCos()) + rotated * sin).v};
}

//===--- element-wise -------------------------------------------------------===//

SmallVector<Value> AddOp::decompose(OpBuilder &b) {
  Expr x = expr(b, getLoc(), getLhs());
  return {(x + x.with(getRhs()).to(x.v)).v};
}
SmallVector<Value> MulOp::decompose(OpBuilder &b) {
  Expr x = expr(b, getLoc(), getLhs());
  return {(x * x.with(getRhs()).to(x.v)).v};
}
SmallVector<Value> AccumulateOp::decompose(OpBuilder &b) {
  Expr x = expr(b, getLoc(), getAccumulator());
  return {(x + x.with(getValue())).v};
}
SmallVector<Value> MaximumOp::decompose(OpBuilder &b) {
  Expr x = expr(b, getLoc(), getLhs());
  return {maximum(x, x.with(getRhs())).v};
}
SmallVector<Value> CastOp::decompose(OpBuilder &b) {
  return {convert(b, getLoc(), getX(), tensor(getY()).getElementType())};
}
SmallVector<Value> ScaleOp::decompose(OpBuilder &b) {
  return {(expr(b, getLoc(), getX()) * getFactor().convertToDouble()).v};
}

static constexpr double sqrt2OverPi = 0.79788456080286535588, cubic = 0.044715;

SmallVector<Value> GeluOp::decompose(OpBuilder &b) {
  Expr x = expr(b, getLoc(), getX());
  if (getTanh())
    // x/2 (1 + tanh u) = x sigmoid(2u), which costs one exponential.
    return {(x * sigmoid(2 * sqrt2OverPi * (x + cubic * (x * x * x)))).v};
  return {(0.5 * x * (apply<math::ErfOp>(x * 0.70710678118654752440) + 1.0)).v};
}

SmallVector<Value> GeluGradOp::decompose(OpBuilder &b) {
  Expr x = expr(b, getLoc(), getX()), dy = x.with(getDy());
  if (getTanh()) {
    Expr s = sigmoid(2 * sqrt2OverPi * (x + cubic * (x * x * x)));
    Expr du = 2 * sqrt2OverPi * ((3 * cubic) * (x * x) + 1.0);
    return {(dy * (s + x * s * (1.0 - s) * du)).v};
  }
  Expr cdf = 0.5 * (apply<math::ErfOp>(x * 0.70710678118654752440) + 1.0);
  Expr pdf = 0.39894228040143267794 * exp(-0.5 * (x * x));
  return {(dy * (cdf + x * pdf)).v};
}

SmallVector<Value> SiluOp::decompose(OpBuilder &b) {
  Expr x = expr(b, getLoc(), getX());
  return {(x * sigmoid(x)).v};
}
SmallVector<Value> SiluGradOp::decompose(OpBuilder &b) {
  Expr x = expr(b, getLoc(), getX()), dy = x.with(getDy()), s = sigmoid(x);
  return {(dy * s * (x * (1.0 - s) + 1.0)).v};
}
SmallVector<Value> TanhOp::decompose(OpBuilder &b) {
  return {apply<math::TanhOp>(expr(b, getLoc(), getX())).v};
}
SmallVector<Value> ReluOp::decompose(OpBuilder &b) {
  Expr x = expr(b, getLoc(), getX());
  return {maximum(x, x.constant(0)).v};
}
SmallVector<Value> ReluGradOp::decompose(OpBuilder &b) {
  Expr x = expr(b, getLoc(), getX()), dy = x.with(getDy());
  return {select(greater(x, 0), dy, dy.constant(0)).v};
}

SmallVector<Value> ClampOp::decompose(OpBuilder &b) {
  Expr x = expr(b, getLoc(), getX());
  double least = getLeast().convertToDouble(), most = getMost().convertToDouble();
  if (least != -INFINITY)
    x = maximum(x, x.constant(least));
  if (most != INFINITY)
    x = minimum(x, x.constant(most));
  return {x.v};
}
SmallVector<Value> ClampGradOp::decompose(OpBuilder &b) {
  Expr x = expr(b, getLoc(), getX()), dy = x.with(getDy()), zero = dy.constant(0);
  Expr notAbove = select(greater(x, getMost().convertToDouble()), zero, dy);
  return {select(greater(x.constant(getLeast().convertToDouble()), x), zero, notAbove).v};
}

/// One of the two words of a random key.
static Expr keyWord(OpBuilder &b, Location loc, Value key, int32_t i) {
  auto word = RankedTensorType::get({}, b.getI32Type());
  auto position = DenseElementsAttr::get(word, b.getI32IntegerAttr(i));
  Value index = arith::ConstantOp::create(b, loc, position);
  return expr(b, loc, GatherRowsOp::create(b, loc, word, key, index));
}

SmallVector<Value> PartOffsetOp::decompose(OpBuilder &b) {
  Expr index = expr(b, getLoc(), getPart());
  auto apply = [&](auto op, uint64_t by) {
    index = index.with(decltype(op)::create(b, getLoc(), index.v, index.constant(double(by)).v));
  };
  apply(arith::DivUIOp(), getEvery());
  apply(arith::RemUIOp(), getParts());
  apply(arith::MulIOp(), getSize());
  return {getOffset() ? addI(index, index.with(getOffset())).v : index.v};
}

SmallVector<Value> FoldInOp::decompose(OpBuilder &b) {
  Expr index = expr(b, getLoc(), getIndex());
  if (getFirst() != 0)
    index = index.with(
        arith::AddIOp::create(b, getLoc(), index.v, index.constant(int64_t(getFirst())).v));
  auto [first, second] =
      philox(index, index.constant(0), index.constant(0xF01D), index.constant(1),
             keyWord(b, getLoc(), getKey(), 0), keyWord(b, getLoc(), getKey(), 1));
  Expr position = index.with(IotaOp::create(b, getLoc(), getType(), 0));
  Expr isFirst = position.with(arith::CmpIOp::create(b, getLoc(), arith::CmpIPredicate::eq,
                                                     position.v, position.constant(0).v));
  return {select(isFirst, first.to(position.v), second.to(position.v)).v};
}

SmallVector<Value> DropoutOp::decompose(OpBuilder &b) {
  Expr x = expr(b, getLoc(), getX());
  auto type = tensor(getX());
  auto words = RankedTensorType::get(type.getShape(), b.getI32Type());
  // Index of the element inside its sequence, then sequence * size + index in 64
  // bits as two words.
  Expr inside = expr(b, getLoc(), IotaOp::create(b, getLoc(), words, 0))
                    .with(arith::ConstantOp::create(
                        b, getLoc(), DenseElementsAttr::get(words, b.getI32IntegerAttr(0))));
  int64_t size = 1;
  SmallVector<int64_t> sizes = getLogicalSizes();
  for (int64_t d = type.getRank() - 1; d > 0; size *= sizes[--d]) {
    Expr index = x.with(IotaOp::create(b, getLoc(), words, d));
    if (Value offset = getOffset(d))
      index = addI(index, x.with(offset).to(x.v));
    inside = addI(inside, mulI(index, inside.constant(double(int32_t(size)))));
  }
  Expr sequence = x.with(getIds()).to(x.v, true);
  auto [low, high] = mulWide(sequence, uint32_t(size));
  Expr sum = addI(low, inside);
  Expr carry = sum.with(arith::ExtUIOp::create(
      b, getLoc(), words,
      arith::CmpIOp::create(b, getLoc(), arith::CmpIPredicate::ult, sum.v, low.v)));
  auto key = [&](int32_t i) { return keyWord(b, getLoc(), getKey(), i).to(x.v); };
  auto [bits, unused] =
      philox(sum, addI(high, carry), sum.constant(getStream()), sum.constant(0), key(0), key(1));
  double rate = getRate().convertToDouble();
  Expr threshold = bits.constant(int32_t(uint32_t(double(float(rate)) * 4294967296.0)));
  Expr keep =
      bits.with(arith::CmpIOp::create(b, getLoc(), arith::CmpIPredicate::uge, bits.v, threshold.v));
  return {select(keep, x * (1 / (1 - rate)), x.constant(0)).v};
}

SmallVector<Value> MaskOp::decompose(OpBuilder &b) {
  Expr x = expr(b, getLoc(), getX());
  auto words = RankedTensorType::get(tensor(getX()).getShape(), b.getI32Type());
  Expr index = x.with(IotaOp::create(b, getLoc(), words, getDim()));
  if (getOffset())
    index = addI(index, x.with(getOffset()).to(x.v));
  Expr inside = index.with(arith::CmpIOp::create(b, getLoc(), arith::CmpIPredicate::ult, index.v,
                                                 index.constant(double(getBelow())).v));
  return {select(inside, x, x.constant(getValue().convertToDouble())).v};
}

SmallVector<Value> DecayOp::decompose(OpBuilder &b) {
  auto type = cast<RankedTensorType>(getType());
  int64_t rank = type.getRank();
  auto words = RankedTensorType::get(type.getShape(), b.getI32Type());
  auto spread = [&](Value x, int64_t along) {
    auto wide = RankedTensorType::get(type.getShape(), tensor(x).getElementType());
    return expr(b, getLoc(), BroadcastOp::create(b, getLoc(), wide, x, ArrayRef<int64_t>{along}));
  };
  Expr to = spread(getTo(), rank - 1), from = spread(getFrom(), rank - 2);
  Expr t = to.with(IotaOp::create(b, getLoc(), words, rank - 2));
  Expr u = to.with(IotaOp::create(b, getLoc(), words, rank - 1));
  auto compare = [&](arith::CmpIPredicate predicate, Expr x, Expr y) {
    return x.with(arith::CmpIOp::create(b, getLoc(), predicate, x.v, y.v));
  };
  Expr retained = getStrict() ? compare(arith::CmpIPredicate::ult, u, t)
                              : compare(arith::CmpIPredicate::uge, t, u);
  return {select(retained, exp(select(retained, to - from, to.constant(0))), to.constant(0)).v};
}

SmallVector<Value> ExpOp::decompose(OpBuilder &b) { return {exp(expr(b, getLoc(), getX())).v}; }
SmallVector<Value> LogOp::decompose(OpBuilder &b) {
  return {apply<math::LogOp>(expr(b, getLoc(), getX())).v};
}
SmallVector<Value> InverseRootOp::decompose(OpBuilder &b) {
  return {(1.0 / sqrt(expr(b, getLoc(), getX()) + getEps().convertToDouble())).v};
}

//===--- shape --------------------------------------------------------------===//

// A primitive is its own decomposition.
static SmallVector<Value> itself(Operation *op, OpBuilder &b) { return b.clone(*op)->getResults(); }
SmallVector<Value> SliceOp::decompose(OpBuilder &b) {
  if (getFrom() == 0)
    return itself(*this, b);
  auto type = RankedTensorType::get({}, b.getI32Type());
  Value from = arith::ConstantOp::create(
      b, getLoc(), DenseElementsAttr::get(type, b.getI32IntegerAttr(int32_t(getFrom()))));
  return {DynamicSliceOp::create(b, getLoc(), getType(), getX(), from, getDim())};
}
SmallVector<Value> PadOp::decompose(OpBuilder &b) { return itself(*this, b); }
SmallVector<Value> DynamicSliceOp::decompose(OpBuilder &b) { return itself(*this, b); }
SmallVector<Value> TransposeBlocksOp::decompose(OpBuilder &b) { return itself(*this, b); }
SmallVector<Value> ReduceOp::decompose(OpBuilder &b) {
  return {expr(b, getLoc(), getX()).over(getDims(), getKind()).v};
}
SmallVector<Value> BroadcastOp::decompose(OpBuilder &b) { return itself(*this, b); }
SmallVector<Value> FillOp::decompose(OpBuilder &b) {
  auto type = tensor(getY());
  return {arith::ConstantOp::create(
      b, getLoc(),
      DenseElementsAttr::get(type,
                             b.getFloatAttr(type.getElementType(), getValue().convertToDouble())))};
}

//===--- loss ---------------------------------------------------------------===//

/// 1 at each row's target column, as a condition.
static Expr isTarget(Expr logits, Value targets) {
  auto type = RankedTensorType::get(tensor(logits.v).getShape(), logits.b->getI32Type());
  Value column = IotaOp::create(*logits.b, logits.loc, type, type.getRank() - 1);
  Value target = logits.with(targets).to(logits.v, true).v;
  return logits.with(
      arith::CmpIOp::create(*logits.b, logits.loc, arith::CmpIPredicate::eq, column, target));
}

/// The loss of tokens whose target is one of `below` columns, of all or of each, and their lse,
/// infinite for the others.
static SmallVector<Value> tokenLoss(Expr lse, Expr picked, Value targets, int64_t below,
                                    APFloat scale, bool perToken) {
  Expr target = lse.with(targets);
  Expr valid = target.with(arith::CmpIOp::create(*lse.b, lse.loc, arith::CmpIPredicate::ult,
                                                 target.v, target.constant(double(below)).v));
  Expr loss = select(valid, lse - picked, lse.constant(0));
  if (!perToken)
    loss = loss.overAll();
  return {(loss * scale.convertToDouble()).v, select(valid, lse, lse.constant(INFINITY)).v};
}

SmallVector<Value> CrossEntropyOp::decompose(OpBuilder &b) {
  Expr x = expr(b, getLoc(), getLogits());
  Expr most = x.overLast(ReduceKind::Max);
  Expr sum = exp(x - most.to(x.v, true)).overLast();
  Expr lse = most + apply<math::LogOp>(sum);
  Expr picked = select(isTarget(x, getTargets()), x, x.constant(0)).overLast();
  return tokenLoss(lse, picked, getTargets(), int64_t(width(x.v)), getScale(), getPerToken());
}

SmallVector<Value> TokenLossOp::decompose(OpBuilder &b) {
  Expr lse = expr(b, getLoc(), getLogSum());
  return tokenLoss(lse, lse.with(getPicked()), getTargets(), getBelow(), getScale(), getPerToken());
}

SmallVector<Value> PickOp::decompose(OpBuilder &b) {
  Expr x = expr(b, getLoc(), getX());
  return {select(isTarget(x, getIds()), x, x.constant(0)).overLast().v};
}

SmallVector<Value> CrossEntropyGradOp::decompose(OpBuilder &b) {
  Expr x = expr(b, getLoc(), getLogits());
  Expr p = exp(x - x.with(getLse()).to(x.v, true));
  Expr onehot = select(isTarget(x, getTargets()), x.constant(1), x.constant(0));
  Expr scale = x.with(getDloss()) * getScale().convertToDouble();
  bool perToken = cast<RankedTensorType>(getDloss().getType()).getRank() > 0;
  return {((p - onehot) * scale.to(x.v, perToken)).v};
}

//===--- optimizer ----------------------------------------------------------===//

SmallVector<Value> SquareSumOp::decompose(OpBuilder &b) {
  Expr x = expr(b, getLoc(), getX());
  return {(x * x).overAll().v};
}

SmallVector<Value> GlobalNormOp::decompose(OpBuilder &b) {
  Expr sum = expr(b, getLoc(), getSquares()[0]);
  for (Value square : getSquares().drop_front())
    sum = sum + sum.with(square);
  return {sqrt(sum).v};
}

SmallVector<Value> ClipFactorOp::decompose(OpBuilder &b) {
  Expr norm = expr(b, getLoc(), getNorm()), limit = norm.with(getLimit());
  Expr factor = minimum(limit / (norm + 1e-6), limit.constant(1));
  return {select(greater(limit, 0), factor, limit.constant(1)).v};
}

SmallVector<Value> UnscaleOp::decompose(OpBuilder &b) {
  Expr x = expr(b, getLoc(), getX());
  return {(x / x.with(getScale()).to(x.v)).v};
}

SmallVector<Value> LerpOp::decompose(OpBuilder &b) {
  Expr from = expr(b, getLoc(), getFrom()), weight = from.with(getWeight());
  return {((1.0 - weight) * from + weight * from.with(getTo())).v};
}

bool GuardOp::movesElements() { return true; }
SmallVector<Value> GuardOp::decompose(OpBuilder &b) {
  Expr updated = expr(b, getLoc(), getUpdated()), check = updated.with(getCheck());
  Expr size = apply<math::AbsFOp>(check);
  Expr finite = size.with(arith::CmpFOp::create(b, getLoc(), arith::CmpFPredicate::OLT, size.v,
                                                size.constant(INFINITY).v));
  return {select(finite.to(updated.v), updated, updated.with(getPrevious())).v};
}

SmallVector<Value> UpdateOp::decompose(OpBuilder &b) {
  return buildUpdate(*this, b, getOperands());
}
