//===- Arithmetic.cpp - ops on the values of all threads --------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Arithmetic.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/ADT/TypeSwitch.h"

#include <cmath>
#include <cstring>

using namespace mlir;
using namespace meshwright;
using namespace meshwright::test;

//===----------------------------------------------------------------------===//
// Numbers as bits
//===----------------------------------------------------------------------===//

template <typename T> static T numberOf(uint64_t bits) {
  T value;
  std::memcpy(&value, &bits, sizeof(T));
  return value;
}
template <typename T> static uint64_t bitsOf(T value) {
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(T));
  return bits;
}

double test::toDouble(uint64_t bits, Type type) {
  if (type.isF32())
    return numberOf<float>(bits);
  if (type.isF64())
    return numberOf<double>(bits);
  if (type.isBF16())
    return numberOf<float>(bits << 16);
  return APFloat(APFloat::IEEEhalf(), APInt(16, bits)).convertToDouble();
}

/// Rounds to nearest, ties to even.
static uint64_t fromDouble(double value, Type type) {
  if (type.isF32())
    return bitsOf(float(value));
  if (type.isF64())
    return bitsOf(value);
  bool lossy;
  APFloat number(value);
  number.convert(cast<FloatType>(type).getFloatSemantics(), APFloat::rmNearestTiesToEven, &lossy);
  return number.bitcastToAPInt().getZExtValue();
}

static unsigned widthOf(Type type) { return type.isIndex() ? 64 : type.getIntOrFloatBitWidth(); }
static uint64_t truncate(uint64_t value, unsigned width) {
  return width == 64 ? value : value & ((uint64_t(1) << width) - 1);
}
static int64_t extend(uint64_t value, unsigned width) {
  return int64_t(value << (64 - width)) >> (64 - width);
}

template <typename T> static T larger(T x, T y) {
  return std::isnan(x) ? x : std::isnan(y) ? y : std::max(x, y);
}
template <typename T> static T smaller(T x, T y) {
  return std::isnan(x) ? x : std::isnan(y) ? y : std::min(x, y);
}

//===----------------------------------------------------------------------===//
// Ops
//===----------------------------------------------------------------------===//

namespace {
/// The operands and results of one op, element by element.
struct Elements {
  Operation *op;
  ArrayRef<const Lanes *> in;
  ArrayRef<Lanes *> out;

  Type type(unsigned operand) const {
    return getElementTypeOrSelf(op->getOperand(operand).getType());
  }
  Type resultType() const { return getElementTypeOrSelf(op->getResult(0).getType()); }

  template <typename Fn> bool map(Fn fn) const {
    for (size_t i = 0; i < out[0]->bits.size(); ++i)
      out[0]->bits[i] = fn(i);
    return true;
  }
  /// Arithmetic on f32 or f64 in that type.
  template <typename Fn> bool unary(Fn fn) const {
    if (resultType().isF64())
      return map([&](size_t i) { return bitsOf(double(fn(numberOf<double>(in[0]->bits[i])))); });
    return map([&](size_t i) { return bitsOf(float(fn(numberOf<float>(in[0]->bits[i])))); });
  }
  template <typename Fn> bool binary(Fn fn) const {
    if (resultType().isF64())
      return map([&](size_t i) {
        return bitsOf(
            double(fn(numberOf<double>(in[0]->bits[i]), numberOf<double>(in[1]->bits[i]))));
      });
    return map([&](size_t i) {
      return bitsOf(float(fn(numberOf<float>(in[0]->bits[i]), numberOf<float>(in[1]->bits[i]))));
    });
  }
  template <typename Fn> bool integers(Fn fn) const {
    unsigned width = widthOf(resultType());
    return map([&](size_t i) { return truncate(fn(in[0]->bits[i], in[1]->bits[i]), width); });
  }
  /// Integers with their sign.
  template <typename Fn> bool integersSigned(Fn fn) const {
    unsigned width = widthOf(type(0));
    return map([&](size_t i) {
      return truncate(uint64_t(fn(extend(in[0]->bits[i], width), extend(in[1]->bits[i], width))),
                      widthOf(resultType()));
    });
  }
};
} // namespace

