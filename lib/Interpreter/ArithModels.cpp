//===- ArithModels.cpp - arith and math ops, element by element -------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// What kernels are made of. One scalar function each, applied to every element
// of tensors of one shape (a scalar is a tensor of rank 0).
//
//===----------------------------------------------------------------------===//
#include "Interpreter/Model.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

#include <cmath>

using namespace mlir;
using namespace meshwright;
using namespace meshwright::interp;

//===--- scalar functions to ops ----------------------------------------------===//

/// `f` makes a double of as many doubles as the op has operands.
template <typename OpT, auto f>
static LogicalResult floats(OpT op, Operands in, Results &results, RankContext &) {
  Tensor result(op->getResult(0).getType());
  double *out = result.writeFloats();
  for (int64_t i = 0; i < result.size(); ++i) {
    if constexpr (std::is_invocable_v<decltype(f), double>)
      out[i] = f(in[0].floats()[i]);
    else if constexpr (std::is_invocable_v<decltype(f), double, double>)
      out[i] = f(in[0].floats()[i], in[1].floats()[i]);
    else
      out[i] = f(in[0].floats()[i], in[1].floats()[i], in[2].floats()[i]);
  }
  results.push_back(result);
  return success();
}

/// The bits of an integer element as an unsigned number.
static uint64_t unsignedOf(Type type, int64_t value) {
  return type.isIndex() || type.getIntOrFloatBitWidth() == 64
             ? uint64_t(value)
             : uint64_t(value) & ((uint64_t(1) << type.getIntOrFloatBitWidth()) - 1);
}

/// `f` makes an integer of two integers, sign-extended or, with `isUnsigned`, not.
template <typename OpT, auto f, bool isUnsigned = false>
static LogicalResult integers(OpT op, Operands in, Results &results, RankContext &) {
  Tensor result(op->getResult(0).getType());
  Type type = in[0].elementType();
  int64_t *out = result.writeIntegers();
  for (int64_t i = 0; i < result.size(); ++i) {
    int64_t a = in[0].integers()[i], b = in[1].integers()[i];
    if constexpr (isUnsigned)
      out[i] = wrapTo(result.elementType(), int64_t(f(unsignedOf(type, a), unsignedOf(type, b))));
    else
      out[i] = wrapTo(result.elementType(), f(a, b));
  }
  results.push_back(result);
  return success();
}

static LogicalResult divisible(Operation *op, const Tensor &divisor) {
  if (llvm::is_contained(divisor.integers(), 0))
    return op->emitError() << "divides by zero";
  return success();
}

template <typename OpT, auto f, bool isUnsigned>
static LogicalResult quotients(OpT op, Operands in, Results &results, RankContext &context) {
  if (failed(divisible(op, in[1])))
    return failure();
  return integers<OpT, f, isUnsigned>(op, in, results, context);
}

//===--- conversions ----------------------------------------------------------===//

/// Integer to integer and float to float: rounding is done by whoever runs us.
template <typename OpT, bool isUnsigned>
static LogicalResult convert(OpT op, Operands in, Results &results, RankContext &) {
  Tensor result(op->getResult(0).getType());
  const Tensor &x = in[0];
  for (int64_t i = 0; i < result.size(); ++i) {
    if (x.isFloat() && result.isFloat())
      result.writeFloats()[i] = x.floats()[i];
    else if (x.isFloat())
      result.writeIntegers()[i] =
          wrapTo(result.elementType(),
                 isUnsigned ? int64_t(uint64_t(x.floats()[i])) : int64_t(x.floats()[i]));
    else if (result.isFloat())
      result.writeFloats()[i] = isUnsigned ? double(unsignedOf(x.elementType(), x.integers()[i]))
                                           : double(x.integers()[i]);
    else
      result.writeIntegers()[i] = wrapTo(
          result.elementType(),
          isUnsigned ? int64_t(unsignedOf(x.elementType(), x.integers()[i])) : x.integers()[i]);
  }
  results.push_back(result);
  return success();
}

