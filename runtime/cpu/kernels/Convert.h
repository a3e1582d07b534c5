//===- Convert.h - rows of bf16 and f16 to f32 and back -------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_RUNTIME_CPU_KERNELS_CONVERT_H
#define MESHWRIGHT_RUNTIME_CPU_KERNELS_CONVERT_H

#include "meshwright/runtime/ABI.h"

namespace meshwright::cpu {

/// The conversions of one instruction set; types are MW_F32, MW_BF16 or MW_F16.
struct ConvertKernels {
  const char *name;
  /// to[count] = from[count].
  void (*extend)(int32_t type, const void *from, float *to, int64_t count);
  /// to[count] = from[count] + beta * to[count], rounded; to is not read for beta 0.
  void (*round)(int32_t type, const float *from, float beta, void *to, int64_t count);
};

/// Those this machine can run, best first.
const ConvertKernels *const *availableConvertKernels(int *count);

} // namespace meshwright::cpu

#endif // MESHWRIGHT_RUNTIME_CPU_KERNELS_CONVERT_H
