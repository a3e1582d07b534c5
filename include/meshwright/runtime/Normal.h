//===- Normal.h - initial weights -----------------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// Normally or uniformly distributed initial values as a function of (seed, name, index): the
// same on every mesh. Only IEEE basic operations and square roots, no calls of
// libm, so that compilers vectorize it and every machine gets the same bits;
// compile with -ffp-contract=off.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_RUNTIME_NORMAL_H
#define MESHWRIGHT_RUNTIME_NORMAL_H

#include "meshwright/runtime/Philox.h"

#include <cmath>
#include <cstring>
#include <string_view>

namespace meshwright {

/// The key of the initial values of the tensor called `name`: its storage name
/// with the layer filled in, and "[dim:begin]" after it where it is a slice.
inline std::array<uint32_t, 2> initialKey(uint64_t seed, std::string_view name) {
  uint64_t hash = 0xcbf29ce484222325u; // FNV-1a.
  for (char c : name)
    hash = (hash ^ uint8_t(c)) * 0x100000001b3u;
  auto words = philox({uint32_t(hash), uint32_t(hash >> 32), 0x1417u, 2},
                      {uint32_t(seed), uint32_t(seed >> 32)});
  return {words[0], words[1]};
}

namespace detail {
inline uint32_t bitsOf(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, 4);
  return bits;
}
inline float floatOf(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, 4);
  return value;
}

/// Natural logarithm of a normal positive number, to 1e-7 (Cephes' logf).
inline float logarithm(float value) {
  // value = m * 2^e with m in [sqrt(1/2), sqrt(2)).
  int32_t exponent = int32_t(bitsOf(value) - 0x3f3504f3u) >> 23;
  float f = floatOf(bitsOf(value) - (uint32_t(exponent) << 23)) - 1.0f;
  float e = float(exponent);
  float p = 7.0376836292e-2f;
  p = p * f - 1.1514610310e-1f;
  p = p * f + 1.1676998740e-1f;
  p = p * f - 1.2420140846e-1f;
  p = p * f + 1.4249322787e-1f;
  p = p * f - 1.6668057665e-1f;
  p = p * f + 2.0000714765e-1f;
  p = p * f - 2.4999993993e-1f;
  p = p * f + 3.3333331174e-1f;
  p = p * f * f * f;
  p = p + e * -2.12194440e-4f - 0.5f * f * f;
  return f + p + e * 0.693359375f;
}

/// Two independent standard normal values from two random words (Box and Muller).
inline void boxMuller(uint32_t a, uint32_t b, float &first, float &second) {
  float uniform = float(int32_t(a >> 1)) * 0x1p-31f + 0x1p-32f; // (0, 1]
  float radius = std::sqrt(-2.0f * logarithm(uniform));
  // The angle is turn + t, with `turn` a multiple of a quarter and |t| <= pi/4.
  int32_t turns = int32_t((b + 0x20000000u) >> 30);
  float t = float(int32_t(b << 2) >> 2) * 0x1p-30f;
  t = t * 1.57079632679489662f;
  float z = t * t;
  float sine = ((-1.9515295891e-4f * z + 8.3321608736e-3f) * z - 1.6666654611e-1f) * z * t + t;
  float cosine =
      ((2.443315711809948e-5f * z - 1.388731625493765e-3f) * z + 4.166664568298827e-2f) * z * z -
      0.5f * z + 1.0f;
  uint32_t swap = 0u - uint32_t(turns & 1);
  uint32_t c = (bitsOf(cosine) & ~swap) | (bitsOf(sine) & swap);
  uint32_t s = (bitsOf(sine) & ~swap) | (bitsOf(cosine) & swap);
  c ^= uint32_t((turns + 1) & 2) << 30;
  s ^= uint32_t(turns & 2) << 30;
  first = radius * floatOf(c);
  second = radius * floatOf(s);
}
} // namespace detail

/// Elements 4 * block ... 4 * block + 3 of the standard normal values under `key`.
inline void normalBlock(std::array<uint32_t, 2> key, uint64_t block, float *values) {
  auto words = philox({uint32_t(block), uint32_t(block >> 32), 0, 3}, key);
  detail::boxMuller(words[0], words[1], values[0], values[1]);
  detail::boxMuller(words[2], words[3], values[2], values[3]);
}

/// Element `index` of the standard normal values under `key`.
inline float normalValue(std::array<uint32_t, 2> key, uint64_t index) {
  float values[4];
  normalBlock(key, index / 4, values);
  return values[index % 4];
}

/// Element `index` of the values under `key` that are uniform in [-1, 1).
inline float uniformValue(std::array<uint32_t, 2> key, uint64_t index) {
  uint64_t block = index / 4;
  auto words = philox({uint32_t(block), uint32_t(block >> 32), 0, 3}, key);
  return float(int32_t(words[index % 4]) >> 7) * 0x1p-24f;
}

} // namespace meshwright

#endif // MESHWRIGHT_RUNTIME_NORMAL_H
