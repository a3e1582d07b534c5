//===- ProductTiles.cpp - matrix products by tiles and waves ------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "meshwright/Cost/ProductTiles.h"

#include "llvm/Support/MathExtras.h"

#include <algorithm>
#include <cmath>
#include <limits>

using namespace meshwright::cost;

namespace {
struct Tile {
  int64_t rows, columns;
};
} // namespace

/// Those that cuBLASLt's heuristics propose for large products on an H100
/// (bench/results/h100/rates.json).
static constexpr Tile tiles[] = {{320, 128}, {256, 128}, {192, 192}, {192, 128}, {160, 128},
                                 {128, 128}, {256, 64},  {128, 64},  {64, 64}};
static constexpr int64_t splits[] = {1, 2, 4, 8};
/// Shorter sums are not divided.
static constexpr int64_t leastSum = 512;
/// An element of a tile's operands is used for as many products as the tile has columns or rows. From
/// this harmonic mean of them on, half of 128 x 128, loads from shared memory keep up.
static constexpr double reuseAtPeak = 64;

/// Seconds to compute without moving anything to memory but the parts of split sums.
static double secondsWith(const ProductTiles &device, const ProductSizes &sizes, Tile tile,
                          int64_t split, double bandwidth) {
  int64_t count = llvm::divideCeil(sizes.m, tile.rows) * llvm::divideCeil(sizes.n, tile.columns) *
                  sizes.batch * split;
  int64_t waves = llvm::divideCeil(count, device.multiprocessors);
  double elements = double(tile.rows * tile.columns);
  double reuse = elements / double(tile.rows + tile.columns);
  double rate = device.rate / double(device.multiprocessors) *
                std::sqrt(std::min(1.0, reuse / reuseAtPeak));
  double seconds =
      double(waves) * (2 * elements * double(sizes.k) / double(split) / rate + device.tile);
  // Each part is written and read in f32.
  if (split > 1)
    seconds += double(split) * double(sizes.m) * double(sizes.n) * double(sizes.batch) * 8 / bandwidth;
  return seconds;
}

double ProductTiles::seconds(const ProductSizes &sizes, double bytes, double bandwidth) const {
  double moves = bytes / bandwidth;
  double computes = std::numeric_limits<double>::max();
  for (Tile tile : tiles)
    for (int64_t split : splits) {
      if (split > 1 && sizes.k / split < leastSum)
        continue;
      computes = std::min({computes, secondsWith(*this, sizes, tile, split, bandwidth),
                           secondsWith(*this, sizes, {tile.columns, tile.rows}, split, bandwidth)});
    }
  computes = std::max(computes, sizes.flops() / sustained);
  return std::max(computes, moves) + apart * std::min(computes, moves) + call;
}
