//===- Simd.h - vectors of the instruction set being compiled for ---------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// Included by sources that are compiled once for each instruction set, with
// MW_ISA naming the namespace. Such sources must not call inline functions or
// templates from outside that namespace, std::min included: the linker keeps one
// copy of each, and it could be the one this machine cannot execute.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_RUNTIME_CPU_KERNELS_SIMD_H
#define MESHWRIGHT_RUNTIME_CPU_KERNELS_SIMD_H

#ifndef MW_ISA
#error "MW_ISA must name the instruction set's namespace"
#endif

#include <stdint.h>
#include <utility>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace meshwright::cpu::MW_ISA {

#if defined(__AVX512F__)
constexpr int kLanes = 16;
#elif defined(__AVX2__)
constexpr int kLanes = 8;
#else
constexpr int kLanes = 4;
#endif

typedef float Floats __attribute__((vector_size(4 * kLanes)));
typedef int32_t Ints __attribute__((vector_size(4 * kLanes)));
typedef uint32_t Words __attribute__((vector_size(4 * kLanes)));
typedef uint64_t Longs __attribute__((vector_size(4 * kLanes)));
typedef float UnalignedFloats __attribute__((vector_size(4 * kLanes), aligned(4), may_alias));

static inline int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }

static inline Floats load(const float *p) { return *reinterpret_cast<const UnalignedFloats *>(p); }
static inline void store(float *p, Floats v) { *reinterpret_cast<UnalignedFloats *>(p) = v; }

static inline Floats loadPadded(const float *p, int64_t left) {
  if (left >= kLanes)
    return load(p);
#if defined(__AVX512F__)
  return _mm512_maskz_loadu_ps(__mmask16((1u << (left > 0 ? left : 0)) - 1), p);
#else
  alignas(64) float padded[kLanes] = {};
  for (int64_t i = 0; i < left; ++i)
    padded[i] = p[i];
  return load(padded);
#endif
}

//===--- narrow types -------------------------------------------------------===//

/// Memory of bf16 and f16. All arithmetic is in f32; `load` extends, `store` rounds
/// to nearest, ties to even, and keeps NaN.
struct BFloat16 {
  uint16_t bits;
};
struct Float16 {
  uint16_t bits;
};
typedef uint16_t Halves __attribute__((vector_size(2 * kLanes)));
typedef uint16_t UnalignedHalves __attribute__((vector_size(2 * kLanes), aligned(2), may_alias));

static inline Floats load(const BFloat16 *p) {
  Halves bits = *reinterpret_cast<const UnalignedHalves *>(p);
  return (Floats)(__builtin_convertvector(bits, Words) << 16);
}
static inline void store(BFloat16 *p, Floats v) {
  Words bits = (Words)v;
  Words rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
  Words quiet = (bits >> 16) | 0x40;
  Words kept = v == v ? rounded : quiet;
  *reinterpret_cast<UnalignedHalves *>(p) = __builtin_convertvector(kept, Halves);
}

static inline Floats load(const Float16 *p) {
#if defined(__AVX512F__)
  return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i *>(p)));
#elif defined(__F16C__)
  return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i *>(p)));
#else
  Words bits =
      __builtin_convertvector(Halves(*reinterpret_cast<const UnalignedHalves *>(p)), Words);
  // The exponent moved to its position is 112 too small, also of subnormal numbers.
  Words magnitude = (bits & 0x7fff) << 13;
  Words number = (Words)((Floats)magnitude * 0x1p112f);
  number = magnitude >= 0x7c00u << 13 ? number | 0x7f800000u : number;
  return (Floats)(number | ((bits & 0x8000) << 16));
