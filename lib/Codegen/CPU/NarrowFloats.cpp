//===- NarrowFloats.cpp - bf16, f16 and 8 bits in vector registers ----------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Codegen/CPU/NarrowFloats.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::codegen;

static bool is8Bits(Type element) { return isa<Float8E4M3FNType, Float8E5M2Type>(element); }

bool cpu::isNarrowFloat(Type element) {
  return element.isBF16() || element.isF16() || is8Bits(element);
}

Type cpu::registerType(Type element) {
  return isNarrowFloat(element) ? IntegerType::get(element.getContext(), is8Bits(element) ? 8 : 16)
                                : element;
}

namespace {
/// Integer arithmetic on i32 of one shape, scalar or vector.
struct Word {
  OpBuilder *b;
  Location loc;
  Value v;

  Word with(Value value) const { return {b, loc, value}; }
  Word constant(uint32_t value) const {
    TypedAttr scalar = b->getI32IntegerAttr(int32_t(value));
    if (auto vector = dyn_cast<VectorType>(v.getType()))
      scalar = DenseElementsAttr::get(vector, Attribute(scalar));
    return with(arith::ConstantOp::create(*b, loc, scalar));
  }
};
} // namespace

static Type shapedLike(Value value, Type element) {
  auto vector = dyn_cast<VectorType>(value.getType());
  return vector ? Type(VectorType::get(vector.getShape(), element)) : element;
}

template <typename Op> static Word binary(Word x, Word y) {
  return x.with(Op::create(*x.b, x.loc, x.v, y.v));
}
static Word operator+(Word x, Word y) { return binary<arith::AddIOp>(x, y); }
static Word operator-(Word x, Word y) { return binary<arith::SubIOp>(x, y); }
static Word operator&(Word x, uint32_t y) { return binary<arith::AndIOp>(x, x.constant(y)); }
static Word operator|(Word x, Word y) { return binary<arith::OrIOp>(x, y); }
static Word operator<<(Word x, uint32_t y) { return binary<arith::ShLIOp>(x, x.constant(y)); }
static Word operator>>(Word x, uint32_t y) { return binary<arith::ShRUIOp>(x, x.constant(y)); }
static Word atLeast(Word x, uint32_t limit, Word then, Word otherwise) {
  Value condition =
      arith::CmpIOp::create(*x.b, x.loc, arith::CmpIPredicate::uge, x.v, x.constant(limit).v);
  return x.with(arith::SelectOp::create(*x.b, x.loc, condition, then.v, otherwise.v));
}
static Value asFloat(Word x) {
  return arith::BitcastOp::create(*x.b, x.loc, shapedLike(x.v, x.b->getF32Type()), x.v);
}
static Word asWord(OpBuilder &b, Location loc, Value value) {
  return {&b, loc, arith::BitcastOp::create(b, loc, shapedLike(value, b.getI32Type()), value)};
}

namespace {
/// A type of 8 bits as its numbers are in f32.
struct Narrow8 {
  uint32_t digits; ///< behind the point
  int bias;
  uint32_t notFinite;  ///< the first bits that are no number, without the sign
  uint32_t overflow;   ///< the first bits of f32 that are rounded to those
  uint32_t nan;
  bool isInfinite; ///< whether `notFinite` is infinity

  uint32_t cut() const { return 23 - digits; }
  /// The difference of the biases, as f32's exponent.
  uint32_t shift() const { return uint32_t(127 - bias) << 23; }
};
} // namespace

static Narrow8 narrow8(FloatType type) {
  if (isa<Float8E4M3FNType>(type))
    return {3, 7, 0x7f, 0x43e80001, 0x7f, false}; // 464 is half-way, and becomes 448
  return {2, 15, 0x7c, 0x47700000, 0x7e, true};   // 61440 is half-way, and becomes infinite
}

static Value extend8(OpBuilder &b, Location loc, FloatType from, Value bits) {
  Narrow8 type = narrow8(from);
  Word x{&b, loc, arith::ExtUIOp::create(b, loc, shapedLike(bits, b.getI32Type()), bits)};
  // As of f16: the exponent at its position is too small, also of subnormal numbers.
  Word magnitude = (x & 0x7f) << type.cut();
  Value power = asFloat(x.constant((uint32_t(127) << 23) + type.shift()));
  Word scaled = asWord(b, loc, arith::MulFOp::create(b, loc, asFloat(magnitude), power));
  Word special = scaled | scaled.constant(type.isInfinite ? 0x7f800000 : 0x7fc00000);
  Word number = atLeast(magnitude, type.notFinite << type.cut(), special, scaled);
  return asFloat(number | ((x & 0x80) << 24));
}