/// Sign extension of i1 makes -1 of true, which is kept as 1.
static LogicalResult extendSigned(arith::ExtSIOp op, Operands in, Results &results,
                                  RankContext &context) {
  if (failed((convert<arith::ExtSIOp, false>(op, in, results, context))))
    return failure();
  if (in[0].elementType().isInteger(1))
    for (int64_t i = 0; i < in[0].size(); ++i)
      results[0].writeIntegers()[i] = -in[0].integers()[i];
  return success();
}

/// Between f32 and i32, which have the bits of f32's number nearest to what is there.
static LogicalResult bitcast(arith::BitcastOp op, Operands in, Results &results, RankContext &) {
  Tensor result(op.getType());
  Type from = in[0].elementType(), to = result.elementType();
  if (!(from.isF32() && to.isInteger(32)) && !(from.isInteger(32) && to.isF32()))
    return op.emitError("the interpreter casts bits between f32 and i32 only");
  for (int64_t i = 0; i < result.size(); ++i) {
    if (result.isFloat())
      result.writeFloats()[i] = llvm::bit_cast<float>(int32_t(in[0].integers()[i]));
    else
      result.writeIntegers()[i] = llvm::bit_cast<int32_t>(float(in[0].floats()[i]));
  }
  results.push_back(result);
  return success();
}

//===--- ops of other forms ---------------------------------------------------===//

template <typename OpT, bool isUnsigned>
static LogicalResult mulExtended(OpT op, Operands in, Results &results, RankContext &) {
  Tensor low(op.getLow().getType()), high(op.getHigh().getType());
  Type type = in[0].elementType();
  unsigned width = type.getIntOrFloatBitWidth();
  for (int64_t i = 0; i < low.size(); ++i) {
    int64_t a = in[0].integers()[i], b = in[1].integers()[i];
    __int128 product = isUnsigned ? __int128((unsigned __int128)unsignedOf(type, a) *
                                             (unsigned __int128)unsignedOf(type, b))
                                  : __int128(a) * __int128(b);
    low.writeIntegers()[i] = wrapTo(type, int64_t(product));
    high.writeIntegers()[i] = wrapTo(type, int64_t(product >> width));
  }
  results.append({low, high});
  return success();
}

static LogicalResult constant(arith::ConstantOp op, Operands, Results &results, RankContext &) {
  Tensor result(op.getType());
  auto setFloat = [&](int64_t i, const APFloat &value) {
    bool lossy;
    APFloat wide = value;
    wide.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &lossy);
    result.writeFloats()[i] = wide.convertToDouble();
  };
  auto setInteger = [&](int64_t i, const APInt &value) {
    result.writeIntegers()[i] = wrapTo(result.elementType(), value.getSExtValue());
  };
  if (auto value = dyn_cast<FloatAttr>(op.getValue())) {
    setFloat(0, value.getValue());
  } else if (auto value = dyn_cast<IntegerAttr>(op.getValue())) {
    setInteger(0, value.getValue());
  } else if (auto values = dyn_cast<DenseElementsAttr>(op.getValue())) {
    if (result.isFloat())
      for (auto [i, value] : llvm::enumerate(values.getValues<APFloat>()))
        setFloat(i, value);
    else
      for (auto [i, value] : llvm::enumerate(values.getValues<APInt>()))
        setInteger(i, value);
  } else {
    return op.emitError("the interpreter reads scalar and dense constants only");
  }
  results.push_back(result);
  return success();
}

/// A condition that is one value chooses between whole tensors.
static LogicalResult select(arith::SelectOp op, Operands in, Results &results, RankContext &) {
  Tensor result(op.getType());
  bool one = in[0].size() == 1;
  for (int64_t i = 0; i < result.size(); ++i) {
    const Tensor &chosen = in[0].integers()[one ? 0 : i] ? in[1] : in[2];
    if (result.isFloat())
      result.writeFloats()[i] = chosen.floats()[i];
    else
      result.writeIntegers()[i] = chosen.integers()[i];
  }
  results.push_back(result);
  return success();
}

static LogicalResult compareFloats(arith::CmpFOp op, Operands in, Results &results, RankContext &) {
  Tensor result(op.getType());
  for (int64_t i = 0; i < result.size(); ++i)
    result.writeIntegers()[i] = arith::applyCmpPredicate(
        op.getPredicate(), APFloat(in[0].floats()[i]), APFloat(in[1].floats()[i]));
  results.push_back(result);
  return success();
}

