//===- GpuArena.cpp - tensors in a GPU's memory ------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "common/Arena.h"
#include "common/Error.h"
#include "cuda/Gpu.h"

#include <algorithm>
#include <cstring>

using namespace meshwright;

namespace {
/// The end of what outlives a step: variables, inputs and outputs, with which the
/// arena begins.
int64_t persistentEnd(const Plan &plan) {
  return std::max({plan.variableRange().end, Plan::rangeOf(plan.inputs).end,
                   Plan::rangeOf(plan.outputs).end});
}

class GpuArena : public Arena {
public:
  GpuArena(cuda::Gpu &device, const Plan &plan) : device(device), pages(persistentEnd(plan)) {
    // What the allowances did not foresee.
    size_t available = 0, all = 0;
    MW_CUDA(cuMemGetInfo, &available, &all);
    if (plan.arenaBytes > int64_t(available))
      fail("the GPU has ", grouped(available), " bytes free of ", grouped(all),
           ", but the plan's arena has ", grouped(uint64_t(plan.arenaBytes)), "; ",
           device.describe(),
           "\n  compile with a smaller --batch, more --microbatches or --remat, or use more GPUs");
    MW_CUDA(cuMemAlloc, &memory, size_t(plan.arenaBytes));
    device.measure(nullptr);
    device.arenaBytes = plan.arenaBytes;
    MW_CUDA(cuMemsetD8Async, memory, 0, size_t(plan.arenaBytes), device.stream);
    host = pages.data();
    if (plan.hostBytes) {
      // Pinned, so that copies run beside the GPU's work.
      void *pinned = nullptr;
      MW_CUDA(cuMemHostAlloc, &pinned, size_t(plan.hostBytes), CU_MEMHOSTALLOC_PORTABLE);
      kept = static_cast<char *>(pinned);
      std::memset(kept, 0, size_t(plan.hostBytes));
    }
  }
  ~GpuArena() override {
    cuda::Driver::load().cuMemFree(memory);
    if (kept)
      cuda::Driver::load().cuMemFreeHost(kept);
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

private:
  cuda::Gpu &device;
  Pages pages;
  CUdeviceptr memory = 0;
};
} // namespace

std::unique_ptr<Arena> meshwright::makeArena(MwContext &context) {
  cuda::Gpu &device = cuda::Gpu::of(&context);
  device.use();
  device.status = &context.status;
  return std::make_unique<GpuArena>(device, context.plan);
}
