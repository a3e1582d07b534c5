//===- ProductTiles.h - matrix products by tiles and waves --------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_COST_PRODUCTTILES_H
#define MESHWRIGHT_COST_PRODUCTTILES_H

#include <cstdint>

namespace meshwright::cost {

/// The sizes of `batch` matrix products.
struct ProductSizes {
  int64_t m = 0, n = 0, k = 0, batch = 1;
  double flops() const { return 2.0 * double(m) * double(n) * double(k) * double(batch); }
};

/// How a GPU's library computes matrix products of 16 bits: it divides the result into tiles, of which
/// each multiprocessor computes one at a time, so the last of these waves may leave some idle. Where
/// there are too few tiles, several of them compute parts of the sums of one (split-K).
struct ProductTiles {
  int64_t multiprocessors;
  double rate;      ///< FLOPs a second of all multiprocessors together, at the highest clock
  double sustained; ///< ... that the device's power allows while all of them compute
  double tile;      ///< seconds that a tile takes beside: its first operands arrive, its results leave
  double call;      ///< seconds that a product takes beside
  double apart;     ///< the part of the shorter time, to compute or to move, not overlapped by the other

  /// Seconds of a product with the best of tiles of 64 x 64 to 256 x 128 and 320 x 128 elements. `bytes` are
  /// those of its operands and results, and `bandwidth` is that of large copies: what small ones take
  /// beside is part of `call`.
  double seconds(const ProductSizes &sizes, double bytes, double bandwidth) const;
};

} // namespace meshwright::cost

#endif // MESHWRIGHT_COST_PRODUCTTILES_H