#endif
}
static inline void store(Float16 *p, Floats v) {
#if defined(__AVX512F__)
  _mm256_storeu_si256(reinterpret_cast<__m256i *>(p),
                      _mm512_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
#elif defined(__F16C__)
  _mm_storeu_si128(reinterpret_cast<__m128i *>(p),
                   _mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
#else
  Words bits = (Words)v, size = bits & 0x7fffffffu;
  Words normal = (size - (0x38000000u - 0xfff) + ((size >> 13) & 1)) >> 13;
  // Adding a half leaves the last bit at 2^-24, and the processor rounds there.
  Words subnormal = (Words)((Floats)size + 0.5f) - 0x3f000000u;
  Words result = size >= 0x38800000u ? normal : subnormal;
  result = size >= 0x47800000u ? Words{} + 0x7c00u : result;
  result = size > 0x7f800000u ? Words{} + 0x7e00u : result;
  result |= (bits >> 16) & 0x8000;
  *reinterpret_cast<UnalignedHalves *>(p) = __builtin_convertvector(result, Halves);
#endif
}

/// The next kLanes of `left` values, zeros after the last.
template <typename T> static inline Floats loadPadded(const T *p, int64_t left) {
  if (left >= kLanes)
    return load(p);
  alignas(64) T padded[kLanes] = {};
  for (int64_t i = 0; i < left; ++i)
    padded[i] = p[i];
  return load(padded);
}
/// Writes the first `left` of v's values.
template <typename T> static inline void storeFirst(T *p, Floats v, int64_t left) {
  alignas(64) T all[kLanes];
  store(all, v);
  for (int64_t i = 0; i < left; ++i)
    p[i] = all[i];
}

template <int... Lane> static inline Floats splat(float x, std::integer_sequence<int, Lane...>) {
  return Floats{(void(Lane), x)...};
}
static inline Floats splat(float x) { return splat(x, std::make_integer_sequence<int, kLanes>{}); }

template <int... Lane> static inline Ints laneNumbers(std::integer_sequence<int, Lane...>) {
  return Ints{Lane...};
}
static inline Ints laneNumbers() { return laneNumbers(std::make_integer_sequence<int, kLanes>{}); }

/// Both return `b` where either is a NaN.
static inline Floats maximum(Floats a, Floats b) {
#if defined(__AVX512F__)
  return _mm512_max_ps(a, b);
#elif defined(__AVX2__)
  return _mm256_max_ps(a, b);
#elif defined(__SSE2__)
  return _mm_max_ps(a, b);
#else
  return a > b ? a : b;
#endif
}
static inline Floats minimum(Floats a, Floats b) {
#if defined(__AVX512F__)
  return _mm512_min_ps(a, b);
#elif defined(__AVX2__)
  return _mm256_min_ps(a, b);
#elif defined(__SSE2__)
  return _mm_min_ps(a, b);
#else
  return a < b ? a : b;
#endif
}

/// Product of the low halves of each pair of 64-bit lanes; the high halves may
/// hold anything.
static inline Longs multiplyLow(Longs a, Longs b) {
#if defined(__AVX512F__)
  return (Longs)_mm512_mul_epu32((__m512i)a, (__m512i)b);
#elif defined(__AVX2__)
  return (Longs)_mm256_mul_epu32((__m256i)a, (__m256i)b);
#elif defined(__SSE2__)
  return (Longs)_mm_mul_epu32((__m128i)a, (__m128i)b);
#else
  return (a & 0xFFFFFFFFu) * (b & 0xFFFFFFFFu);
#endif
}

template <int Distance, int... Lane>
static inline Floats exchange(Floats v, std::integer_sequence<int, Lane...>) {
  return __builtin_shufflevector(v, v, (Lane ^ Distance)...);
}

template <int Distance = kLanes / 2> static inline float horizontalMaximum(Floats v) {
  v = maximum(v, exchange<Distance>(v, std::make_integer_sequence<int, kLanes>{}));
  if constexpr (Distance > 1)
    return horizontalMaximum<Distance / 2>(v);
  else
    return v[0];
}

template <int Distance = kLanes / 2> static inline float horizontalSum(Floats v) {
  v += exchange<Distance>(v, std::make_integer_sequence<int, kLanes>{});
  if constexpr (Distance > 1)
    return horizontalSum<Distance / 2>(v);
  else
    return v[0];
}

/// exp(x) to 2 units in the last place; 0 where the result would be subnormal,
/// exp(88.37) for anything above, NaN for NaN.
static inline Floats exponential(Floats x) {
  Floats clamped = minimum(splat(88.37f), x);
  // Adding 1.5 * 2^23 rounds to an integer that the low bits then hold.
  const float shift = 12582912.0f;
  Floats rounded = clamped * 1.44269504088896341f + shift;
  Ints exponent = (Ints)rounded;
  rounded -= shift;
  Floats r = clamped - rounded * 0.693359375f;
  r = r - rounded * -2.12194440e-4f;
  // exp(r) on [-ln(2)/2, ln(2)/2], coefficients from Cephes' expf.
  Floats p = splat(1.9875691500e-4f);
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * (r * r) + r;
  p = p + 1.0f;
  Floats result = p * (Floats)((exponent + 127) << 23);
  return x < -87.336544f ? Floats{} : result;
}

/// tanh(x) to 2 units in the last place, after Cephes' tanhf.
static inline Floats hyperbolicTangent(Floats x) {
  Floats square = x * x;
  Floats p = splat(-5.70498872745e-3f);
  p = p * square + 2.06390887954e-2f;
  p = p * square - 5.37397155531e-2f;
  p = p * square + 1.33314422036e-1f;
  p = p * square - 3.33332819422e-1f;
  Floats near = p * square * x + x;
  Floats far = 1.0f - 2.0f / (exponential(x * 2.0f) + 1.0f);
  return square < 0.390625f ? near : far;
}

template <bool High, int Distance, int... Lane>
static inline Floats interleave(Floats a, Floats b, std::integer_sequence<int, Lane...>) {
  return __builtin_shufflevector(a, b,
                                 (High ? (Lane & Distance ? kLanes + Lane : Lane + Distance)
                                       : (Lane & Distance ? kLanes + Lane - Distance : Lane))...);
}

/// Transposes kLanes x kLanes values: swaps off-diagonal blocks of 1, 2, 4, ...
template <int Distance = 1> static inline void transpose(Floats (&rows)[kLanes]) {
  auto lanes = std::make_integer_sequence<int, kLanes>{};
#pragma GCC unroll 16
  for (int i = 0; i < kLanes; ++i) {
    if (i & Distance)
      continue;
    Floats a = rows[i], b = rows[i + Distance];
    rows[i] = interleave<false, Distance>(a, b, lanes);
    rows[i + Distance] = interleave<true, Distance>(a, b, lanes);
  }
  if constexpr (Distance * 2 < kLanes)
    transpose<Distance * 2>(rows);
}

} // namespace meshwright::cpu::MW_ISA

#endif // MESHWRIGHT_RUNTIME_CPU_KERNELS_SIMD_H
