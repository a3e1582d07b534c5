//===- Gemm.h - a plain matrix product --------------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_INTERPRETER_GEMM_H
#define MESHWRIGHT_INTERPRETER_GEMM_H

#include <cstdint>

namespace meshwright::interp {

/// c[m, n] += a[m, k] b[k, n], all row-major.
void gemm(int64_t m, int64_t n, int64_t k, const double *a, const double *b, double *c);

} // namespace meshwright::interp

#endif // MESHWRIGHT_INTERPRETER_GEMM_H