static bool constant(arith::ConstantOp op, const Elements &e) {
  SmallVector<uint64_t> values;
  auto add = [&](Attribute attr) {
    if (auto number = dyn_cast<FloatAttr>(attr))
      values.push_back(number.getValue().bitcastToAPInt().getZExtValue());
    else
      values.push_back(
          truncate(uint64_t(cast<IntegerAttr>(attr).getInt()), widthOf(e.resultType())));
  };
  if (auto dense = dyn_cast<DenseElementsAttr>(op.getValue()))
    for (Attribute attr : dense.getValues<Attribute>())
      add(attr);
  else
    add(op.getValue());
  return e.map([&](size_t i) { return values[i % values.size()]; });
}

static bool shapes(Operation *op, const Elements &e, int64_t threads) {
  auto each = [&](auto fn) {
    for (int64_t t = 0; t < threads; ++t)
      for (unsigned k = 0; k < e.out[0]->width; ++k)
        e.out[0]->at(t)[k] = fn(t, k);
    return true;
  };
  return llvm::TypeSwitch<Operation *, bool>(op)
      .Case<vector::BroadcastOp>([&](auto) {
        return each([&](int64_t t, unsigned k) { return e.in[0]->at(t)[k % e.in[0]->width]; });
      })
      .Case<vector::ExtractOp>([&](vector::ExtractOp extract) {
        auto position = extract.getStaticPosition();
        if (position.size() != 1 || ShapedType::isDynamic(position[0]))
          return false;
        return each([&](int64_t t, unsigned) { return e.in[0]->at(t)[position[0]]; });
      })
      .Case<vector::ShuffleOp>([&](vector::ShuffleOp shuffle) {
        return each([&](int64_t t, unsigned k) {
          int64_t from = shuffle.getMask()[k], width = e.in[0]->width;
          return from < width ? e.in[0]->at(t)[from] : e.in[1]->at(t)[from - width];
        });
      })
      .Case<vector::FromElementsOp>(
          [&](auto) { return each([&](int64_t t, unsigned k) { return *e.in[k]->at(t); }); })
      .Case<LLVM::ExtractValueOp>([&](LLVM::ExtractValueOp extract) {
        auto position = extract.getPosition();
        return position.size() == 1 &&
               each([&](int64_t t, unsigned) { return e.in[0]->at(t)[position[0]]; });
      })
      .Case<LLVM::BitcastOp>([&](auto) {
        // Two of 16 bits from a register, or into one.
        return each([&](int64_t t, unsigned k) {
          const uint64_t *from = e.in[0]->at(t);
          return e.in[0]->width == 2 ? from[0] | from[1] << 16
                 : e.out[0]->width == 2 ? from[0] >> 16 * k & 0xFFFF
                                        : from[0];
        });
      })
      .Default([](auto) { return false; });
}

/// Functions of the hardware that have no op.
static bool intrinsic(LLVM::CallIntrinsicOp op, const Elements &e) {
  if (op.getIntrin() != "llvm.nvvm.ex2.approx.ftz.f32")
    return false;
  auto flushed = [](float x) {
    return std::abs(x) < std::numeric_limits<float>::min() ? std::copysign(0.0f, x) : x;
  };
  return e.map([&](size_t i) {
    return bitsOf(flushed(std::exp2(flushed(numberOf<float>(e.in[0]->bits[i])))));
  });
}

