//===- Int8Weights.h - frozen weights in 8 bits -----------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// Weight-only int8, symmetric, with a scale for each output channel: `compile --frozen-weights int8`. Weights are
// quantized when they are loaded, in f32 and row by row of the whole model's weight, so that every mesh, the
// interpreter and others who do the same have the same codes.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_RUNTIME_INT8WEIGHTS_H
#define MESHWRIGHT_RUNTIME_INT8WEIGHTS_H

#include <algorithm>
#include <cmath>
#include <cstdint>

/// The MwElementType of codes, which collectives move and none reduces.
enum { MW_I8 = 8 };

namespace meshwright {

/// The largest code; -128 is none, so that codes are symmetric.
inline constexpr float largestCode = 127;

/// The scale of a row of weights, whose largest magnitude becomes the largest code. Of a row of zeros it is 0.
inline float scaleOfRow(const float *row, int64_t columns) {
  float amax = 0;
  for (int64_t i = 0; i < columns; ++i)
    amax = std::max(amax, std::fabs(row[i]));
  return amax / largestCode;
}

/// The code of a weight: the nearest number of scales, ties to even. What is no finite number has none; it is refused.
inline int8_t codeOf(float weight, float scale) {
  if (scale == 0 || !std::isfinite(weight) || !std::isfinite(scale))
    return 0;
  return int8_t(std::clamp(std::nearbyint(weight / scale), -largestCode, largestCode));
}

} // namespace meshwright

#endif // MESHWRIGHT_RUNTIME_INT8WEIGHTS_H
