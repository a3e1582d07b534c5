//===- Words.h - what one multiply-add takes from a line of a factor ------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// 32 bits: where the processor multiplies bf16 (AVX512-BF16), two neighbours along the sum, as
// they are stored; else one element, extended to f32.
// Compiled once for each instruction set; see Simd.h.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_RUNTIME_CPU_KERNELS_WORDS_H
#define MESHWRIGHT_RUNTIME_CPU_KERNELS_WORDS_H

#include "Simd.h"
#include "common/plan/ElementType.h"

namespace meshwright::cpu::MW_ISA {

/// How words of elements of T are made and multiplied.
template <typename T> struct WordsOf {
  static constexpr int count = 1; ///< elements of a word

  static Floats multiplyAdd(Floats sum, Floats a, Floats b) { return sum + a * b; }
  /// kLanes words of a line of which `left` elements, 1 at least, are left.
  static Floats along(const T *line, int64_t left) { return loadPadded(line, left); }
  /// A word of each of kLanes lines, of which `lines` are there. Elements of the next depth are
  /// `ld` apart, and `left` are left.
  static Floats across(const T *first, int64_t ld, int64_t left, int64_t lines) {
    (void)ld, (void)left;
    return loadPadded(first, lines);
  }
};

#if defined(__AVX512BF16__)
template <> struct WordsOf<BFloat16> {
  static constexpr int count = 2;

  /// sum + a0 b0 + a1 b1 of each word, in f32 and rounded to nearest. The instruction takes
  /// subnormal numbers for 0, whatever the thread's mode is.
  static Floats multiplyAdd(Floats sum, Floats a, Floats b) {
    return _mm512_dpbf16_ps(sum, (__m512bh)a, (__m512bh)b);
  }
  static Floats along(const BFloat16 *line, int64_t left) {
    if (left >= 2 * kLanes)
      return load(reinterpret_cast<const float *>(line));
    return (Floats)_mm512_maskz_loadu_epi16(__mmask32((uint64_t(1) << left) - 1), line);
  }
  static Floats across(const BFloat16 *first, int64_t ld, int64_t left, int64_t lines) {
    Words words = widened(first, lines);
    if (left > 1)
      words |= widened(first + ld, lines) << 16;
    return (Floats)words;
  }

private:
  static Words widened(const BFloat16 *p, int64_t left) {
    __mmask16 mask = left >= kLanes ? __mmask16(-1) : __mmask16((1u << left) - 1);
    return (Words)_mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(mask, p));
  }
};
#endif

//===--- numbers of 8 bits --------------------------------------------------===//

/// All numbers of a type of 8 bits as bf16.
struct NumbersOf8Bits {
  uint16_t bf16[256] = {};

  constexpr explicit NumbersOf8Bits(uint16_t (*convert)(uint8_t)) {
    for (int bits = 0; bits < 256; ++bits)
      bf16[bits] = convert(uint8_t(bits));
  }
};
struct E4M3 {
  uint8_t bits;
  static constexpr NumbersOf8Bits numbers{f8E4M3ToBf16};
};
struct E5M2 {
  uint8_t bits;
  static constexpr NumbersOf8Bits numbers{f8E5M2ToBf16};
};

/// Words of bf16.
template <typename T> struct WordsOf8Bits {
  static constexpr int count = WordsOf<BFloat16>::count;

  static Floats along(const T *line, int64_t left) {
    BFloat16 numbers[count * kLanes];
    convert(line, smaller(left, count * kLanes), numbers);
    return WordsOf<BFloat16>::along(numbers, left);
  }
  static Floats across(const T *first, int64_t ld, int64_t left, int64_t lines) {
    BFloat16 numbers[count * kLanes];
    for (int64_t next = 0; next < smaller(left, count); ++next)
      convert(first + next * ld, smaller(lines, kLanes), numbers + next * kLanes);
    return WordsOf<BFloat16>::across(numbers, kLanes, left, lines);
  }

private:
  static void convert(const T *from, int64_t count, BFloat16 *to) {
    for (int64_t i = 0; i < count; ++i)
      to[i].bits = T::numbers.bf16[from[i].bits];
  }
};
template <> struct WordsOf<E4M3> : WordsOf8Bits<E4M3> {};
template <> struct WordsOf<E5M2> : WordsOf8Bits<E5M2> {};

} // namespace meshwright::cpu::MW_ISA

#endif // MESHWRIGHT_RUNTIME_CPU_KERNELS_WORDS_H
