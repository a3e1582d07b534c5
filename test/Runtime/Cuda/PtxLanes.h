//===- PtxLanes.h - what instructions compute in a lane --------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// After NVIDIA's PTX ISA. An instruction is a type with a function `of` one lane's values.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_TEST_RUNTIME_CUDA_PTXLANES_H
#define MESHWRIGHT_TEST_RUNTIME_CUDA_PTXLANES_H

#include "PtxMachine.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

namespace ptx {

//===----------------------------------------------------------------------===//
// Rows of registers as values
//===----------------------------------------------------------------------===//

struct Bf16 {
  uint16_t bits;
};
/// Two of 16 bits in a 32-bit register, the first in the low half.
template <typename T> struct Pair {
  uint32_t bits;
};

/// How a value of type T lies in a register.
template <typename T> struct Register {
  static constexpr bool isWide = sizeof(T) == 8;
  using Bits = std::conditional_t<isWide, uint64_t, uint32_t>;
  static T get(Bits bits) {
    if constexpr (sizeof(T) == sizeof(Bits)) {
      T value;
      memcpy(&value, &bits, sizeof(T));
      return value;
    } else {
      auto narrow = uint16_t(bits);
      T value;
      memcpy(&value, &narrow, sizeof(T));
      return value;
    }
  }
  static Bits put(T value) {
    if constexpr (sizeof(T) == sizeof(Bits)) {
      Bits bits;
      memcpy(&bits, &value, sizeof(T));
      return bits;
    } else {
      uint16_t narrow;
      memcpy(&narrow, &value, sizeof(T));
      return narrow;
    }
  }
};
/// A predicate: 0 or 1.
struct Truth {
  bool value;
};
template <> struct Register<Truth> {
  static constexpr bool isWide = false;
  static Truth get(uint32_t bits) { return {bits != 0}; }
  static uint32_t put(Truth value) { return value.value; }
};

//===----------------------------------------------------------------------===//
// Functions of a lane
//===----------------------------------------------------------------------===//

inline float toFloat(Bf16 value) {
  uint32_t bits = uint32_t(value.bits) << 16;
  float result;
  memcpy(&result, &bits, 4);
  return result;
}
inline Bf16 toBf16(float value) {
  uint32_t bits;
  memcpy(&bits, &value, 4);
  if (value != value)
    return {0x7FFF};
  return {uint16_t((bits + 0x7FFF + (bits >> 16 & 1)) >> 16)};
}
template <typename T> T low(Pair<T> p) { return Register<T>::get(p.bits); }
template <typename T> T high(Pair<T> p) { return Register<T>::get(p.bits >> 16); }
template <typename T> Pair<T> pair(T lowHalf, T highHalf) {
  return {Register<T>::put(lowHalf) | Register<T>::put(highHalf) << 16};
}

template <typename T> auto unsignedOf(T value) {
  return static_cast<std::make_unsigned_t<T>>(value);
}

// Integers wrap around, so they are computed without sign.
struct Add {
  template <typename T> static T of(T a, T b) {
    if constexpr (std::is_integral_v<T>)
      return T(unsignedOf(a) + unsignedOf(b));
    else
      return a + b;
  }
  static Bf16 of(Bf16 a, Bf16 b) { return toBf16(toFloat(a) + toFloat(b)); }
  template <typename T> static Pair<T> of(Pair<T> a, Pair<T> b) {
    return pair<T>(of(low(a), low(b)), of(high(a), high(b)));
  }
};
struct Sub {
  template <typename T> static T of(T a, T b) {
    if constexpr (std::is_integral_v<T>)
      return T(unsignedOf(a) - unsignedOf(b));
    else
      return a - b;
  }
  static Bf16 of(Bf16 a, Bf16 b) { return toBf16(toFloat(a) - toFloat(b)); }
  template <typename T> static Pair<T> of(Pair<T> a, Pair<T> b) {
    return pair<T>(of(low(a), low(b)), of(high(a), high(b)));
  }
};
struct Mul {
  template <typename T> static T of(T a, T b) { return a * b; }
  static Bf16 of(Bf16 a, Bf16 b) { return toBf16(toFloat(a) * toFloat(b)); }
  template <typename T> static Pair<T> of(Pair<T> a, Pair<T> b) {
    return pair<T>(of(low(a), low(b)), of(high(a), high(b)));
  }
};
struct MulLow {
  template <typename T> static T of(T a, T b) { return T(uint64_t(a) * uint64_t(b)); }
};
struct MulHigh {
  template <typename T> static T of(T a, T b) {
    using Wide = std::conditional_t<sizeof(T) == 8,
                                    std::conditional_t<std::is_signed_v<T>, __int128, unsigned __int128>,
                                    std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>>;
    return T(Wide(a) * Wide(b) >> (8 * sizeof(T)));
  }
};
template <typename Wide> struct MulWide {
  template <typename T> static Wide of(T a, T b) { return Wide(a) * Wide(b); }
};
struct MadLow {
  template <typename T> static T of(T a, T b, T c) {
    return T(uint64_t(a) * uint64_t(b) + uint64_t(c));
  }
};
template <typename Wide> struct MadWide {
  template <typename T> static Wide of(T a, T b, Wide c) {
    return Wide(uint64_t(Wide(a) * Wide(b)) + uint64_t(c));
  }
};
struct Fma {
  static float of(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
  static double of(double a, double b, double c) { return __builtin_fma(a, b, c); }
  static Bf16 of(Bf16 a, Bf16 b, Bf16 c) {
    return toBf16(float(double(toFloat(a)) * toFloat(b) + toFloat(c)));
  }
  static _Float16 of(_Float16 a, _Float16 b, _Float16 c) {
    return _Float16(double(a) * double(b) + double(c));
  }
  template <typename T> static Pair<T> of(Pair<T> a, Pair<T> b, Pair<T> c) {
    return pair<T>(of(low(a), low(b), low(c)), of(high(a), high(b), high(c)));
  }
};
struct Div {
  template <typename T> static T of(T a, T b) {
    if constexpr (std::is_integral_v<T>)
      return b == 0 ? T(-1) : T(a / b);
    else
      return a / b;
  }
};
struct Rem {
  template <typename T> static T of(T a, T b) { return b == 0 ? a : T(a % b); }
};
struct Neg {
  template <typename T> static T of(T a) { return -a; }
};
struct Abs {
  template <typename T> static T of(T a) { return a < 0 ? -a : a; }
  static float of(float a) { return std::fabs(a); }
};
struct Sqrt {
  template <typename T> static T of(T a) { return std::sqrt(a); }
};
struct PowerOfTwo {
  template <typename T> static T of(T a) { return std::exp2(a); }
};
struct CountBits {
  template <typename T> static uint32_t of(T a) { return uint32_t(__builtin_popcountll(a)); }
};
/// 2^x; numbers smaller than normal ones are zero, as an operand and as the result.
struct Exp2 {
  static float of(float a) {
    auto flushed = [](float x) {
      return std::fabs(x) < std::numeric_limits<float>::min() ? std::copysign(0.0f, x) : x;
    };
    return flushed(std::exp2(flushed(a)));
  }
};
struct Reciprocal {
  template <typename T> static T of(T a) { return T(1) / a; }
};
// Numbers win over NaN, but not in the variant with NaN in its name.
struct Max {
  template <typename T> static T of(T a, T b) { return std::max(a, b); }
  static float of(float a, float b) { return std::fmax(a, b); }
};
struct Min {
  template <typename T> static T of(T a, T b) { return std::min(a, b); }
  static float of(float a, float b) { return std::fmin(a, b); }
};
/// What `F` does to numbers of 32 bits, for those of 16 and pairs of them.
template <typename F> struct OfHalves {
  static Bf16 of(Bf16 a, Bf16 b) { return toBf16(F::of(toFloat(a), toFloat(b))); }
  static _Float16 of(_Float16 a, _Float16 b) { return _Float16(F::of(float(a), float(b))); }
  template <typename T> static Pair<T> of(Pair<T> a, Pair<T> b) {
    return pair<T>(of(low(a), low(b)), of(high(a), high(b)));
  }
};
struct MaxNaN : OfHalves<MaxNaN> {
  using OfHalves::of;
  static float of(float a, float b) { return a != a ? a : b != b ? b : std::fmax(a, b); }
};
struct MinNaN : OfHalves<MinNaN> {
  using OfHalves::of;
  static float of(float a, float b) { return a != a ? a : b != b ? b : std::fmin(a, b); }
};
struct And {
  template <typename T> static T of(T a, T b) { return a & b; }
  static Truth of(Truth a, Truth b) { return {a.value && b.value}; }
};
struct Or {
  template <typename T> static T of(T a, T b) { return a | b; }
  static Truth of(Truth a, Truth b) { return {a.value || b.value}; }
};
struct Xor {
  template <typename T> static T of(T a, T b) { return a ^ b; }
  static Truth of(Truth a, Truth b) { return {a.value != b.value}; }
};
struct Not {
  template <typename T> static T of(T a) { return T(~a); }
  static Truth of(Truth a) { return {!a.value}; }
};
// Amounts beyond the width shift everything out.
struct ShiftLeft {
  template <typename T> static T of(T a, uint32_t by) {
    return by >= 8 * sizeof(T) ? T(0) : T(a << by);
  }
};
struct ShiftRight {
  template <typename T> static T of(T a, uint32_t by) {
    if (by >= 8 * sizeof(T))
      return std::is_signed_v<T> && a < T(0) ? T(-1) : T(0);
    return T(a >> by);
  }
};
struct Field {
  template <typename T> static T of(T a, uint32_t begin, uint32_t count) {
    begin &= 255;
    count &= 255;
    constexpr uint32_t all = 8 * sizeof(T);
    T shifted = ShiftRight::of(a, begin);
    if (count == 0 || count >= all)
      return count ? shifted : T(0);
    // With a sign the field's highest bit is the sign of the result.
    return T(T(unsignedOf(shifted) << (all - count)) >> (all - count));
  }
};
struct Same {
  template <typename T> static T of(T a) { return a; }
};
struct Select {
  template <typename T> static T of(T a, T b, Truth chosen) { return chosen.value ? a : b; }
};
// prmt: bytes of two registers by number.
struct Permute {
  static uint32_t of(uint32_t a, uint32_t b, uint32_t choice) {
    uint64_t bytes = uint64_t(b) << 32 | a;
    uint32_t result = 0;
    for (int i = 0; i < 4; ++i) {
      uint32_t which = choice >> 4 * i & 15;
      uint32_t byte = uint32_t(bytes >> 8 * (which & 7)) & 255;
      if (which & 8)
        byte = byte & 128 ? 255 : 0;
      result |= byte << 8 * i;
    }
    return result;
  }
};

template <typename To> struct Convert {
  template <typename From> static To of(From value) { return To(value); }
};
/// From a float to an integer, which ends at its limits; NaN gives 0.
template <typename To, bool toZero> struct Integer {
  template <typename From> static To of(From value) {
    if (value != value)
      return 0;
    From whole = toZero ? std::trunc(value) : std::nearbyint(value);
    if (whole <= From(std::numeric_limits<To>::min()))
      return std::numeric_limits<To>::min();
    if (whole >= From(std::numeric_limits<To>::max()))
      return std::numeric_limits<To>::max();
    return To(whole);
  }
};
struct Nearest {
  template <typename T> static T of(T a) { return std::nearbyint(a); }
};
struct TowardsZero {
  template <typename T> static T of(T a) { return std::trunc(a); }
};
struct Floor {
  template <typename T> static T of(T a) { return std::floor(a); }
};
struct FromBf16 {
  static float of(Bf16 a) { return toFloat(a); }
};
struct ToBf16 {
  static Bf16 of(float a) { return toBf16(a); }
};
struct ToBf16Pair { // The first operand is the high half.
  static Pair<Bf16> of(float a, float b) { return pair(toBf16(b), toBf16(a)); }
};
struct FromF16 {
  static float of(_Float16 a) { return float(a); }
};
struct ToF16 {
  static _Float16 of(float a) { return _Float16(a); }
};
struct ToF16Pair {
  static Pair<_Float16> of(float a, float b) { return pair(_Float16(b), _Float16(a)); }
};
// The sign of the first, the rest of the second.
struct CopySign {
  static float of(float a, float b) { return std::copysign(b, a); }
  static double of(double a, double b) { return std::copysign(b, a); }
};

// Comparisons: unordered ones, with a u, are true where an operand is NaN.
template <int relation> struct Compare {
  template <typename T> static bool holds(T a, T b) {
    switch (relation) {
    case 0:
      return a == b;
    case 1:
      return a < b || a > b; // Not equal, and both are numbers.
    case 2:
      return a < b;
    case 3:
      return a <= b;
    case 4:
      return a > b;
    default:
      return a >= b;
    }
  }
  template <typename T> static Truth of(T a, T b) { return {holds(a, b)}; }
  static Truth of(Bf16 a, Bf16 b) { return {holds(toFloat(a), toFloat(b))}; }
};
template <int relation> struct CompareUnordered {
  template <typename T> static Truth of(T a, T b) {
    return {a != a || b != b || Compare<relation>::holds(a, b)};
  }
  static Truth of(Bf16 a, Bf16 b) { return of(toFloat(a), toFloat(b)); }
};
struct IsNumber {
  template <typename T> static Truth of(T a, T b) { return {a == a && b == b}; }
};
struct IsNan {
  template <typename T> static Truth of(T a, T b) { return {a != a || b != b}; }
};

} // namespace ptx

#endif // MESHWRIGHT_TEST_RUNTIME_CUDA_PTXLANES_H
