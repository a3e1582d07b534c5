//===- MatmulTiling.cpp - how a product with narrow types is split ----------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// Depends on nothing but sizes, so that the compiler can link it too.
//
//===----------------------------------------------------------------------===//
#include "MatmulTiling.h"
#include "Panels.h"

#include <algorithm>

using namespace meshwright::cpu;

/// Threads that can work on one product; each needs scratch memory.
constexpr int64_t kMaxTeam = 64;
/// The sizes of blocks that are tried. The smallest are what there is memory for with kMaxTeam
/// threads.
constexpr int64_t kMostRows[] = {96, 192, 384, 768, 1536}, kMostColumns[] = {192, 384, 768};

static int64_t ceilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }
static int64_t roundUp(int64_t size, int64_t unit) { return ceilDiv(size, unit) * unit; }
/// Whole cache lines, and one more that keeps pieces out of each other's cache sets.
static int64_t padded(int64_t floats) { return roundUp(floats, 16) + 16; }

/// The size of the largest of as few equal parts as have at most `most`.
static int64_t partOf(int64_t size, int64_t most) {
  size = std::max<int64_t>(size, 1);
  return std::min(size, roundUp(ceilDiv(size, ceilDiv(size, most)), kLineUnit));
}

MatmulTiling::MatmulTiling(int64_t m, int64_t n, int64_t k, int64_t batch, int64_t threads,
                           int64_t mostRows, int64_t mostColumns)
    : rows(partOf(m, mostRows)), columns(partOf(n, mostColumns)), rowBlocks(ceilDiv(m, rows)),
      columnBlocks(ceilDiv(n, columns)), items(batch * rowBlocks * columnBlocks),
      team(std::min({items, threads, kMaxTeam})) {
  int64_t words = std::min(k, kWords);
  columnOffset = padded(roundUp(std::min(rows, kPackedRows), kLineUnit) * words);
  sumOffset = columnOffset + padded(roundUp(columns, kLineUnit) * words);
  scratch = sumOffset + padded(rows * columns);
}

MatmulTiling::MatmulTiling(int64_t m, int64_t n, int64_t k, int64_t batch, int64_t threads)
    : MatmulTiling(m, n, k, batch, threads, kMostRows[0], kMostColumns[0]) {
  int64_t most = mw_matmul_mixed_workspace(m, n, k, batch) / int64_t(sizeof(float));
  auto cost = [](const MatmulTiling &tiling) {
    // Packing an element costs about as much as multiplying it 16 times.
    double block =
        double(tiling.rows) * double(tiling.columns) + 16 * double(tiling.rows + tiling.columns);
    return double(ceilDiv(tiling.items, tiling.team)) * block;
  };
  for (int64_t mostRows : kMostRows)
    for (int64_t mostColumns : kMostColumns) {
      MatmulTiling tiling(m, n, k, batch, threads, mostRows, mostColumns);
      if (tiling.team * tiling.scratch <= most && cost(tiling) < cost(*this))
        *this = tiling;
    }
}

int64_t mw_matmul_mixed_workspace(int64_t m, int64_t n, int64_t k, int64_t batch) {
  MatmulTiling smallest(m, n, k, batch, kMaxTeam, kMostRows[0], kMostColumns[0]);
  return smallest.team * smallest.scratch * int64_t(sizeof(float));
}

int64_t mw_grouped_matmul_grad_workspace(int64_t rows, int64_t m, int64_t n, int32_t factorType,
                                         int32_t resultType) {
  if (factorType == MW_F32 && resultType == MW_F32)
    return 0;
  int64_t sums = resultType == MW_F32 ? 0 : m * n * int64_t(sizeof(float));
  return mw_matmul_mixed_workspace(m, n, rows, 1) + sums;
}
