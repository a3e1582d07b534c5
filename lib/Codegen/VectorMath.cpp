//===- VectorMath.cpp - elementary functions on vectors ---------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// Argument reduction and polynomials of Cephes (S. Moshier) for exp, log and
// tanh, N. Juffa's two-branch erf: a few roundings of f32 over the whole range,
// with infinities and NaN where libm has them. MLIR's own approximations stop at
// exp(88.37) and lose digits of erf.
//
//===----------------------------------------------------------------------===//
#include "Codegen/VectorMath.h"

#include <cmath>

using namespace mlir;
using meshwright::codegen::contract;

namespace {
/// Arithmetic on f32 values of one shape, scalar or vector.
struct Real {
  OpBuilder *b;
  Location loc;
  Value v;

  Real with(Value value) const { return {b, loc, value}; }
  Real constant(double value) const {
    TypedAttr scalar = b->getF32FloatAttr(float(value));
    if (auto vector = dyn_cast<VectorType>(v.getType()))
      scalar = DenseElementsAttr::get(vector, Attribute(scalar));
    return with(arith::ConstantOp::create(*b, loc, scalar));
  }
};

/// Integers of the same shape, for the bits of floats.
struct Bits {
  OpBuilder *b;
  Location loc;
  Value v;

  Bits with(Value value) const { return {b, loc, value}; }
  Bits constant(int32_t value) const {
    TypedAttr scalar = b->getI32IntegerAttr(value);
    if (auto vector = dyn_cast<VectorType>(v.getType()))
      scalar = DenseElementsAttr::get(vector, Attribute(scalar));
    return with(arith::ConstantOp::create(*b, loc, scalar));
  }
};
} // namespace

static Real operator+(Real x, Real y) {
  return x.with(arith::AddFOp::create(*x.b, x.loc, x.v, y.v, contract));
}
static Real operator-(Real x, Real y) {
  return x.with(arith::SubFOp::create(*x.b, x.loc, x.v, y.v, contract));
}
static Real operator*(Real x, Real y) {
  return x.with(arith::MulFOp::create(*x.b, x.loc, x.v, y.v, contract));
}
static Real operator/(Real x, Real y) {
  return x.with(arith::DivFOp::create(*x.b, x.loc, x.v, y.v, contract));
}
static Real operator+(Real x, double y) { return x + x.constant(y); }
static Real operator*(Real x, double y) { return x * x.constant(y); }
static Real operator-(double x, Real y) { return y.constant(x) - y; }

static Value compare(arith::CmpFPredicate predicate, Real x, double y) {
  return arith::CmpFOp::create(*x.b, x.loc, predicate, x.v, x.constant(y).v);
}
static Real select(Value condition, Real x, Real y) {
  return x.with(arith::SelectOp::create(*x.b, x.loc, condition, x.v, y.v));
}
/// Keeps NaN, which compares false.
static Real atMost(Real x, double limit) {
  return select(compare(arith::CmpFPredicate::OGT, x, limit), x.constant(limit), x);
}
static Real atLeast(Real x, double limit) {
  return select(compare(arith::CmpFPredicate::OLT, x, limit), x.constant(limit), x);
}
static Real absolute(Real x) { return x.with(math::AbsFOp::create(*x.b, x.loc, x.v)); }
static Real copySign(Real x, Real sign) {
  return x.with(math::CopySignOp::create(*x.b, x.loc, x.v, sign.v));
}
/// Horner's scheme, the highest power first.
static Real polynomial(Real x, ArrayRef<double> coefficients) {
  Real sum = x.constant(coefficients.front());
  for (double coefficient : coefficients.drop_front())
    sum = sum * x + coefficient;
  return sum;
}

static Type integerTypeLike(Type type) {
  Type element = IntegerType::get(type.getContext(), 32);
  if (auto vector = dyn_cast<VectorType>(type))
    return vector.clone(element);
  return element;
}
static Bits bitsOf(Real x) {
  return {x.b, x.loc, arith::BitcastOp::create(*x.b, x.loc, integerTypeLike(x.v.getType()), x.v)};
}
static Real fromBits(Real like, Bits bits) {
  return like.with(arith::BitcastOp::create(*like.b, like.loc, like.v.getType(), bits.v));
}
static Bits operator+(Bits x, Bits y) {
  return x.with(arith::AddIOp::create(*x.b, x.loc, x.v, y.v));
}
static Bits operator-(Bits x, Bits y) {
  return x.with(arith::SubIOp::create(*x.b, x.loc, x.v, y.v));
}
static Bits shiftLeft(Bits x, int32_t n) {
  return x.with(arith::ShLIOp::create(*x.b, x.loc, x.v, x.constant(n).v));
}
static Bits shiftRight(Bits x, int32_t n) {
  return x.with(arith::ShRSIOp::create(*x.b, x.loc, x.v, x.constant(n).v));
}
static Bits integer(Real x) {
  return {x.b, x.loc, arith::FPToSIOp::create(*x.b, x.loc, integerTypeLike(x.v.getType()), x.v)};
}
static Real real(Real like, Bits x) {
  return like.with(arith::SIToFPOp::create(*x.b, x.loc, like.v.getType(), x.v));
}
/// 2^n for -127 < n < 128.
static Real powerOfTwo(Real like, Bits n) {
  return fromBits(like, shiftLeft(n + n.constant(127), 23));
}

