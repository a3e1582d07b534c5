//===- ElementType.h - element types and conversions ----------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_RUNTIME_COMMON_ELEMENTTYPE_H
#define MESHWRIGHT_RUNTIME_COMMON_ELEMENTTYPE_H

#include "meshwright/runtime/Fp8.h"

#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>
#include <vector>

namespace meshwright {

enum class ElementType : int32_t {
  F32 = MW_F32,
  F64 = MW_F64,
  BF16 = MW_BF16,
  F16 = MW_F16,
  I32 = MW_I32,
  F8E4M3 = MW_F8E4M3,
  F8E5M2 = MW_F8E5M2,
  I16, ///< of masters, the lower halves, which no call of generated code has
  I8   ///< codes of 8 bits, of optimizer states and of frozen weights, which only collectives have (MW_I8)
};

inline int64_t bytesOf(ElementType type) {
  switch (type) {
  case ElementType::F64:
    return 8;
  case ElementType::F32:
  case ElementType::I32:
    return 4;
  case ElementType::BF16:
  case ElementType::F16:
  case ElementType::I16:
    return 2;
  case ElementType::F8E4M3:
  case ElementType::F8E5M2:
  case ElementType::I8:
    return 1;
  }
  __builtin_unreachable();
}

/// How many elements a tensor of this shape has.
inline int64_t elementsIn(const std::vector<int64_t> &shape) {
  int64_t product = 1;
  for (int64_t size : shape)
    product *= size;
  return product;
}

/// "f32", as plans and messages write it.
inline const char *nameOf(ElementType type) {
  switch (type) {
  case ElementType::F32:
    return "f32";
  case ElementType::F64:
    return "f64";
  case ElementType::BF16:
    return "bf16";
  case ElementType::F16:
    return "f16";
  case ElementType::I32:
    return "i32";
  case ElementType::F8E4M3:
    return "f8E4M3FN";
  case ElementType::F8E5M2:
    return "f8E5M2";
  case ElementType::I16:
    return "i16";
  case ElementType::I8:
    return "i8";
  }
  __builtin_unreachable();
}

inline std::optional<ElementType> elementTypeNamed(std::string_view name) {
  for (ElementType type : {ElementType::F32, ElementType::F64, ElementType::BF16, ElementType::F16,
                           ElementType::I32, ElementType::I16, ElementType::I8, ElementType::F8E4M3,
                           ElementType::F8E5M2})
    if (name == nameOf(type))
      return type;
  return std::nullopt;
}

template <typename To, typename From> To bitsAs(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  std::memcpy(&to, &from, sizeof(To));
  return to;
}

inline float bf16ToFloat(uint16_t bits) { return bitsAs<float>(uint32_t(bits) << 16); }

/// Rounds to nearest, ties to even; NaN stays NaN.
inline uint16_t floatToBf16(float value) {
  uint32_t bits = bitsAs<uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u)
    return uint16_t((bits >> 16) | 0x40);
  return uint16_t((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

/// A number in two: the upper half is its value rounded to bf16, half-way cases away from zero,
/// and its bits are those of the upper half, shifted left by 16, plus the lower one.
inline int16_t lowerHalf(float value) { return int16_t(uint16_t(bitsAs<uint32_t>(value))); }
inline uint16_t upperHalf(float value) {
  uint32_t bits = bitsAs<uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) // NaN stays NaN.
    return uint16_t((bits >> 16) | 0x40);
  return uint16_t((bits + 0x8000) >> 16);
}
/// The number whose upper half is `upper`, a number of bf16.
inline float addLowerHalf(float upper, int32_t lower) {
  return bitsAs<float>(bitsAs<uint32_t>(upper) + uint32_t(lower));
}

/// A finite number of 8 bits with `digits` bits behind the point and this bias, as bf16, which holds all.
constexpr uint16_t f8ToBf16(uint8_t bits, int digits, int bias) {
  int exponent = (bits & 0x7f) >> digits, mantissa = bits & ((1 << digits) - 1);
  int sign = (bits & 0x80) << 8;
  if (exponent == 0 && mantissa == 0)
    return uint16_t(sign);
  for (exponent += exponent == 0 ? 1 : 0, mantissa |= (bits & 0x7f) >> digits ? 1 << digits : 0;
       mantissa >> digits == 0; mantissa <<= 1)
    --exponent;
  return uint16_t(sign | (exponent - bias + 127) << 7 | (mantissa << (7 - digits) & 0x7f));
}
constexpr uint16_t f8E4M3ToBf16(uint8_t bits) {
  return (bits & 0x7f) == 0x7f ? uint16_t((bits & 0x80) << 8 | 0x7fc0) : f8ToBf16(bits, 3, 7);
}
constexpr uint16_t f8E5M2ToBf16(uint8_t bits) {
  return (bits & 0x7c) == 0x7c ? uint16_t((bits & 0x80) << 8 | 0x7f80 | (bits & 3) << 5)
                               : f8ToBf16(bits, 2, 15);
}

inline float f16ToFloat(uint16_t bits) {
  uint32_t sign = uint32_t(bits & 0x8000) << 16;
  uint32_t magnitude = bits & 0x7fff;
  if (magnitude >= 0x7c00) // Infinity and NaN.
    return bitsAs<float>(sign | 0x7f800000u | ((magnitude & 0x3ff) << 13));
  if (magnitude < 0x400) // Zero and subnormals: magnitude * 2^-24, exact in f32.
    return bitsAs<float>(sign | bitsAs<uint32_t>(float(magnitude) * 0x1p-24f));
  return bitsAs<float>(sign | ((magnitude << 13) + 0x38000000u));
}

/// Rounds to nearest, ties to even; too large becomes infinity, NaN stays NaN.
inline uint16_t floatToF16(float value) {
  uint32_t bits = bitsAs<uint32_t>(value);
  uint16_t sign = uint16_t((bits >> 16) & 0x8000);
  bits &= 0x7fffffffu;
  if (bits > 0x7f800000u)
    return sign | 0x7e00;
  if (bits >= 0x47800000u) // At least 2^16.
    return sign | 0x7c00;
  if (bits < 0x38800000u) { // Below 2^-14: adding 0.5 lets the FPU round at 2^-24.
    float shifted = bitsAs<float>(bits) + 0.5f;
    return sign | uint16_t(bitsAs<uint32_t>(shifted) - bitsAs<uint32_t>(0.5f));
  }
  uint32_t odd = (bits >> 13) & 1;
  return sign | uint16_t((bits - 0x38000000u + 0xfff + odd) >> 13);
}

} // namespace meshwright

#endif // MESHWRIGHT_RUNTIME_COMMON_ELEMENTTYPE_H
