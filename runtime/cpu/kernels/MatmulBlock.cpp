//===- MatmulBlock.cpp - one thread's part of a matrix product ------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// The classical blocking (Goto and van de Geijn, "Anatomy of high-performance
// matrix multiplication", 2008; in the form of Van Zee and van de Geijn's BLIS,
// 2015): A and B are packed, block by block, into panels that the innermost
// kernel reads in order. All transposition forms differ in packing only.
// Compiled once for each instruction set; see Simd.h.
//
//===----------------------------------------------------------------------===//
#include "MatmulPlan.h"
#include "Simd.h"

namespace meshwright::cpu::MW_ISA {

/// Columns, in vectors, and most rows of C that the innermost kernel holds in
/// registers, next to a row of B's panel and one element of A's.
constexpr int kPanelVectors = 2;
constexpr int kPanelColumns = kPanelVectors * kLanes;
#if defined(__AVX512F__)
constexpr int kPanelRows = 14;
#elif defined(__AVX2__)
constexpr int kPanelRows = 6;
#else
constexpr int kPanelRows = 4;
#endif

namespace {
/// Where the innermost kernel leaves its sums: C = alpha * sums + keep * C.
struct Target {
  float *c;
  int64_t ldc, columns; ///< columns may end within the last vector
  float alpha, keep;
};

/// Cuts `size` into the fewest pieces of at most `limit`, as equal as can be.
struct Cut {
  Cut(int64_t size, int64_t limit) : size(size), pieces((size + limit - 1) / limit) {}
  int64_t size, pieces;
  int64_t begin(int64_t piece) const { return piece * size / pieces; }
};
} // namespace

template <int Rows, int Vectors>
static void multiplyPanels(const float *a, const float *b, int64_t k, const Target &target) {
  Floats sums[Rows][Vectors];
#pragma GCC unroll 16
  for (int row = 0; row < Rows; ++row) {
    // The first touch of C would otherwise stall the end of the loop.
    __builtin_prefetch(target.c + row * target.ldc, 1);
    __builtin_prefetch(target.c + row * target.ldc + target.columns - 1, 1);
#pragma GCC unroll 4
    for (int v = 0; v < Vectors; ++v)
      sums[row][v] = Floats{};
  }
#pragma GCC unroll 2
  for (int64_t i = 0; i < k; ++i) {
    Floats columns[Vectors];
#pragma GCC unroll 4
    for (int v = 0; v < Vectors; ++v)
      columns[v] = load(b + v * kLanes);
#pragma GCC unroll 16
    for (int row = 0; row < Rows; ++row) {
      Floats x = splat(a[row]);
#pragma GCC unroll 4
      for (int v = 0; v < Vectors; ++v)
        sums[row][v] += x * columns[v];
    }
    a += Rows;
    b += Vectors * kLanes;
  }
  float *c = target.c;
  if (target.columns == Vectors * kLanes) {
#pragma GCC unroll 16
    for (int row = 0; row < Rows; ++row, c += target.ldc)
#pragma GCC unroll 4
      for (int v = 0; v < Vectors; ++v) {
        Floats value = sums[row][v] * target.alpha;
        if (target.keep != 0.0f)
          value += load(c + v * kLanes) * target.keep;
        store(c + v * kLanes, value);
      }
    return;
  }
  alignas(64) float edge[Rows][Vectors * kLanes];
#pragma GCC unroll 16
  for (int row = 0; row < Rows; ++row)
#pragma GCC unroll 4
    for (int v = 0; v < Vectors; ++v)
      store(&edge[row][v * kLanes], sums[row][v] * target.alpha);
  for (int row = 0; row < Rows; ++row, c += target.ldc)
    for (int64_t column = 0; column < target.columns; ++column)
      c[column] = target.keep != 0.0f ? __builtin_fmaf(c[column], target.keep, edge[row][column])
                                      : edge[row][column];
}

using PanelKernel = void (*)(const float *a, const float *b, int64_t k, const Target &target);

template <int Vectors, int... Rows>
static PanelKernel panelKernel(int64_t rows, std::integer_sequence<int, Rows...>) {
  static constexpr PanelKernel kernels[] = {multiplyPanels<Rows + 1, Vectors>...};
  return kernels[rows - 1];
}

static PanelKernel panelKernel(int64_t rows, int64_t columns) {
  auto all = std::make_integer_sequence<int, kPanelRows>{};
  return columns > kLanes ? panelKernel<2>(rows, all) : panelKernel<1>(rows, all);
}

/// Packs element (x, i) of a matrix stored [x][i] to to[i * width + x], for x in
/// [0, count), count <= width. Whole vectors are written: a vector's excess is
/// overwritten by the next or lies in the slack.
static inline void packAcross(const float *from, int64_t stride, int64_t count, int64_t k,
                              float *to, int64_t width) {
  static_assert(kPanelRows <= kLanes, "else a vector's excess could come after what it overwrites");
  for (int64_t x = 0; x < count; x += kLanes) {
    // Past the last row it is read again: what becomes of it does not matter.
    const float *rows[kLanes];
    for (int64_t j = 0; j < kLanes; ++j)
      rows[j] = from + smaller(x + j, count - 1) * stride;
    Floats block[kLanes];
    int64_t i = 0;
    for (; i + kLanes <= k; i += kLanes) {
#pragma GCC unroll 16
      for (int j = 0; j < kLanes; ++j)
        block[j] = load(rows[j] + i);
      transpose(block);
#pragma GCC unroll 16
      for (int j = 0; j < kLanes; ++j)
        store(to + (i + j) * width + x, block[j]);
    }
    if (i == k)
      continue;
#pragma GCC unroll 16
    for (int j = 0; j < kLanes; ++j)
      block[j] = loadPadded(rows[j] + i, k - i);
    transpose(block);
    for (int j = 0; j < k - i; ++j)
      store(to + (i + j) * width + x, block[j]);
  }
}

/// The same of a matrix stored [i][x], of which `available` values can be read in
/// each row.
static inline void packAlong(const float *from, int64_t stride, int64_t count, int64_t available,
                             int64_t k, float *to, int64_t width) {
  for (int64_t i = 0; i < k; ++i)
    for (int64_t x = 0; x < count; x += kLanes)
      store(to + i * width + x, loadPadded(from + i * stride + x, available - x));
}

/// Rows [begin, ...) of op(A), in panels as `cut` says, columns from `depth` on.
static void packRows(const Product &p, int64_t begin, const Cut &cut, int64_t depth, int64_t k,
                     float *packed) {
  for (int64_t panel = 0; panel < cut.pieces; ++panel) {
    int64_t first = cut.begin(panel), rows = cut.begin(panel + 1) - first, row = begin + first;
    if (p.transA)
      packAlong(p.a + depth * p.lda + row, p.lda, rows, p.m - row, k, packed + first * k, rows);
    else
      packAcross(p.a + row * p.lda + depth, p.lda, rows, k, packed + first * k, rows);
  }
}

/// A panel of op(B): kPanelColumns - or kLanes, where no more are left - from
/// `column` on, and rows from `depth` on.
static void packColumns(const Product &p, int64_t column, int64_t columns, int64_t depth, int64_t k,
                        float *packed) {
  int64_t width = columns > kLanes ? kPanelColumns : kLanes;
  if (p.transB)
    packAcross(p.b + column * p.ldb + depth, p.ldb, columns, k, packed, width);
  else
    packAlong(p.b + depth * p.ldb + column, p.ldb, columns, columns, k, packed, width);
}

/// Asks for one of `shares` parts of what packColumns will read.
static void prefetchColumns(const Product &p, int64_t column, int64_t columns, int64_t depth,
                            int64_t k, int64_t share, int64_t shares) {
  int64_t lines = p.transB ? columns : k, length = p.transB ? k : columns;
  const float *from = p.transB ? p.b + column * p.ldb + depth : p.b + depth * p.ldb + column;
  constexpr int64_t kCacheLine = 64 / sizeof(float);
  for (int64_t line = lines * share / shares; line < lines * (share + 1) / shares; ++line)
    for (int64_t i = 0; i < length; i += kCacheLine)
      __builtin_prefetch(from + line * p.ldb + i, 0, 2);
}

void multiplyBlock(const Product &p, const Block &block, float *packedA, float *packedB) {
  const Cut rowBlocks(block.rowEnd - block.rowBegin, kRowBlock);
  for (int64_t left = block.columnBegin; left < block.columnEnd; left += kColumnBlock) {
    int64_t right = smaller(left + kColumnBlock, block.columnEnd);
    for (int64_t depth = 0; depth < p.k; depth += kDepthBlock) {
      int64_t k = smaller(kDepthBlock, p.k - depth);
      float keep = depth == 0 ? p.beta : 1.0f;
      for (int64_t i = 0; i < rowBlocks.pieces; ++i) {
        int64_t top = block.rowBegin + rowBlocks.begin(i);
        const Cut panels(block.rowBegin + rowBlocks.begin(i + 1) - top, kPanelRows);
        packRows(p, top, panels, depth, k, packedA);
        for (int64_t column = left; column < right; column += kPanelColumns) {
          int64_t columns = smaller(kPanelColumns, right - column);
          int64_t next = smaller(kPanelColumns, right - column - columns);
          float *packed = packedB + (column - left) * k;
          // The first rows to meet a panel pack it, and meanwhile the next one
          // is fetched.
          if (i == 0)
            packColumns(p, column, columns, depth, k, packed);
          for (int64_t panel = 0; panel < panels.pieces; ++panel) {
            if (i == 0 && next > 0)
              prefetchColumns(p, column + columns, next, depth, k, panel, panels.pieces);
            int64_t row = panels.begin(panel), rows = panels.begin(panel + 1) - row;
            panelKernel(rows, columns)(
                packedA + row * k, packed, k,
                {p.c + (top + row) * p.ldc + column, p.ldc, columns, p.alpha, keep});
          }
        }
      }
    }
  }
}

} // namespace meshwright::cpu::MW_ISA
