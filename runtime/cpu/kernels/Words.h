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

} // namespace meshwright::cpu::MW_ISA

#endif // MESHWRIGHT_RUNTIME_CPU_KERNELS_WORDS_H
