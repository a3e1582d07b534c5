//===- Launch.cpp - running generated kernels -----------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "common/launch/Threads.h"
#include "meshwright/runtime/ABI.h"

#include <algorithm>

void mw_launch(MwContext *context, MwKernel kernel, void *const *buffers, int64_t iterations,
               int64_t chunks) {
  if (iterations <= 0)
    return;
  if (chunks <= 1) {
    kernel(buffers, 0, iterations);
    return;
  }
  int64_t size = (iterations + chunks - 1) / chunks;
  // Rounding the size up may leave the last chunks empty.
  int64_t used = (iterations + size - 1) / size;
  int threads = int(std::min<int64_t>(mw_context_threads(context), used));
  if (threads <= 1) {
    for (int64_t chunk = 0; chunk < used; ++chunk)
      kernel(buffers, chunk * size, std::min(iterations, (chunk + 1) * size));
    return;
  }
#pragma omp parallel for num_threads(threads) schedule(dynamic, 1)
  for (int64_t chunk = 0; chunk < used; ++chunk)
    kernel(buffers, chunk * size, std::min(iterations, (chunk + 1) * size));
}
