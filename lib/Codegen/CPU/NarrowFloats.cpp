//===- NarrowFloats.cpp - bf16 and f16 in vector registers ------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Codegen/CPU/NarrowFloats.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::codegen;

bool cpu::isNarrowFloat(Type element) { return element.isBF16() || element.isF16(); }

Type cpu::registerType(Type element) {
  return isNarrowFloat(element) ? IntegerType::get(element.getContext(), 16) : element;
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

Value cpu::extendBits(OpBuilder &b, Location loc, FloatType from, Value bits,
                      const VectorTarget &target) {
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
