//===- Convert.cpp - rows of bf16 and f16 to f32 and back -----------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// Compiled once for each instruction set; see Simd.h.
//
//===----------------------------------------------------------------------===//
#include "Convert.h"
#include "Simd.h"

namespace meshwright::cpu::MW_ISA {

template <typename T> static void extendAs(const void *source, float *to, int64_t count) {
  const T *from = static_cast<const T *>(source);
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes)
    store(to + i, load(from + i));
  if (i < count)
    storeFirst(to + i, loadPadded(from + i, count - i), count - i);
}

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

void extendRow(int32_t type, const void *from, float *to, int64_t count) {
  switch (type) {
  case MW_BF16:
    return extendAs<BFloat16>(from, to, count);
  case MW_F16:
    return extendAs<Float16>(from, to, count);
  default:
    return extendAs<float>(from, to, count);
  }
}

void roundRow(int32_t type, const float *from, float beta, void *to, int64_t count) {
  switch (type) {
  case MW_BF16:
    return roundAs<BFloat16>(from, beta, to, count);
  case MW_F16:
    return roundAs<Float16>(from, beta, to, count);
  default:
    return roundAs<float>(from, beta, to, count);
  }
}

} // namespace meshwright::cpu::MW_ISA