static LogicalResult compareIntegers(arith::CmpIOp op, Operands in, Results &results,
                                     RankContext &) {
  Tensor result(op.getType());
  Type type = in[0].elementType();
  unsigned width = type.isIndex() ? 64 : type.getIntOrFloatBitWidth();
  auto bits = [&](int64_t value) { return APInt(64, uint64_t(value), true).trunc(width); };
  for (int64_t i = 0; i < result.size(); ++i)
    result.writeIntegers()[i] = arith::applyCmpPredicate(
        op.getPredicate(), bits(in[0].integers()[i]), bits(in[1].integers()[i]));
  results.push_back(result);
  return success();
}

//===--- the table ------------------------------------------------------------===//

// Lambdas cannot be template arguments in C++17, functions can.
namespace {
using i64 = int64_t;
using u64 = uint64_t;
double addF(double a, double b) { return a + b; }
double subF(double a, double b) { return a - b; }
double mulF(double a, double b) { return a * b; }
double divF(double a, double b) { return a / b; }
double remF(double a, double b) { return std::fmod(a, b); }
double negF(double a) { return -a; }
double absF(double a) { return std::fabs(a); }
double maxF(double a, double b) { return std::isnan(a) ? a : std::isnan(b) ? b : std::max(a, b); }
double minF(double a, double b) { return std::isnan(a) ? a : std::isnan(b) ? b : std::min(a, b); }
double maxNumber(double a, double b) { return std::fmax(a, b); }
double minNumber(double a, double b) { return std::fmin(a, b); }
double fmaF(double a, double b, double c) { return std::fma(a, b, c); }
double expF(double a) { return std::exp(a); }
double exp2F(double a) { return std::exp2(a); }
double expm1F(double a) { return std::expm1(a); }
double logF(double a) { return std::log(a); }
double log2F(double a) { return std::log2(a); }
double log1pF(double a) { return std::log1p(a); }
double sqrtF(double a) { return std::sqrt(a); }
double rsqrtF(double a) { return 1 / std::sqrt(a); }
double sinF(double a) { return std::sin(a); }
double cosF(double a) { return std::cos(a); }
double tanhF(double a) { return std::tanh(a); }
double erfF(double a) { return std::erf(a); }
double powF(double a, double b) { return std::pow(a, b); }
double floorF(double a) { return std::floor(a); }
double ceilF(double a) { return std::ceil(a); }
double roundEvenF(double a) { return std::nearbyint(a); }
// Sums and products wrap around: computed unsigned.
i64 addI(i64 a, i64 b) { return i64(u64(a) + u64(b)); }
i64 subI(i64 a, i64 b) { return i64(u64(a) - u64(b)); }
i64 mulI(i64 a, i64 b) { return i64(u64(a) * u64(b)); }
i64 andI(i64 a, i64 b) { return a & b; }
i64 orI(i64 a, i64 b) { return a | b; }
i64 xorI(i64 a, i64 b) { return a ^ b; }
i64 maxS(i64 a, i64 b) { return std::max(a, b); }
i64 minS(i64 a, i64 b) { return std::min(a, b); }
u64 maxU(u64 a, u64 b) { return std::max(a, b); }
u64 minU(u64 a, u64 b) { return std::min(a, b); }
i64 divS(i64 a, i64 b) { return a / b; }
i64 remS(i64 a, i64 b) { return a % b; }
u64 divU(u64 a, u64 b) { return a / b; }
u64 remU(u64 a, u64 b) { return a % b; }
u64 shiftLeft(u64 a, u64 b) { return b < 64 ? a << b : 0; }
u64 shiftRight(u64 a, u64 b) { return b < 64 ? a >> b : 0; }
i64 shiftRightSigned(i64 a, i64 b) { return a >> std::min<i64>(b, 63); }

template <typename OpT, auto f> void attachFloats(MLIRContext *context) {
  attach<OpT, floats<OpT, f>>(context);
}
template <typename OpT, auto f, bool isUnsigned = false> void attachIntegers(MLIRContext *context) {
  attach<OpT, integers<OpT, f, isUnsigned>>(context);
}
template <typename OpT, auto f, bool isUnsigned = false>
void attachQuotients(MLIRContext *context) {
  attach<OpT, quotients<OpT, f, isUnsigned>>(context);
}
template <typename OpT, bool isUnsigned = false> void attachConversion(MLIRContext *context) {
  attach<OpT, convert<OpT, isUnsigned>>(context);
}
} // namespace

