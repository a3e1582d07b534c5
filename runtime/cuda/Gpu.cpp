//===- Gpu.cpp - the GPU of a rank -------------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "cuda/Gpu.h"

#include "common/Error.h"
#include "common/Launch.h"

#include <chrono>
#include <cstdlib>
#include <thread>

namespace meshwright::cuda {

Gpu::Gpu(const Plan &plan, Communicator &worldCommunicator) {
  int version = 0;
  MW_CUDA(cuInit, 0);
  MW_CUDA(cuDriverGetVersion, &version);
  if (version < 13000)
    fail("the driver supports CUDA ", version / 1000, ".", version % 1000 / 10,
         ", this executable needs 13.0: install a newer driver (branch 580 or later)");
  choose(worldCommunicator);
  MW_CUDA(cuDevicePrimaryCtxRetain, &cuda, device);
  use();
  MW_CUDA(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
  kernels = std::make_unique<Kernels>(device);
  matmuls = std::make_unique<Matmuls>();
  communication = std::make_unique<Communication>(plan, worldCommunicator, stream);
}

Gpu::~Gpu() {
  communication.reset();
  matmuls.reset();
  kernels.reset();
  Driver::load().cuStreamDestroy(stream);
  Driver::load().cuDevicePrimaryCtxRelease(device);
}

/// Ranks of one machine take its GPUs in their order. Several share a GPU only where
/// MESHWRIGHT_RANKS_PER_GPU allows it, for tests.
void Gpu::choose(Communicator &worldCommunicator) {
  int count = 0;
  MW_CUDA(cuDeviceGetCount, &count);
  int local = localRank(worldCommunicator);
  int sharing = getenv("MESHWRIGHT_RANKS_PER_GPU")
                    ? environmentNumber("MESHWRIGHT_RANKS_PER_GPU", 1)
                    : 1;
  if (local / sharing >= count)
    fail("this machine has ", count, count == 1 ? " GPU" : " GPUs", ", but rank ",
         worldCommunicator.rank(), " is number ", local + 1,
         " here: start one rank for each GPU (CUDA_VISIBLE_DEVICES hides some)");
  MW_CUDA(cuDeviceGet, &device, local / sharing);
}

void Gpu::wait() {
  const Driver &driver = Driver::load();
  using Clock = std::chrono::steady_clock;
  // Watching costs nothing that is noticed once a wait is long.
  constexpr auto interval = std::chrono::milliseconds(100);
  auto next = Clock::now() + interval;
  // NCCL's kernels do not end when a peer is lost; it says so on the side.
  for (;;) {
    CUresult state = driver.cuStreamQuery(stream);
    if (state == CUDA_SUCCESS)
      break;
    if (state != CUDA_ERROR_NOT_READY)
      check(state, "cuStreamQuery");
    if (Clock::now() >= next) {
      communication->check();
      if (status)
        communication->report(*status);
      next = Clock::now() + interval;
    }
    std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
  if (!status)
    return;
  status->clearWaiting();
  status->collective = -1;
}

} // namespace meshwright::cuda

std::unique_ptr<meshwright::Device> meshwright::openDevice(const Plan &plan, Communicator &world) {
  return std::make_unique<cuda::Gpu>(plan, world);
}