static Value hasBit(Bits x, int32_t bit) {
  Value masked = arith::AndIOp::create(*x.b, x.loc, x.v, x.constant(bit).v);
  return arith::CmpIOp::create(*x.b, x.loc, arith::CmpIPredicate::ne, masked, x.constant(0).v);
}

//===--- f64, for what f32 cannot hold -------------------------------------===//

static Type b64(Real x) {
  Type wide = x.b->getF64Type();
  auto vector = dyn_cast<VectorType>(x.v.getType());
  return vector ? vector.clone(wide) : wide;
}
static Value constant64(Real like, double value) {
  TypedAttr scalar = like.b->getF64FloatAttr(value);
  if (auto vector = dyn_cast<VectorType>(b64(like)))
    scalar = DenseElementsAttr::get(vector, Attribute(scalar));
  return arith::ConstantOp::create(*like.b, like.loc, scalar);
}
static Value multiply64(Real like, Value x, double y) {
  return arith::MulFOp::create(*like.b, like.loc, x, constant64(like, y));
}
/// x - y * z, rounded once.
static Value subtractProduct64(Real like, Value x, Value y, double z) {
  return math::FmaOp::create(*like.b, like.loc, y, constant64(like, -z), x);
}

//===----------------------------------------------------------------------===//
// Functions
//===----------------------------------------------------------------------===//

static Real polynomialExponential(Real argument) {
  // Beyond these the result is 0 or infinity, and n still fits in two halves.
  Real x = atMost(atLeast(argument, -104.0), 89.0);
  Real n = x * 1.44269504088896341;
  n = n.with(math::RoundEvenOp::create(*x.b, x.loc, n.v));
  // ln 2 in two parts, of which the first times n is exact.
  Real r = x - n * 0.693359375;
  r = r - n * -2.12194440e-4;
  Real p = polynomial(r, {1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2,
                          1.6666665459e-1, 5.0000001201e-1});
  p = (p * r) * r + r + 1.0;
  // 2^n in two factors: n from -150 to 128 is more than an exponent holds.
  Bits whole = integer(n), half = shiftRight(whole, 1);
  return p * powerOfTwo(p, half) * powerOfTwo(p, whole - half);
}

/// 2^t for t = x log2(e), which has been rounded, times 1 + r for what that took off.
static Real powerExponential(Real argument) {
  // Beyond these the result is 0 or infinity, and r is a number.
  Real low = argument.constant(-104.0), high = argument.constant(89.0);
  Real x = argument.with(
      arith::MaximumFOp::create(*argument.b, argument.loc, argument.v, low.v));
  x = x.with(arith::MinimumFOp::create(*x.b, x.loc, x.v, high.v));
  Real t = x.with(arith::MulFOp::create(*x.b, x.loc, x.v, x.constant(1.44269504088896341).v));
  // ln 2 in two parts.
  Real r = x.with(math::FmaOp::create(*x.b, x.loc, t.v, t.constant(-0.693147182464599609).v, x.v));
  r = x.with(math::FmaOp::create(*x.b, x.loc, t.v, t.constant(1.90465429995776804e-9).v, r.v));
  return x.with(math::Exp2Op::create(*x.b, x.loc, t.v)) * (r + 1.0);
}

