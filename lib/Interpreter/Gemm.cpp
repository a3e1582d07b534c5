//===- Gemm.cpp - a plain matrix product ------------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Interpreter/Gemm.h"

#include <algorithm>

/// Two rows of c and four of b at a time: each element of b that is loaded is
/// used twice, each of c gets four products before it is stored again.
__attribute__((target_clones("arch=x86-64-v3", "default"))) void
meshwright::interp::gemm(int64_t m, int64_t n, int64_t k, const double *a, const double *b,
                         double *c) {
  constexpr int64_t width = 512; // of a panel of b and c that stays in cache
  for (int64_t j0 = 0; j0 < n; j0 += width) {
    int64_t w = std::min(width, n - j0);
    int64_t p = 0;
    for (; p + 4 <= k; p += 4) {
      const double *b0 = b + p * n + j0, *b1 = b0 + n, *b2 = b1 + n, *b3 = b2 + n;
      int64_t i = 0;
      for (; i + 2 <= m; i += 2) {
        const double *x = a + i * k + p, *y = x + k;
        double x0 = x[0], x1 = x[1], x2 = x[2], x3 = x[3];
        double y0 = y[0], y1 = y[1], y2 = y[2], y3 = y[3];
        double *__restrict cx = c + i * n + j0, *__restrict cy = cx + n;
        for (int64_t j = 0; j < w; ++j) {
          cx[j] += x0 * b0[j] + x1 * b1[j] + x2 * b2[j] + x3 * b3[j];
          cy[j] += y0 * b0[j] + y1 * b1[j] + y2 * b2[j] + y3 * b3[j];
        }
      }
      for (; i < m; ++i) {
        const double *x = a + i * k + p;
        double *__restrict cx = c + i * n + j0;
        for (int64_t j = 0; j < w; ++j)
          cx[j] += x[0] * b0[j] + x[1] * b1[j] + x[2] * b2[j] + x[3] * b3[j];
      }
    }
    for (; p < k; ++p)
      for (int64_t i = 0; i < m; ++i)
        for (int64_t j = 0; j < w; ++j)
          c[i * n + j0 + j] += a[i * k + p] * b[p * n + j0 + j];
  }
}
