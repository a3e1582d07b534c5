//===- Matmul.cpp - matrix products ---------------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// Divides C among this rank's threads; OpenBLAS multiplies each part on one
// thread. Results are the same in every run with as many threads; the library may
// pick another kernel for a smaller part, so another number can change last bits.
//
//===----------------------------------------------------------------------===//
#include "Blas.h"
#include "common/launch/Threads.h"
#include "meshwright/runtime/ABI.h"

#include <algorithm>

namespace {
/// The arguments of mw_matmul_f32 for one matrix of the batch.
struct Product {
  bool transA, transB;
  int64_t m, n, k;
  float alpha, beta;
  const float *a;
  int64_t lda;
  const float *b;
  int64_t ldb;
  float *c;
  int64_t ldc;
};

/// C divided into rows x columns blocks of nearly equal size.
struct Grid {
  int64_t rows = 1, columns = 1;

  /// Blocks begin at multiples of this, a common multiple of the sizes of the
  /// library's register tiles, so that only the last block has narrow ones.
  static constexpr int64_t kUnit = 48;

  static int64_t edge(int64_t size, int64_t parts, int64_t part) {
    int64_t units = (size + kUnit - 1) / kUnit;
    return std::min(size, units * part / parts * kUnit);
  }

  void multiply(const Product &p, int64_t index) const {
    int64_t row = index / columns, column = index % columns;
    int64_t i = edge(p.m, rows, row), m = edge(p.m, rows, row + 1) - i;
    int64_t j = edge(p.n, columns, column), n = edge(p.n, columns, column + 1) - j;
    if (m == 0 || n == 0)
      return;
    meshwright::cpu::multiply(p.transA, p.transB, m, n, p.k, p.alpha,
                              p.a + (p.transA ? i : i * p.lda), p.lda,
                              p.b + (p.transB ? j * p.ldb : j), p.ldb, p.beta,
                              p.c + i * p.ldc + j, p.ldc);
  }
};
} // namespace

/// The grid whose largest block takes the least time.
static Grid chooseGrid(const Product &p, int64_t threads) {
  Grid best;
  double bestCost = 0;
  for (int64_t rows = 1; rows <= threads; ++rows) {
    Grid grid{rows, threads / rows};
    auto largest = [](int64_t size, int64_t parts) {
      int64_t units = (size + Grid::kUnit - 1) / Grid::kUnit;
      return double((units + parts - 1) / parts * Grid::kUnit);
    };
    double m = largest(p.m, grid.rows), n = largest(p.n, grid.columns);
    // Packing an element costs about as much as multiplying it 32 times.
    double cost = m * n + 32 * (m + n);
    if (rows == 1 || cost < bestCost) {
      best = grid;
      bestCost = cost;
    }
  }
  return best;
}

static void scale(float *c, int64_t ldc, int64_t m, int64_t n, float beta) {
  for (int64_t row = 0; row < m; ++row)
    for (int64_t column = 0; column < n; ++column)
      c[row * ldc + column] = beta == 0.0f ? 0.0f : beta * c[row * ldc + column];
}

static void multiplyMatrices(int threads, const Product &first, int64_t batch, int64_t strideA,
                             int64_t strideB, int64_t strideC) {
  // Below this many multiplications waking a thread costs more than it saves.
  constexpr double kWorkPerThread = 1 << 18;
  double work = double(first.m) * double(first.n) * double(first.k) * double(batch);
  int64_t team = std::clamp<int64_t>(int64_t(work / kWorkPerThread), 1, threads);
  // Whole matrices while they go round evenly; else each is divided as well.
  Grid grid;
  if (batch % team != 0 && batch < 8 * team)
    grid = chooseGrid(first, team);
  int64_t blocks = grid.rows * grid.columns, items = batch * blocks;
  auto multiply = [&](int64_t item) {
    int64_t matrix = item / blocks;
    Product p = first;
    p.a += matrix * strideA;
    p.b += matrix * strideB;
    p.c += matrix * strideC;
    grid.multiply(p, item % blocks);
  };
  if (team <= 1) {
    for (int64_t item = 0; item < items; ++item)
      multiply(item);
    return;
  }
#pragma omp parallel for num_threads(int(team)) schedule(static)
  for (int64_t item = 0; item < items; ++item)
    multiply(item);
}

void mw_matmul_f32(MwContext *context, int32_t transA, int32_t transB, int64_t m, int64_t n,
                   int64_t k, float alpha, const float *a, int64_t lda, const float *b, int64_t ldb,
                   float beta, float *c, int64_t ldc, int64_t batch, int64_t strideA,
                   int64_t strideB, int64_t strideC) {
  if (m <= 0 || n <= 0 || batch <= 0)
    return;
  if (k <= 0) {
    for (int64_t matrix = 0; matrix < batch; ++matrix)
      scale(c + matrix * strideC, ldc, m, n, beta);
    return;
  }
  Product product{transA != 0, transB != 0, m, n, k, alpha, beta, a, lda, b, ldb, c, ldc};
  multiplyMatrices(mw_context_threads(context), product, batch, strideA, strideB, strideC);
}
