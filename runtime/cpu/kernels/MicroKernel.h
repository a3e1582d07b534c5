//===- MicroKernel.h - products of tiles that lie in cache ----------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// Compiled once for each instruction set; see Simd.h.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_RUNTIME_CPU_KERNELS_MICROKERNEL_H
#define MESHWRIGHT_RUNTIME_CPU_KERNELS_MICROKERNEL_H

#include "AttentionTiling.h"
#include "Words.h"

#include <type_traits>

namespace meshwright::cpu::MW_ISA {

/// What C's accumulators start from.
enum class Start { Zero, C, ScaledC };

/// Rows of C whose accumulators fit the registers together with kVectors columns:
/// enough independent sums to hide the latency of multiply-add.
#if defined(__AVX512F__)
constexpr int kRows = 8;
#else
constexpr int kRows = 4;
#endif
constexpr int kVectors = 2;

template <typename Words, int Vectors, bool TransposedA, Start From>
static inline __attribute__((always_inline)) void
multiplyBlock(const float *a, int64_t lda, const float *b, int64_t ldb, float *c, int64_t ldc,
              int64_t k, const float *rowScale, float scale) {
  Floats sums[kRows][Vectors];
#pragma GCC unroll 8
  for (int row = 0; row < kRows; ++row)
#pragma GCC unroll 4
    for (int v = 0; v < Vectors; ++v) {
      if constexpr (From == Start::Zero)
        sums[row][v] = Floats{};
      else if constexpr (From == Start::C)
        sums[row][v] = load(c + row * ldc + v * kLanes);
      else
        sums[row][v] = load(c + row * ldc + v * kLanes) * rowScale[row];
    }
  for (int64_t i = 0; i < k; ++i) {
    Floats columns[Vectors];
#pragma GCC unroll 4
    for (int v = 0; v < Vectors; ++v)
      columns[v] = load(b + i * ldb + v * kLanes);
#pragma GCC unroll 8
    for (int row = 0; row < kRows; ++row) {
      Floats x = splat(TransposedA ? a[i * lda + row] : a[row * lda + i]);
#pragma GCC unroll 4
      for (int v = 0; v < Vectors; ++v)
        sums[row][v] = Words::multiplyAdd(sums[row][v], x, columns[v]);
    }
  }
#pragma GCC unroll 8
  for (int row = 0; row < kRows; ++row)
#pragma GCC unroll 4
    for (int v = 0; v < Vectors; ++v)
      store(c + row * ldc + v * kLanes, Words::count > 1 ? sums[row][v] * scale : sums[row][v]);
}

/// C[kGroup][n] = start + op(A)[kGroup][k] * B[k][n], with n a multiple of
/// kLanes. TransposedA: A is stored [k][kGroup]. Where words have several elements, k counts words
/// and the sums are multiplied by `scale`.
template <bool TransposedA, Start From, typename Words = WordsOf<float>>
static inline void multiplyGroup(const float *a, int64_t lda, const float *b, int64_t ldb, float *c,
                                 int64_t ldc, int64_t n, int64_t k,
                                 const float *rowScale = nullptr, float scale = 1.0f) {
  for (int64_t row = 0; row < kGroup; row += kRows) {
    const float *rows = a + (TransposedA ? row : row * lda);
    const float *ofRows = rowScale ? rowScale + row : nullptr;
    int64_t column = 0;
    for (; column + kVectors * kLanes <= n; column += kVectors * kLanes)
      multiplyBlock<Words, kVectors, TransposedA, From>(rows, lda, b + column, ldb,
                                                        c + row * ldc + column, ldc, k, ofRows,
                                                        scale);
    if (column < n)
      multiplyBlock<Words, 1, TransposedA, From>(rows, lda, b + column, ldb,
                                                 c + row * ldc + column, ldc, k, ofRows, scale);
  }
}

/// Scores of a group: scale * A B of words, A [kGroup][words] as copyWords makes it and B
/// [words][kTile] as packWords does, of `depth` elements of T along the sum.
template <typename T>
static inline void multiplyScores(const float *a, int64_t lda, const float *b, float *c, int64_t n,
                                  int64_t depth, float scale) {
  constexpr int64_t count = WordsOf<T>::count;
  using Words = std::conditional_t<(count > 1), WordsOf<T>, WordsOf<float>>;
  multiplyGroup<false, Start::Zero, Words>(a, lda, b, kTile, c, kTile, n,
                                           (depth + count - 1) / count, nullptr, scale);
}

} // namespace meshwright::cpu::MW_ISA

#endif // MESHWRIGHT_RUNTIME_CPU_KERNELS_MICROKERNEL_H