static Real logarithm(Real x) {
  // Subnormal numbers are scaled up first.
  Value tiny = compare(arith::CmpFPredicate::OLT, x, 1.17549435e-38);
  Real scaled = select(tiny, x * 8388608.0, x);
  Bits bits = bitsOf(scaled);
  // x = m 2^e with m in [sqrt 1/2, sqrt 2): 0x3f3504f3 is sqrt 1/2.
  Bits shifted = bits - bits.constant(0x3f3504f3);
  Bits exponent = shiftRight(shifted, 23);
  Real m = fromBits(x, bits - shiftLeft(exponent, 23)) + -1.0;
  Real e = real(x, exponent);
  e = select(tiny, e + -23.0, e);
  Real z = m * m;
  Real p = polynomial(m, {7.0376836292e-2, -1.1514610310e-1, 1.1676998740e-1, -1.2420140846e-1,
                          1.4249322787e-1, -1.6668057665e-1, 2.0000714765e-1, -2.4999993993e-1,
                          3.3333331174e-1});
  Real y = p * m * z + e * -2.12194440e-4;
  y = y - z * 0.5;
  Real result = m + y + e * 0.693359375;
  result = select(compare(arith::CmpFPredicate::OEQ, x, INFINITY), x, result);
  result = select(compare(arith::CmpFPredicate::OEQ, x, 0.0), x.constant(-INFINITY), result);
  // Negative and NaN.
  return select(compare(arith::CmpFPredicate::ULT, x, 0.0), x.constant(NAN), result);
}

using Function = Real (*)(Real);

template <Function exponential> static Real hyperbolicTangent(Real x) {
  Real size = absolute(x), z = x * x;
  Real small = polynomial(z, {-5.70498872745e-3, 2.06390887954e-2, -5.37397155531e-2,
                              1.33314422036e-1, -3.33332819422e-1}) *
                   z * x +
               x;
  Real big = 1.0 - x.constant(2.0) / (exponential(size + size) + 1.0);
  return select(compare(arith::CmpFPredicate::OLT, size, 0.625), small, copySign(big, x));
}

template <Function exponential> static Real errorFunction(Real x) {
  Real t = absolute(x), s = x * x;
  Real u = (t * -1.72853470e-5 + 3.83197126e-4) * s + (t * -3.88396438e-3 + 2.42546219e-2);
  u = ((u * t + -1.06777877e-1) * t + -6.34846687e-1) * t + -1.28717512e-1;
  Real big = 1.0 - exponential(u * t - t);
  Real small = polynomial(s, {-5.96761703e-4, 4.99119423e-3, -2.67681349e-2, 1.12819925e-1,
                              -3.76125336e-1, 1.28379166e-1}) *
                   x +
               x;
  return select(compare(arith::CmpFPredicate::OGT, t, 0.927734375), copySign(big, x), small);
}

/// Sine of `x` plus `quarters` quarter turns.
static Real sine(Real x, int32_t quarters) {
  Type wide = b64(x);
  Value exact = arith::ExtFOp::create(*x.b, x.loc, wide, x.v);
  Value turns = multiply64(x, exact, 6.36619772367581343e-1);
  turns = math::RoundEvenOp::create(*x.b, x.loc, turns);
  // pi/2 in two parts.
  Value rest = subtractProduct64(x, exact, turns, 1.57079632679489656);
  rest = subtractProduct64(x, rest, turns, 6.12323399573676604e-17);
  Real r = x.with(arith::TruncFOp::create(*x.b, x.loc, x.v.getType(), rest)), z = r * r;
  Bits n{x.b, x.loc, arith::FPToSIOp::create(*x.b, x.loc, integerTypeLike(x.v.getType()), turns)};
  n = n + n.constant(quarters);
  Real s = polynomial(z, {-1.9515295891e-4, 8.3321608736e-3, -1.6666654611e-1}) * z * r + r;
  Real c =
      polynomial(z, {2.443315711809948e-5, -1.388731625493765e-3, 4.166664568298827e-2}) * z * z -
      z * 0.5 + 1.0;
  Real value = select(hasBit(n, 1), c, s);
  return select(hasBit(n, 2), value.with(arith::NegFOp::create(*x.b, x.loc, value.v)), value);
}

template <typename Op> static void expand(ModuleOp module, Function function) {
  module.walk([&](Op op) {
    if (!getElementTypeOrSelf(op.getType()).isF32())
      return;
    OpBuilder b(op);
    op.getResult().replaceAllUsesWith(function({&b, op.getLoc(), op.getOperand()}).v);
    op.erase();
  });
}

template <Function exponential> static void expandWith(ModuleOp module) {
  expand<math::TanhOp>(module, hyperbolicTangent<exponential>);
  expand<math::ErfOp>(module, errorFunction<exponential>);
  expand<math::LogOp>(module, logarithm);
  expand<math::ExpOp>(module, exponential);
}

void meshwright::codegen::expandMath(ModuleOp module, Exponential exponential) {
  if (exponential == Exponential::PowerOfTwo)
    expandWith<powerExponential>(module);
  else
    expandWith<polynomialExponential>(module);
}

void meshwright::codegen::expandTrigonometry(ModuleOp module) {
  expand<math::SinOp>(module, [](Real x) { return sine(x, 0); });
  expand<math::CosOp>(module, [](Real x) { return sine(x, 1); });
}
