//===- GpuArena.cpp - tensors in a GPU's memory ------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "common/monitor/Error.h"
#include "common/plan/Arena.h"
#include "cuda/ArenaMemory.h"
#include "cuda/Gpu.h"
#include "cuda/Registration.h"
#include "meshwright/runtime/cuda/ArenaPages.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <sys/resource.h>

using namespace meshwright;

namespace {
/// The end of what outlives a step: variables, inputs and outputs, with which the
/// arena begins.
int64_t persistentEnd(const Plan &plan) {
  return std::max({plan.variableRange().end, Plan::rangeOf(plan.inputs).end,
                   Plan::rangeOf(plan.outputs).end});
}

/// Pinned memory of the host, which copies read and write beside the GPU's work.
void *pin(int64_t bytes) {
  void *pinned = nullptr;
  try {
    MW_CUDA(cuMemHostAlloc, &pinned, size_t(bytes), CU_MEMHOSTALLOC_PORTABLE);
  } catch (const Error &error) {
    rlimit lock{};
    getrlimit(RLIMIT_MEMLOCK, &lock);
    fail("cannot pin ", grouped(uint64_t(bytes)),
         " bytes of this machine's memory, where --offload keeps what is not on the GPU: ",
         error.what(), "; the machine and its control group have ",
         grouped(uint64_t(std::max<int64_t>(0, availableMemory()))),
         " bytes available, and a process may lock ",
         lock.rlim_cur == RLIM_INFINITY ? "any number of them" : grouped(uint64_t(lock.rlim_cur)),
         " (ulimit -l): free memory, raise these limits, start fewer ranks a machine, or compile "
         "without --offload or with less of it");
  }
  return pinned;
}

/// By all threads: there may be a hundred GB.
void clear(char *memory, int64_t bytes, int threads) {
  constexpr int64_t block = int64_t(16) << 20;
#pragma omp parallel for num_threads(threads) schedule(static) if (bytes > block)
  for (int64_t begin = 0; begin < bytes; begin += block)
    std::memset(memory + begin, 0, size_t(std::min(block, bytes - begin)));
}

class PinnedMemory : public OffloadMemory {
public:
  PinnedMemory(int64_t bytes, int threads) : pinned(static_cast<char *>(pin(bytes))) {
    clear(pinned, bytes, threads);
  }
  ~PinnedMemory() override {
    if (!std::uncaught_exceptions())
      cuda::Driver::load().cuMemFreeHost(pinned);
  }
  char *data() const override { return pinned; }

private:
  char *pinned;
};

class GpuArena : public Arena {
public:
  GpuArena(cuda::Gpu &device, MwContext &context)
      : device(device), pages(persistentEnd(context.plan), Pages::Sparse) {
    int64_t bytes = context.plan.arena().bytes;
    // What the allowances did not foresee.
    size_t available = 0, all = 0;
    MW_CUDA(cuMemGetInfo, &available, &all);
    int64_t rest = restOfLastPage(bytes);
    if (bytes + rest > int64_t(available))
      fail("the GPU has ", grouped(available), " bytes free of ", grouped(all),
           ", but the plan's arena has ", grouped(uint64_t(bytes)), " in pages of ",
           grouped(uint64_t(arenaPageBytes)), "; ",
           device.describe(),
           "\n  compile with a smaller --batch, more --microbatches or --remat, or use more GPUs");
    owned = std::make_unique<cuda::ArenaMemory>(device.device, bytes);
    memory = owned->begin();
    device.measure(nullptr);
    device.beside.push_back({"last page of the arena", owned->mappedBytes() - bytes});
    device.arenaBytes = bytes;
    MW_CUDA(cuMemsetD8Async, memory, 0, size_t(bytes), device.stream);
    registered = std::make_unique<cuda::Registration>(context, *device.communication, *owned);
    device.registered = registered->describe();
    device.measure("NCCL's registration of the arena");
    host = pages.data();
    allocateOffloaded(context);
  }

  char *program() const override { return reinterpret_cast<char *>(memory); }
  void upload(int64_t begin, int64_t end) override {
    if (begin >= end)
      return;
    MW_CUDA(cuMemcpyHtoDAsync, memory + begin, host + begin, size_t(end - begin), device.stream);
    // The host may write there again, while a copy from memory that is not pinned may or may
    // not have ended when the call returns.
    device.wait();
  }
  void download(int64_t begin, int64_t end) override {
    if (begin < end)
      device.read(host + begin, program() + begin, end - begin);
    else
      device.wait();
  }
  void forget(int64_t begin, int64_t end) override { pages.discard(begin, end); }

private:
  cuda::Gpu &device;
  Pages pages;
  std::unique_ptr<cuda::ArenaMemory> owned;
  std::unique_ptr<cuda::Registration> registered; ///< ends before its memory
  CUdeviceptr memory = 0;
};
} // namespace

std::unique_ptr<OffloadMemory> meshwright::allocateHost(const MwContext &context, int64_t bytes, char *) {
  return std::make_unique<PinnedMemory>(bytes, context.threads);
}

std::unique_ptr<Arena> meshwright::makeArena(MwContext &context) {
  cuda::Gpu &device = cuda::Gpu::of(&context);
  device.use();
  return std::make_unique<GpuArena>(device, context);
}
