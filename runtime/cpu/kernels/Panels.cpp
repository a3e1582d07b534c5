//===- Panels.cpp - packing, and products of what is packed ---------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// Compiled once for each instruction set; see Simd.h.
//
//===----------------------------------------------------------------------===//
#include "Panels.h"
#include "Words.h"
#include "meshwright/runtime/Fp8.h"

namespace meshwright::cpu::MW_ISA {

/// A tile of C has kRows x kVectors vectors: as many independent sums as registers hold beside
/// a row of B, enough to hide the latency of multiply-add.
#if defined(__AVX2__)
constexpr int kRows = kLanes / 2, kVectors = 3;
#else
constexpr int kRows = kLanes, kVectors = 2;
#endif
constexpr int kColumns = kVectors * kLanes;
static_assert(kLineUnit % kColumns == 0 && kLineUnit % kLanes == 0);

//===--- packing -----------------------------------------------------------===//

typedef float HalfOfLanes __attribute__((vector_size(2 * kLanes), aligned(4), may_alias));

/// Writes the word `word` of the lines from `line` on, a multiple of kLanes.
template <int Lines>
static inline void storeWord(float *to, int64_t words, int64_t line, int64_t word, Floats value) {
  float *at = to + line / Lines * Lines * words + word * Lines + line % Lines;
  if constexpr (Lines % kLanes == 0) {
    store(at, value);
  } else {
    static_assert(2 * Lines == kLanes);
    HalfOfLanes halves[2];
    __builtin_memcpy(halves, &value, sizeof(value));
    *reinterpret_cast<HalfOfLanes *>(at) = halves[0];
    *reinterpret_cast<HalfOfLanes *>(at + Lines * words) = halves[1];
  }
}

template <int Lines, typename T> static void packAs(const cpu::Lines &from, float *to) {
  constexpr int64_t kPerWord = WordsOf<T>::count;
  const T *data = static_cast<const T *>(from.data);
  int64_t words = (from.depth + kPerWord - 1) / kPerWord;
  for (int64_t line = 0; line < from.lines; line += kLanes) {
    int64_t there = smaller(from.lines - line, kLanes);
    if (!from.alongDepth) {
      const T *first = data + line;
      for (int64_t word = 0; word < words; ++word, first += kPerWord * from.ld)
        storeWord<Lines>(to, words, line, word,
                         WordsOf<T>::across(first, from.ld, from.depth - word * kPerWord, there));
      continue;
    }
    for (int64_t word = 0; word < words; word += kLanes) {
      const T *first = data + line * from.ld + word * kPerWord;
      Floats block[kLanes];
      int64_t left = from.depth - word * kPerWord;
#pragma GCC unroll 16
      for (int i = 0; i < kLanes; ++i)
        block[i] = i < there ? WordsOf<T>::along(first + i * from.ld, left) : Floats{};
      transpose(block);
      if (word + kLanes <= words) {
#pragma GCC unroll 16
        for (int i = 0; i < kLanes; ++i)
          storeWord<Lines>(to, words, line, word + i, block[i]);
      } else {
        for (int i = 0; i < words - word; ++i)
          storeWord<Lines>(to, words, line, word + i, block[i]);
      }
    }
  }
}

template <int Lines> static inline void pack(const cpu::Lines &from, float *to) {
  switch (from.type) {
  case MW_BF16:
    return packAs<Lines, BFloat16>(from, to);
  case MW_F16:
    return packAs<Lines, Float16>(from, to);
  case MW_F8E4M3:
    return packAs<Lines, E4M3>(from, to);
  case MW_F8E5M2:
    return packAs<Lines, E5M2>(from, to);
  default:
    return packAs<Lines, float>(from, to);
  }
}

void packRows(const Lines &from, float *to) { pack<kRows>(from, to); }
void packColumns(const Lines &from, float *to) { pack<kColumns>(from, to); }

//===--- multiplying -------------------------------------------------------===//

template <typename Words, int Vectors>
static inline __attribute__((always_inline)) void multiplyTile(int64_t words, const float *a,
                                                               const float *b, float alpha,
                                                               float beta, float *c, int64_t ldc) {
  Floats sums[kRows][Vectors];
#pragma GCC unroll 8
  for (int row = 0; row < kRows; ++row)
#pragma GCC unroll 4
    for (int v = 0; v < Vectors; ++v)
      sums[row][v] = Floats{};
      // C comes from far, and is wanted at the end.
#pragma GCC unroll 8
  for (int row = 0; row < kRows; ++row)
#pragma GCC unroll 4
    for (int v = 0; v < Vectors; ++v)
      __builtin_prefetch(c + row * ldc + v * kLanes, 1);
  for (int64_t word = 0; word < words; ++word) {
    Floats columns[Vectors];
#pragma GCC unroll 4
    for (int v = 0; v < Vectors; ++v)
      columns[v] = load(b + word * kColumns + v * kLanes);
#pragma GCC unroll 8
    for (int row = 0; row < kRows; ++row) {
      Floats x = splat(a[word * kRows + row]);
#pragma GCC unroll 4
      for (int v = 0; v < Vectors; ++v)
        sums[row][v] = Words::multiplyAdd(sums[row][v], x, columns[v]);
    }
  }
#pragma GCC unroll 8
  for (int row = 0; row < kRows; ++row)
#pragma GCC unroll 4
    for (int v = 0; v < Vectors; ++v) {
      float *at = c + row * ldc + v * kLanes;
      Floats value = sums[row][v] * alpha;
      store(at, beta == 0.0f ? value : load(at) * beta + value);
    }
}

/// The same for a tile of which C has only some rows and columns.
template <typename Words, int Vectors>
static inline void multiplyPart(int64_t rows, int64_t columns, int64_t words, const float *a,
                                const float *b, float alpha, float beta, float *c, int64_t ldc) {
  constexpr int width = Vectors * kLanes;
  if (rows >= kRows && columns >= width)
    return multiplyTile<Words, Vectors>(words, a, b, alpha, beta, c, ldc);
  alignas(64) float tile[kRows * width];
  multiplyTile<Words, Vectors>(words, a, b, alpha, 0.0f, tile, width);
  for (int64_t row = 0; row < smaller(rows, kRows); ++row)
    for (int64_t column = 0; column < smaller(columns, width); ++column) {
      float value = tile[row * width + column], &at = c[row * ldc + column];
      at = beta == 0.0f ? value : at * beta + value;
    }
}

template <typename Words>
static inline void multiplyAs(int64_t rows, int64_t columns, int64_t words, const float *a,
                              const float *b, float alpha, float beta, float *c, int64_t ldc) {
  // A panel of B stays in the first-level cache, A in the second.
  for (int64_t column = 0; column < columns; column += kColumns) {
    int64_t width = smaller(columns - column, kColumns);
    const float *right = b + column * words;
    for (int64_t row = 0; row < rows; row += kRows) {
      const float *left = a + row * words;
      float *at = c + row * ldc + column;
      if (kVectors > 2 && width > 2 * kLanes)
        multiplyPart<Words, kVectors>(rows - row, width, words, left, right, alpha, beta, at, ldc);
      else if (width > kLanes)
        multiplyPart<Words, 2>(rows - row, width, words, left, right, alpha, beta, at, ldc);
      else
        multiplyPart<Words, 1>(rows - row, width, words, left, right, alpha, beta, at, ldc);
    }
  }
}

int64_t elementsOfWord(int32_t type) {
  bool becomesBF16 = type == MW_BF16 || type == MW_F8E4M3 || type == MW_F8E5M2;
  return becomesBF16 ? WordsOf<BFloat16>::count : 1;
}

void multiplyPanels(int32_t type, int64_t rows, int64_t columns, int64_t words, const float *a,
                    const float *b, float alpha, float beta, float *c, int64_t ldc) {
  if (elementsOfWord(type) > 1)
    multiplyAs<WordsOf<BFloat16>>(rows, columns, words, a, b, alpha, beta, c, ldc);
  else
    multiplyAs<WordsOf<float>>(rows, columns, words, a, b, alpha, beta, c, ldc);
}

//===--- rounding ----------------------------------------------------------===//

template <typename T>
static void roundAs(const float *from, float beta, void *target, int64_t count) {
  T *to = static_cast<T *>(target);
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes)
    store(to + i, beta == 0.0f ? load(from + i) : load(from + i) + load(to + i) * beta);
  if (i < count) {
    Floats value = loadPadded(from + i, count - i);
    if (beta != 0.0f)
      value += loadPadded(to + i, count - i) * beta;
    storeFirst(to + i, value, count - i);
  }
}

void roundRow(int32_t type, const float *from, float beta, void *to, int64_t count) {
  if (type == MW_BF16)
    return roundAs<BFloat16>(from, beta, to, count);
  return roundAs<Float16>(from, beta, to, count);
}

} // namespace meshwright::cpu::MW_ISA
