//===- MatmulTiling.cpp - how a product with narrow types is split ----------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// Depends on nothing but sizes, so that the compiler can link it too.
//
//===----------------------------------------------------------------------===//
#include "MatmulTiling.h"

#include <algorithm>

using namespace meshwright::cpu;

/// A block's factors and result fit the second-level cache, and converting an element
/// of them costs little beside the 200 and more products it takes part in.
constexpr int64_t kRows = 192, kColumns = 256, kDepth = 256;
constexpr int64_t kMaxSlots = 64;

static int64_t ceilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }
/// Whole cache lines, and one more that keeps blocks out of each other's cache sets.
static int64_t padded(int64_t floats) { return ceilDiv(floats, 16) * 16 + 16; }

MatmulTiling::MatmulTiling(int64_t m, int64_t n, int64_t k, int64_t batch)
    : rows(std::min(m, kRows)), columns(std::min(n, kColumns)), depth(std::min(k, kDepth)),
      rowBlocks(ceilDiv(m, rows)), columnBlocks(ceilDiv(n, columns)),
      items(batch * rowBlocks * columnBlocks), slots(std::min(items, kMaxSlots)), aOffset(0),
      bOffset(padded(rows * depth)), cOffset(bOffset + padded(depth * columns)),
      scratch(cOffset + padded(rows * columns)) {}

int64_t mw_matmul_mixed_workspace(int64_t m, int64_t n, int64_t k, int64_t batch) {
  MatmulTiling tiling(m, n, k, batch);
  return tiling.slots * tiling.scratch * int64_t(sizeof(float));
}
