//===- BlasBuffers.cpp - what OpenBLAS multiplies in ----------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "cpu/BlasBuffers.h"

#include "common/monitor/Error.h"

#include <algorithm>
#include <cerrno>
#include <mutex>
#include <sys/mman.h>
#include <sys/resource.h>
#include <vector>

using namespace meshwright;

// OpenBLAS's own, which its kernels call.
extern "C" {
void *blas_memory_alloc(int unused);
void blas_memory_free(void *buffer);
}

/// Of address space; only what a product packs is ever touched.
static constexpr int64_t bufferBytes = int64_t(128) << 20;
/// So many does Debian's build keep.
static constexpr int maxBuffers = 128;

static std::string addressLimit() {
  rlimit limit;
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
    return "what the machine commits itself to (vm.overcommit_memory)";
  return "the limit of " + grouped(limit.rlim_cur) + " bytes (ulimit -v)";
}

void cpu::reserveBlasBuffers(int threads) {
  static std::mutex mutex;
  static int wanted = 0, held = 0;
  std::lock_guard<std::mutex> lock(mutex);
  wanted += threads;
  int count = std::min(wanted, maxBuffers);
  if (count <= held)
    return;
  // Whether they can be had is asked first: OpenBLAS takes no no.
  int64_t missing = (count - held) * bufferBytes;
  void *probe =
      mmap(nullptr, size_t(missing), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (probe == MAP_FAILED)
    fail("matrix products need ", grouped(uint64_t(missing)), " bytes more of address space, ",
         grouped(uint64_t(bufferBytes)), " for each thread, and there are not so many (",
         errnoText(errno), "): raise ", addressLimit(), ", or use fewer threads (OMP_NUM_THREADS)");
  munmap(probe, size_t(missing));
  std::vector<void *> buffers;
  while (int(buffers.size()) < count)
    buffers.push_back(blas_memory_alloc(0));
  for (void *buffer : buffers)
    blas_memory_free(buffer);
  held = count;
}
