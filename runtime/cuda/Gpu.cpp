//===- Gpu.cpp - the GPU of a rank -------------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "cuda/Gpu.h"

#include "common/Error.h"
#include "common/Failure.h"
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
  measure("CUDA's context and other processes");
  MW_CUDA(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
  spans = std::make_unique<Spans>(stream);
  kernels = std::make_unique<Kernels>(device);
  measure("kernels");
  matmuls = std::make_unique<Matmuls>();
  measure("cuBLASLt and its workspace");
  communication = std::make_unique<Communication>(plan, worldCommunicator, stream);
  measure("NCCL");
}

Gpu::~Gpu() {
  communication.reset();
  matmuls.reset();
  kernels.reset();
  spans.reset();
  Driver::load().cuStreamDestroy(stream);
  Driver::load().cuDevicePrimaryCtxRelease(device);
}

/// Ranks of one machine take its GPUs by their numbers there. One that is shown a single
/// GPU takes that. Several share a GPU only where MESHWRIGHT_RANKS_PER_GPU allows it, for
/// tests.
void Gpu::choose(Communicator &worldCommunicator) {
  int count = 0;
  MW_CUDA(cuDeviceGetCount, &count);
  int local = localRank(worldCommunicator);
  int sharing = getenv("MESHWRIGHT_RANKS_PER_GPU")
                    ? environmentNumber("MESHWRIGHT_RANKS_PER_GPU", 1)
                    : 1;
  int number = count == 1 ? 0 : local / sharing;
  if (number >= count)
    fail("this machine has ", count, " GPUs, but rank ", worldCommunicator.rank(), " is number ",
         local + 1, " here: start one rank for each GPU (CUDA_VISIBLE_DEVICES hides some)");
  MW_CUDA(cuDeviceGet, &device, number);
  CUuuid name;
  MW_CUDA(cuDeviceGetUuid, &name, device);
  std::vector<int> ranks = sameOnMachine(worldCommunicator, {name.bytes, sizeof(name.bytes)});
  if (int(ranks.size()) <= sharing)
    return;
  std::string numbers;
  for (int rank : ranks)
    numbers += text(numbers.empty() ? "" : ", ", rank);
  fail("ranks ", numbers, " have the same GPU: start one rank for each GPU of a machine, each "
       "with its number in LOCAL_RANK or its own in CUDA_VISIBLE_DEVICES");
}

void Gpu::measure(const char *what) {
  size_t available = 0, all = 0;
  MW_CUDA(cuMemGetInfo, &available, &all);
  int64_t used = int64_t(all) - int64_t(available);
  beside.push_back({what, used - measured});
  measured = used;
}

std::string Gpu::describe() const {
  char name[256] = {};
  MW_CUDA(cuDeviceGetName, name, int(sizeof(name)), device);
  std::string result = text(name, ": ", grouped(uint64_t(measured)), " bytes in use beside the arena");
  for (const MemoryLine &line : beside)
    result += text(&line == &beside.front() ? " (" : ", ", line.category, " ", line.bytes);
  return result + ")";
}

/// Generated code has no unwind tables: errors end the run here.
template <typename Body> static void trace(Body body) {
  try {
    body();
  } catch (const std::exception &error) {
    endAllRanks(text("trace: ", error.what()));
  }
}

void Gpu::beginSpan() {
  trace([&] { spans->begin(); });
}

void Gpu::endSpan(Trace &to, const Trace::Span &span) {
  trace([&] { spans->end(to, span); });
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
  spans->collect();
  if (!status)
    return;
  status->clearWaiting();
  status->collective = -1;
}

} // namespace meshwright::cuda

std::unique_ptr<meshwright::Device> meshwright::openDevice(const Plan &plan, Communicator &world) {
  return std::make_unique<cuda::Gpu>(plan, world);
}