static Word roundTo8(FloatType to, Word x) {
  Narrow8 type = narrow8(to);
  Word size = x & 0x7fffffff;
  Word odd = (size >> type.cut()) & 1;
  Word normal = (size - size.constant(type.shift() - ((1u << (type.cut() - 1)) - 1)) + odd) >>
                type.cut();
  // Adding this number leaves the last bit where that of subnormal numbers is; the processor rounds there.
  uint32_t unit = uint32_t(127 + 1 - type.bias - int(type.digits) + 23) << 23;
  Word sum = asWord(*x.b, x.loc, arith::AddFOp::create(*x.b, x.loc, asFloat(size),
                                                       asFloat(size.constant(unit))));
  Word result = atLeast(size, type.shift() + (1u << 23), normal, sum - size.constant(unit));
  result = atLeast(size, type.overflow, size.constant(type.notFinite), result);
  result = atLeast(size, 0x7f800001, size.constant(type.nan), result);
  return result | ((x >> 24) & 0x80);
}

Value cpu::extendBits(OpBuilder &b, Location loc, FloatType from, Value bits,
                      const VectorTarget &target) {
  if (is8Bits(from))
    return extend8(b, loc, from, bits);
  if (from.isF16() && target.convertsF16) {
    Value numbers = arith::BitcastOp::create(b, loc, shapedLike(bits, from), bits);
    return arith::ExtFOp::create(b, loc, shapedLike(bits, b.getF32Type()), numbers);
  }
  Word x{&b, loc, arith::ExtUIOp::create(b, loc, shapedLike(bits, b.getI32Type()), bits)};
  if (from.isBF16())
    return asFloat(x << 16);
  // The exponent moved to its position is 112 too small, also of subnormal numbers.
  Word magnitude = (x & 0x7fff) << 13;
  Value two112 = asFloat(x.constant((127 + 112) << 23));
  Word scaled = asWord(b, loc, arith::MulFOp::create(b, loc, asFloat(magnitude), two112));
  Word number = atLeast(magnitude, 0x7c00 << 13, scaled | scaled.constant(0x7f800000), scaled);
  return asFloat(number | ((x & 0x8000) << 16));
}

static Word roundToBF16(Word x) {
  Word rounded = (x + x.constant(0x7fff) + ((x >> 16) & 1)) >> 16;
  Word quiet = (x >> 16) | x.constant(0x40);
  return atLeast(x & 0x7fffffff, 0x7f800001, quiet, rounded);
}

static Word roundToF16(Word x) {
  Word size = x & 0x7fffffff;
  Word normal = (size - size.constant(0x38000000 - 0xfff) + ((size >> 13) & 1)) >> 13;
  // Adding a half leaves the last bit at 2^-24, and the processor rounds there.
  Value half = asFloat(size.constant(0x3f000000));
  Word shifted = asWord(*x.b, x.loc, arith::AddFOp::create(*x.b, x.loc, asFloat(size), half));
  Word result = atLeast(size, 0x38800000, normal, shifted - size.constant(0x3f000000));
  result = atLeast(size, 0x47800000, size.constant(0x7c00), result);
  result = atLeast(size, 0x7f800001, size.constant(0x7e00), result);
  return result | ((x >> 16) & 0x8000);
}

Value cpu::roundToBits(OpBuilder &b, Location loc, FloatType to, Value value,
                       const VectorTarget &target) {
  if (is8Bits(to)) {
    Type bytes = shapedLike(value, b.getI8Type());
    return arith::TruncIOp::create(b, loc, bytes, roundTo8(to, asWord(b, loc, value)).v);
  }
  Type bits = shapedLike(value, b.getI16Type());
  // Of single numbers only f16's conversion is cheap in LLVM.
  bool native =
      to.isF16() ? target.convertsF16 : target.convertsBF16 && isa<VectorType>(value.getType());
  if (native) {
    Value rounded = arith::TruncFOp::create(b, loc, shapedLike(value, to), value);
    return arith::BitcastOp::create(b, loc, bits, rounded);
  }
  Word x = asWord(b, loc, value);
  return arith::TruncIOp::create(b, loc, bits, (to.isBF16() ? roundToBF16(x) : roundToF16(x)).v);
}
