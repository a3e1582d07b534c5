//===- Gpu.cpp - the GPU of a rank -------------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "cuda/Gpu.h"

#include "common/Launch.h"
#include "common/WaitMonitor.h"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>

namespace meshwright::cuda {

Gpu::Gpu(const Plan &plan, Communicator &worldCommunicator)
    : plan(plan), rank(worldCommunicator.rank()),
      synchronous(getenv("MESHWRIGHT_SYNCHRONOUS") &&
                  environmentNumber("MESHWRIGHT_SYNCHRONOUS", 0) != 0) {
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
  spans = std::make_unique<Spans>();
  kernels = std::make_unique<Kernels>(device);
  measure("kernels");
  matmuls = std::make_unique<Matmuls>();
  measure("cuBLASLt and its workspace");
  communication = std::make_unique<Communication>(plan, worldCommunicator, stream);
  measure("NCCL");
  abortCommunication = std::make_unique<FailureHook>([this] { communication->abort(); });
}

Gpu::~Gpu() {
  abortCommunication.reset();
  programs.clear();
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
  if (what)
    beside.push_back({what, used - measured});
  measured = used;
}

std::string Gpu::describe() const {
  char name[256] = {};
  MW_CUDA(cuDeviceGetName, name, int(sizeof(name)), device);
  int64_t sum = 0;
  for (const MemoryLine &line : beside)
    sum += line.bytes;
  std::string result = text(name, ": ", grouped(uint64_t(sum)), " bytes in use beside the arena");
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
  trace([&] { spans->begin(stream); });
}

void Gpu::endSpan(Trace &to, const Trace::Span &span) {
  Trace::Span onGpu = span;
  onGpu.category = "gpu";
  onGpu.row = 2;
  trace([&] { spans->end(stream, to, onGpu); });
}

//===----------------------------------------------------------------------===//
// Runs
//===----------------------------------------------------------------------===//

void Gpu::enqueueRun(MwContext &context, EntryPoint program, char *arena) {
  communication->beginRun();
  program(&context, arena);
  if (captureError.empty())
    communication->endRun();
}

void Gpu::run(MwContext &context, EntryPoint program, char *arena) {
  Runs &runs = programs[program];
  bool first = runs.count++ == 0;
  bool watched = context.dump || (context.trace && context.trace->recording) || synchronous;
  if (first || watched || graphs == "off" || runs.refused ||
      (!runs.graph && !capture(context, runs, program, arena))) {
    enqueueRun(context, program, arena);
    return;
  }
  runs.graph->launch(stream);
  for (const auto &[kind, bytes] : runs.sentBytes)
    context.sentBytes[kind] += bytes;
}

bool Gpu::capture(MwContext &context, Runs &runs, EntryPoint program, char *arena) {
  // What came into use in the first run.
  measure("loaded and connected in first runs");
  std::map<std::string, int64_t> sentBefore = std::move(context.sentBytes);
  context.sentBytes.clear();
  std::string reason;
  capturing = true;
  try {
    runs.graph = Graph::capture(stream, [&] {
      enqueueRun(context, program, arena);
      if (!captureError.empty())
        fail(captureError);
    });
  } catch (const std::exception &error) {
    reason = error.what();
  }
  capturing = false;
  captureError.clear();
  runs.sentBytes = std::move(context.sentBytes);
  context.sentBytes = std::move(sentBefore);
  if (runs.graph) {
    measure("CUDA graphs");
    if (rank == 0)
      fprintf(stderr, "note: captured a CUDA graph of %zu nodes; %s\n", runs.graph->nodes(),
              describe().c_str());
    return true;
  }
  if (graphs == "on")
    fail("--cuda-graphs on: the program cannot be captured as a CUDA graph: ", reason,
         "; --cuda-graphs off runs it without");
  runs.refused = true;
  fprintf(stderr, "note: rank %d: the program cannot be captured as a CUDA graph, it is run without: %s\n",
          rank, reason.c_str());
  return false;
}

void Gpu::failed(const std::string &message) {
  if (!capturing)
    endAllRanks(message);
  captureError = message;
}

void Gpu::read(void *to, const void *from, int64_t bytes) {
  MW_CUDA(cuMemcpyDtoHAsync, to, CUdeviceptr(from), size_t(bytes), stream);
  wait();
}

/// Says what is known of where the GPU is when `body` fails.
template <typename Body> static void locate(const Plan &plan, const RankStatus *status, Body body) {
  try {
    body();
  } catch (const Error &error) {
    if (!status)
      throw;
    fail(error.what(), "\n  ", describeStatus(plan, *status));
  }
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
    if (state != CUDA_ERROR_NOT_READY) {
      if (status)
        communication->report(*status);
      locate(plan, status, [&] {
        check(state, synchronous ? "the GPU" : "the GPU (MESHWRIGHT_SYNCHRONOUS=1 finds out at which op)");
      });
    }
    if (Clock::now() >= next) {
      if (status)
        communication->report(*status);
      locate(plan, status, [&] { communication->check(); });
      next = Clock::now() + interval;
    }
    std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
  spans->collect(stream);
  if (!status)
    return;
  status->clearWaiting();
  status->collective = -1;
}

} // namespace meshwright::cuda

std::unique_ptr<meshwright::Device> meshwright::openDevice(const Plan &plan, Communicator &world) {
  return std::make_unique<cuda::Gpu>(plan, world);
}