void interp::attachArithModels(MLIRContext *context) {
  attachFloats<arith::AddFOp, addF>(context);
  attachFloats<arith::SubFOp, subF>(context);
  attachFloats<arith::MulFOp, mulF>(context);
  attachFloats<arith::DivFOp, divF>(context);
  attachFloats<arith::RemFOp, remF>(context);
  attachFloats<arith::NegFOp, negF>(context);
  attachFloats<arith::MaximumFOp, maxF>(context);
  attachFloats<arith::MinimumFOp, minF>(context);
  attachFloats<arith::MaxNumFOp, maxNumber>(context);
  attachFloats<arith::MinNumFOp, minNumber>(context);
  attachFloats<math::AbsFOp, absF>(context);
  attachFloats<math::FmaOp, fmaF>(context);
  attachFloats<math::ExpOp, expF>(context);
  attachFloats<math::Exp2Op, exp2F>(context);
  attachFloats<math::ExpM1Op, expm1F>(context);
  attachFloats<math::LogOp, logF>(context);
  attachFloats<math::Log2Op, log2F>(context);
  attachFloats<math::Log1pOp, log1pF>(context);
  attachFloats<math::SqrtOp, sqrtF>(context);
  attachFloats<math::RsqrtOp, rsqrtF>(context);
  attachFloats<math::SinOp, sinF>(context);
  attachFloats<math::CosOp, cosF>(context);
  attachFloats<math::TanhOp, tanhF>(context);
  attachFloats<math::ErfOp, erfF>(context);
  attachFloats<math::PowFOp, powF>(context);
  attachFloats<math::FloorOp, floorF>(context);
  attachFloats<math::CeilOp, ceilF>(context);
  attachFloats<math::RoundEvenOp, roundEvenF>(context);

  attachIntegers<arith::AddIOp, addI>(context);
  attachIntegers<arith::SubIOp, subI>(context);
  attachIntegers<arith::MulIOp, mulI>(context);
  attachIntegers<arith::AndIOp, andI>(context);
  attachIntegers<arith::OrIOp, orI>(context);
  attachIntegers<arith::XOrIOp, xorI>(context);
  attachIntegers<arith::MaxSIOp, maxS>(context);
  attachIntegers<arith::MinSIOp, minS>(context);
  attachIntegers<arith::MaxUIOp, maxU, true>(context);
  attachIntegers<arith::MinUIOp, minU, true>(context);
  attachIntegers<arith::ShLIOp, shiftLeft, true>(context);
  attachIntegers<arith::ShRUIOp, shiftRight, true>(context);
  attachIntegers<arith::ShRSIOp, shiftRightSigned>(context);
  attachQuotients<arith::DivSIOp, divS>(context);
  attachQuotients<arith::RemSIOp, remS>(context);
  attachQuotients<arith::DivUIOp, divU, true>(context);
  attachQuotients<arith::RemUIOp, remU, true>(context);
  attach<arith::MulUIExtendedOp, mulExtended<arith::MulUIExtendedOp, true>>(context);
  attach<arith::MulSIExtendedOp, mulExtended<arith::MulSIExtendedOp, false>>(context);

  attachConversion<arith::ExtFOp>(context);
  attachConversion<arith::TruncFOp>(context);
  attachConversion<arith::TruncIOp>(context);
  attachConversion<arith::ExtUIOp, true>(context);
  attachConversion<arith::SIToFPOp>(context);
  attachConversion<arith::UIToFPOp, true>(context);
  attachConversion<arith::FPToSIOp>(context);
  attachConversion<arith::FPToUIOp, true>(context);
  attachConversion<arith::IndexCastOp>(context);
  attach<arith::ExtSIOp, extendSigned>(context);
  attach<arith::BitcastOp, bitcast>(context);

  attach<arith::ConstantOp, constant>(context);
  attach<arith::SelectOp, select>(context);
  attach<arith::CmpFOp, compareFloats>(context);
  attach<arith::CmpIOp, compareIntegers>(context);
}
