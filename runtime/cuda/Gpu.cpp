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
  matmuls = std::make_unique<Matmuls>();
  groups.resize(plan.groups.size());
}

Gpu::~Gpu() {
  for (ncclComm_t group : groups)
    if (group)
      Nccl::load().ncclCommDestroy(group);
  if (world)
    Nccl::load().ncclCommDestroy(world);
  for (auto [start, event] : started)
    Driver::load().cuEventDestroy(event);
  for (CUevent event : {computed, communicated})
    if (event)
      Driver::load().cuEventDestroy(event);
  if (communication)
    Driver::load().cuStreamDestroy(communication);
  matmuls.reset();
  Driver::load().cuStreamDestroy(stream);
  Driver::load().cuDevicePrimaryCtxRelease(device);
}

/// Ranks of one machine take its GPUs in their order. Several share a GPU only where
/// MESHWRIGHT_RANKS_PER_GPU allows it, for tests.
void Gpu::choose(Communicator &worldCommunicator) {
  int count = 0;
  MW_CUDA(cuDeviceGetCount, &count);
  int local = localRank(worldCommunicator);
  const char *text = getenv("MESHWRIGHT_RANKS_PER_GPU");
  int sharing = text ? atoi(text) : 1;
  if (sharing < 1)
    fail("MESHWRIGHT_RANKS_PER_GPU is \"", text, "\": it must be a whole number of at least 1");
  if (local / sharing >= count)
    fail("this machine has ", count, count == 1 ? " GPU" : " GPUs", ", but rank ",
         worldCommunicator.rank(), " is number ", local + 1,
         " here: start one rank for each GPU (CUDA_VISIBLE_DEVICES hides some)");
  MW_CUDA(cuDeviceGet, &device, local / sharing);
}

/// Makes `event` stand for what `on` has been given so far.
CUevent Gpu::record(CUevent &event, CUstream on) {
  if (!event)
    MW_CUDA(cuEventCreate, &event, CU_EVENT_DISABLE_TIMING);
  MW_CUDA(cuEventRecord, event, on);
  return event;
}

CUstream Gpu::beginCommunication() {
  if (next < 0 && !communication)
    return stream;
  if (!communication)
    MW_CUDA(cuStreamCreate, &communication, CU_STREAM_NON_BLOCKING);
  MW_CUDA(cuStreamWaitEvent, communication, record(computed, stream), CU_EVENT_WAIT_DEFAULT);
  return communication;
}

void Gpu::endCommunication() {
  if (!communication)
    return;
  if (next >= 0)
    record(started[next], communication);
  else
    MW_CUDA(cuStreamWaitEvent, stream, record(communicated, communication),
            CU_EVENT_WAIT_DEFAULT);
  next = -1;
}

void Gpu::waitFor(int32_t start) {
  if (auto found = started.find(start); found != started.end())
    MW_CUDA(cuStreamWaitEvent, stream, found->second, CU_EVENT_WAIT_DEFAULT);
}

void Gpu::wait() {
  const Driver &driver = Driver::load();
  // NCCL's kernels do not end when a peer is lost; it says so on the side.
  for (;;) {
    CUresult state = driver.cuStreamQuery(stream);
    if (state == CUDA_SUCCESS)
      return;
    if (state != CUDA_ERROR_NOT_READY)
      check(state, "cuStreamQuery");
    for (ncclComm_t group : groups) {
      if (!group)
        continue;
      ncclResult_t error = ncclSuccess;
      MW_NCCL(ncclCommGetAsyncError, group, &error);
      if (error != ncclSuccess && error != ncclInProgress)
        check(error, "a collective");
    }
    std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
}

} // namespace meshwright::cuda

std::unique_ptr<meshwright::Device> meshwright::openDevice(const Plan &plan, Communicator &world) {
  return std::make_unique<cuda::Gpu>(plan, world);
}
