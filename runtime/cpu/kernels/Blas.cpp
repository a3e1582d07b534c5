//===- Blas.cpp - the library of matrix products --------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// The only file that calls OpenBLAS, so that no executable multiplies without what is
// prepared here. OpenBLAS's own threads stay off: ranks that are threads of one process
// would share them.
//
//===----------------------------------------------------------------------===//
#include "Blas.h"

#include "common/launch/Device.h"

#include <cblas.h>

#include <algorithm>
#include <cstdlib>

using namespace meshwright;

/// OpenBLAS reads its environment, and starts its threads, in a constructor of the default
/// priority, which no call from main() can precede. So this one goes before it. Its
/// processor is the one it detects: variables left over from another program can halve its
/// speed. The linker takes this file because main() calls prepareTarget().
__attribute__((constructor(101))) static void setBlasEnvironment() {
  setenv("OPENBLAS_NUM_THREADS", "1", 1);
  unsetenv("OPENBLAS_CORETYPE");
  unsetenv("OPENBLAS_L2_SIZE");
}

void meshwright::prepareTarget() { openblas_set_num_threads(1); }

/// So many rows of C go to the library at once, at most, and a multiple of `tileRows`, which its
/// register tiles divide. It packs a part of A with all of a call's rows, 384 columns or so, and keeps
/// the pages: 65 MB a thread for the gradient of a vocabulary of 128,256. B is packed again for each
/// call, which the rows pay for many times over.
static constexpr int64_t mostRows = 8160, tileRows = 48;

void cpu::multiply(bool transA, bool transB, int64_t m, int64_t n, int64_t k, float alpha,
                   const float *a, int64_t lda, const float *b, int64_t ldb, float beta, float *c,
                   int64_t ldc) {
  int64_t calls = std::max<int64_t>(1, (m + mostRows - 1) / mostRows);
  int64_t rows = ((m + calls - 1) / calls + tileRows - 1) / tileRows * tileRows;
  for (int64_t i = 0; i < m; i += rows)
    cblas_sgemm(CblasRowMajor, transA ? CblasTrans : CblasNoTrans,
                transB ? CblasTrans : CblasNoTrans, blasint(std::min(rows, m - i)), blasint(n),
                blasint(k), alpha, a + (transA ? i : i * lda), blasint(lda), b, blasint(ldb), beta,
                c + i * ldc, blasint(ldc));
}