bool test::compute(Operation *op, ArrayRef<const Lanes *> in, ArrayRef<Lanes *> out,
                   int64_t threads) {
  Elements e{op, in, out};
  return llvm::TypeSwitch<Operation *, bool>(op)
      .Case<arith::ConstantOp>([&](arith::ConstantOp op) { return constant(op, e); })
      .Case<arith::AddFOp>([&](auto) { return e.binary([](auto x, auto y) { return x + y; }); })
      .Case<arith::SubFOp>([&](auto) { return e.binary([](auto x, auto y) { return x - y; }); })
      .Case<arith::MulFOp>([&](auto) { return e.binary([](auto x, auto y) { return x * y; }); })
      .Case<arith::DivFOp>([&](auto) { return e.binary([](auto x, auto y) { return x / y; }); })
      .Case<arith::MaximumFOp>(
          [&](auto) { return e.binary([](auto x, auto y) { return larger(x, y); }); })
      .Case<arith::MinimumFOp>(
          [&](auto) { return e.binary([](auto x, auto y) { return smaller(x, y); }); })
      .Case<math::CopySignOp>(
          [&](auto) { return e.binary([](auto x, auto y) { return std::copysign(x, y); }); })
      .Case<arith::NegFOp>([&](auto) { return e.unary([](auto x) { return -x; }); })
      .Case<math::AbsFOp>([&](auto) { return e.unary([](auto x) { return std::abs(x); }); })
      .Case<math::SqrtOp>([&](auto) { return e.unary([](auto x) { return std::sqrt(x); }); })
      .Case<math::RsqrtOp>([&](auto) { return e.unary([](auto x) { return 1 / std::sqrt(x); }); })
      .Case<math::Exp2Op>([&](auto) { return e.unary([](auto x) { return std::exp2(x); }); })
      .Case<math::CtPopOp>([&](auto) {
        return e.map([&](size_t i) { return uint64_t(llvm::popcount(in[0]->bits[i])); });
      })
      .Case<math::RoundEvenOp>(
          [&](auto) { return e.unary([](auto x) { return std::nearbyint(x); }); })
      .Case<math::FmaOp>([&](auto) {
        bool wide = e.resultType().isF64();
        return e.map([&](size_t i) {
          uint64_t x = in[0]->bits[i], y = in[1]->bits[i], z = in[2]->bits[i];
          return wide
                     ? bitsOf(
                           std::fma(numberOf<double>(x), numberOf<double>(y), numberOf<double>(z)))
                     : bitsOf(std::fma(numberOf<float>(x), numberOf<float>(y), numberOf<float>(z)));
        });
      })
      .Case<arith::CmpFOp>([&](arith::CmpFOp compare) {
        return e.map([&](size_t i) -> uint64_t {
          return arith::applyCmpPredicate(compare.getPredicate(),
                                          APFloat(toDouble(in[0]->bits[i], e.type(0))),
                                          APFloat(toDouble(in[1]->bits[i], e.type(1))));
        });
      })
      .Case<arith::CmpIOp>([&](arith::CmpIOp compare) {
        unsigned width = widthOf(e.type(0));
        return e.map([&](size_t i) -> uint64_t {
          return arith::applyCmpPredicate(compare.getPredicate(), APInt(width, in[0]->bits[i]),
                                          APInt(width, in[1]->bits[i]));
        });
      })
      .Case<arith::SelectOp>([&](auto) {
        // The condition may be one for a whole vector.
        unsigned times = out[0]->width / in[0]->width;
        return e.map(
            [&](size_t i) { return in[0]->bits[i / times] ? in[1]->bits[i] : in[2]->bits[i]; });
      })
      .Case<arith::ExtFOp, arith::TruncFOp>([&](auto) {
        return e.map([&](size_t i) {
          return fromDouble(toDouble(in[0]->bits[i], e.type(0)), e.resultType());
        });
      })
      .Case<arith::SIToFPOp>([&](auto) {
        return e.map([&](size_t i) {
          return fromDouble(double(extend(in[0]->bits[i], widthOf(e.type(0)))), e.resultType());
        });
      })
      .Case<arith::UIToFPOp>([&](auto) {
        return e.map([&](size_t i) { return fromDouble(double(in[0]->bits[i]), e.resultType()); });
      })
      .Case<arith::FPToSIOp>([&](auto) {
        // Saturates, and NaN is 0, as on a GPU.
        unsigned width = widthOf(e.resultType());
        double limit = std::ldexp(1.0, width - 1);
        return e.map([&](size_t i) -> uint64_t {
          double x = toDouble(in[0]->bits[i], e.type(0));
          if (std::isnan(x))
            return 0;
          int64_t whole = x >= limit    ? int64_t((uint64_t(1) << (width - 1)) - 1)
                          : x <= -limit ? -int64_t(uint64_t(1) << (width - 1))
                                        : int64_t(x);
          return truncate(uint64_t(whole), width);
        });
      })
      .Case<arith::ExtUIOp, arith::TruncIOp, arith::IndexCastOp, arith::IndexCastUIOp,
            arith::ExtSIOp>([&](auto cast) {
        bool sign = isa<arith::ExtSIOp, arith::IndexCastOp>(cast.getOperation());
        unsigned from = widthOf(e.type(0)), to = widthOf(e.resultType());
        return e.map([&](size_t i) {
          uint64_t x = in[0]->bits[i];
          return truncate(sign ? uint64_t(extend(x, from)) : x, to);
        });
      })
      .Case<arith::BitcastOp>([&](auto) { return e.map([&](size_t i) { return in[0]->bits[i]; }); })
      .Case<arith::AddIOp>([&](auto) { return e.integers([](auto x, auto y) { return x + y; }); })
      .Case<arith::SubIOp>([&](auto) { return e.integers([](auto x, auto y) { return x - y; }); })
      .Case<arith::MulIOp>([&](auto) { return e.integers([](auto x, auto y) { return x * y; }); })
      .Case<arith::AndIOp>([&](auto) { return e.integers([](auto x, auto y) { return x & y; }); })
      .Case<arith::OrIOp>([&](auto) { return e.integers([](auto x, auto y) { return x | y; }); })
      .Case<arith::XOrIOp>([&](auto) { return e.integers([](auto x, auto y) { return x ^ y; }); })
      .Case<arith::DivUIOp>(
          [&](auto) { return e.integers([](auto x, auto y) { return y ? x / y : 0; }); })
      .Case<arith::RemUIOp>(
          [&](auto) { return e.integers([](auto x, auto y) { return y ? x % y : 0; }); })
      .Case<arith::ShLIOp>([&](auto) { return e.integers([](auto x, auto y) { return x << y; }); })
      .Case<arith::ShRUIOp>([&](auto) { return e.integers([](auto x, auto y) { return x >> y; }); })
      .Case<arith::ShRSIOp>(
          [&](auto) { return e.integersSigned([](auto x, auto y) { return x >> y; }); })
      .Case<arith::MinSIOp>(
          [&](auto) { return e.integersSigned([](auto x, auto y) { return std::min(x, y); }); })
      .Case<arith::MaxSIOp>(
          [&](auto) { return e.integersSigned([](auto x, auto y) { return std::max(x, y); }); })
      .Case<arith::MinUIOp>(
          [&](auto) { return e.integers([](auto x, auto y) { return std::min(x, y); }); })
      .Case<arith::MulUIExtendedOp>([&](auto) {
        for (size_t i = 0; i < out[0]->bits.size(); ++i) {
          uint64_t product = in[0]->bits[i] * in[1]->bits[i];
          out[0]->bits[i] = truncate(product, 32);
          out[1]->bits[i] = product >> 32;
        }
        return widthOf(e.resultType()) == 32;
      })
      .Case<LLVM::CallIntrinsicOp>([&](LLVM::CallIntrinsicOp op) { return intrinsic(op, e); })
      .Default([&](Operation *op) { return shapes(op, e, threads); });
}
