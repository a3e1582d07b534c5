//===- Gpu.cpp - the GPU of a rank -------------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "cuda/Gpu.h"

#include "common/launch/Launch.h"
#include "common/monitor/WaitMonitor.h"
#include "common/plan/Arena.h"
#include "cuda/Affinity.h"
#include "cuda/Nvml.h"
#include "cuda/Rehearsal.h"
#include "cuda/Tune.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <utility>

namespace meshwright::cuda {

/// Of so many ops the GPU notes one: some 50 of a step of GPT-2 1.5B, or 0.1 ms of 350.
static constexpr int opsOfMark = 32;

Gpu::Gpu(const Plan &plan, RankGroup &worldCommunicator, RankStatus &status)
    : status(status), plan(plan), rank(worldCommunicator.rank()),
      synchronous(getenv("MESHWRIGHT_SYNCHRONOUS") &&
                  environmentNumber("MESHWRIGHT_SYNCHRONOUS", 0) != 0) {
  MW_CUDA(cuInit, 0);
  int sharing = choose(worldCommunicator);
  MW_CUDA(cuDevicePrimaryCtxRetain, &cuda, device);
  use();
  measure("CUDA's context and other processes");
  checkFree(sharing);
  worldCommunicator.barrier(); // Nobody takes memory before all have looked.
  MW_CUDA(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
  spans = std::make_unique<Spans>();
  progress = std::make_unique<Progress>(synchronous ? 1 : opsOfMark, status);
  if (std::any_of(std::begin(offloadSpaces), std::end(offloadSpaces),
                  [&](MemorySpace space) { return plan.spaces[space].bytes > 0; }))
    transfers = std::make_unique<Transfers>(stream);
  kernels = std::make_unique<Kernels>(device);
  measure("kernels");
  matmuls = std::make_unique<Matmuls>(*kernels);
  measure("cuBLASLt");
  attentions = std::make_unique<Attentions>(plan, worldCommunicator.rank(), device, stream);
  measure("cuDNN");
  // Operands are a part of the arena; each has a place of its own here, though.
  rehearse(*matmuls, *attentions, plan.arena().bytes + MW_PRODUCT_WORKSPACE, status, stream);
  measure("kernels of cuBLASLt and cuDNN");
  communication = std::make_unique<Communication>(plan, worldCommunicator, status, stream);
  measure("NCCL");
  abortCommunication = std::make_unique<FailureHook>([this] { communication->abort(); });
}

Gpu::~Gpu() {
  abortCommunication.reset();
  programs.clear();
  communication.reset();
  attentions.reset();
  transfers.reset();
  matmuls.reset();
  kernels.reset();
  spans.reset();
  progress.reset();
  Driver::load().cuStreamDestroy(stream);
  Driver::load().cuDevicePrimaryCtxRelease(device);
}

/// What is shown to this process, for messages.
static std::string describeSeen(const std::vector<CUuuid> &names) {
  std::string list;
  for (const CUuuid &name : names)
    list += (list.empty() ? "" : ", ") + nvmlName(name, "GPU");
  const char *visible = getenv("CUDA_VISIBLE_DEVICES");
  return text(names.size(), names.size() == 1 ? " GPU (" : " GPUs (", list, list.empty() ? "" : "; ",
              "CUDA_VISIBLE_DEVICES is ", visible ? text("\"", visible, "\"") : "not set", ")");
}

static std::string listOf(const std::vector<int> &ranks) {
  std::string list;
  for (int rank : ranks)
    list += text(list.empty() ? "" : ", ", rank);
  return list;
}

/// Ranks that see the same GPUs of a machine take them by their numbers there, as the launcher counts
/// them. Where it counts past the GPUs, because tasks see others each (CUDA_VISIBLE_DEVICES, control
/// groups, parts of GPUs), they are counted among those that see the same.
int Gpu::numberOf(RankGroup &world, const std::vector<CUuuid> &names, int sharing) const {
  int room = int(names.size()) * sharing;
  std::string seen;
  for (const CUuuid &name : names)
    seen.append(name.bytes, sizeof(name.bytes));
  int32_t local = localRank(world);
  std::vector<int> alike = sameOnMachine(world, seen);
  std::vector<int32_t> locals(size_t(world.size()));
  world.allGather(ElementType::I32, &local, locals.data(), 1);
  if (names.empty())
    fail("rank ", world.rank(), " sees ", describeSeen(names), ": start it where there is one, or "
         "compile with --target cpu");
  if (int(alike.size()) > room)
    fail("ranks ", listOf(alike), " have the same ", describeSeen(names), ": start one rank for each "
         "GPU of a machine, each with its number in LOCAL_RANK or its own in CUDA_VISIBLE_DEVICES");
  if (std::any_of(alike.begin(), alike.end(), [&](int rank) { return locals[size_t(rank)] >= room; }))
    local = int32_t(std::find(alike.begin(), alike.end(), world.rank()) - alike.begin());
  return local / sharing;
}

/// Several ranks share a GPU only where MESHWRIGHT_RANKS_PER_GPU allows it, for tests.
int Gpu::choose(RankGroup &world) {
  int count = 0, sharing = getenv("MESHWRIGHT_RANKS_PER_GPU")
                               ? environmentNumber("MESHWRIGHT_RANKS_PER_GPU", 1)
                               : 1;
  MW_CUDA(cuDeviceGetCount, &count);
  std::vector<CUuuid> names(static_cast<size_t>(count));
  for (int i = 0; i < count; ++i) {
    MW_CUDA(cuDeviceGet, &device, i);
    MW_CUDA(cuDeviceGetUuid, &names[size_t(i)], device);
  }
  int number = numberOf(world, names, sharing);
  MW_CUDA(cuDeviceGet, &device, number);
  const CUuuid &name = names[size_t(number)];
  health = std::make_unique<Health>(name);
  std::vector<int> ranks = sameOnMachine(world, {name.bytes, sizeof(name.bytes)});
  if (int(ranks.size()) > sharing)
    fail("ranks ", listOf(ranks), " have the same GPU, ", nvmlName(name, "GPU"), " of ",
         describeSeen(names), ": start one rank for each GPU of a machine, each with its number in "
         "LOCAL_RANK or its own in CUDA_VISIBLE_DEVICES");
  affinity = runNear(name);
  return int(ranks.size());
}

void Gpu::checkFree(int64_t ranks) const {
  size_t available = 0, all = 0;
  MW_CUDA(cuMemGetInfo, &available, &all);
  int64_t needed = plan.arena().bytes;
  std::string parts = text("\n  arena ", grouped(uint64_t(needed)));
  for (const MemoryLine &line : plan.arena().memory)
    parts += text("\n    ", line.category, " ", grouped(uint64_t(line.bytes)));
  // The context is there already.
  for (const MemoryLine &line : plan.allowances) {
    if (line.category == "CUDA context")
      continue;
    needed += line.bytes;
    parts += text("\n  allowance for ", line.category, " ", grouped(uint64_t(line.bytes)));
  }
  if (needed * ranks <= int64_t(available))
    return;
  fail("the GPU has ", grouped(available), " bytes free of ", grouped(all), ", but ",
       ranks == 1 ? "the plan needs " : text("each of the ", ranks, " ranks on it needs "),
       grouped(uint64_t(needed)), ":", parts,
       "\n  compile with a smaller --batch, more --microbatches or --remat, or use more GPUs");
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
  auto sum = [](const std::vector<MemoryLine> &lines) {
    int64_t bytes = 0;
    for (const MemoryLine &line : lines)
      bytes += line.bytes;
    return bytes;
  };
  auto list = [](const std::vector<MemoryLine> &lines) {
    std::string result;
    for (const MemoryLine &line : lines)
      result += text(result.empty() ? " (" : ", ", line.category, " ", line.bytes);
    return result + ")";
  };
  int64_t measured = sum(beside), allowed = sum(plan.allowances);
  std::string attention = attentions->describe();
  return text(name, ": ", grouped(uint64_t(measured)), " bytes in use beside the arena", list(beside),
              "; the plan allows ", grouped(uint64_t(allowed)), list(plan.allowances),
              measured > allowed
                  ? text(": ", grouped(uint64_t(measured - allowed)), " more than it allows")
                  : "",
              attention.empty() ? "" : "; ", attention, affinity.empty() ? "" : "; ", affinity,
              registered.empty() ? "" : "; the arena in ", registered);
}

void Gpu::tune(Arena &arena, const std::string &file, RankGroup &world) {
  cuda::tune(*matmuls, *attentions, file,
             {reinterpret_cast<CUdeviceptr>(arena.program()), arenaBytes}, device, stream, world,
             status);
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
  // What encloses ops keeps its kind: the index of an iteration is none of a kernel.
  onGpu.category = "gpu";
  for (auto [host, gpu] : {std::pair("loop", "gpu-loop"), std::pair("task", "gpu-task"),
                            std::pair("call", "gpu-call")})
    if (!std::strcmp(span.category, host))
      onGpu.category = gpu;
  onGpu.row = 2;
  trace([&] { spans->end(stream, to, onGpu); });
}

//===----------------------------------------------------------------------===//
// Runs
//===----------------------------------------------------------------------===//

void Gpu::enqueueRun(MwContext &context, EntryPoint program, char *arena) {
  running = &programs[program];
  communication->beginRun();
  progress->beginRun();
  if (transfers)
    transfers->beginRun();
  program(&context, arena);
  if (captureError.empty())
    communication->endRun();
}

void Gpu::run(MwContext &context, EntryPoint program, char *arena) {
  EnqueueScope enqueues(status);
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
  for (size_t engine = 0; engine < copyEngines; ++engine)
    context.copiedBytes[engine] += runs.copiedBytes[engine];
}

bool Gpu::capture(MwContext &context, Runs &runs, EntryPoint program, char *arena) {
  // What came into use in the first run.
  measure("loaded and connected in first runs");
  if (runs.follows) {
    // Evaluations have whole batches.
    const char *reason = program == meshwright_step && context.plan.inputNames.count(microbatchesInput)
                             ? "the host reads how many microbatches a step has; compiled without --batch-ramp it has all"
                             : "the host reads how many rounds experts' rows take; compiled with a large --expert-buffer "
                               "they take one of all slots, and nothing is read";
    if (graphs == "on")
      fail("--cuda-graphs on: the program cannot be captured as a CUDA graph: ", reason,
           "; --cuda-graphs off runs it without");
    runs.refused = true;
    if (rank == 0)
      fprintf(stderr, "note: not captured as a CUDA graph, since %s; %s\n", reason, describe().c_str());
    return false;
  }
  if (graphs == "auto" && communication->hasMessages()) {
    // A rank sends while it receives, in most schedules; branches of a graph may also run one after
    // the other, and then both ranks wait for good.
    runs.refused = true;
    if (rank == 0)
      fprintf(stderr, "note: not captured as a CUDA graph, since there are messages between ranks "
                      "(--cuda-graphs on captures it); %s\n", describe().c_str());
    return false;
  }
  std::map<std::string, int64_t> sentBefore = std::move(context.sentBytes);
  context.sentBytes.clear();
  auto copiedBefore = context.copiedBytes;
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
  for (size_t engine = 0; engine < copyEngines; ++engine)
    runs.copiedBytes[engine] = context.copiedBytes[engine] - copiedBefore[engine];
  context.copiedBytes = copiedBefore;
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
    endAllRanks(message + health->trouble());
  captureError = message;
}

void Gpu::read(void *to, const void *from, int64_t bytes) {
  wait(); // Copying to memory that is not pinned would wait without looking at errors.
  MW_CUDA(cuMemcpyDtoHAsync, to, CUdeviceptr(from), size_t(bytes), stream);
  wait();
}

int32_t Gpu::follow(const int32_t *from) {
  if (capturing)
    fail("the host reads a number that the GPU computes");
  running->follows = true;
  int32_t number = 0;
  read(&number, from, sizeof(number));
  return number;
}

/// Ends the run if `body` fails, with what is known of where the GPU is. Nothing may be torn
/// down on the way: freeing memory waits for the GPU, and communicators for their peers.
template <typename Body>
static void orEnd(const std::string &who, const Plan &plan, const RankStatus &status, Body body) {
  try {
    body();
  } catch (const Error &error) {
    endAllRanks(text(who, ": ", error.what(), "\n  ", describeStatus(plan, status)));
  }
}

void Gpu::wait(const std::string &op) {
  const Driver &driver = Driver::load();
  using Clock = std::chrono::steady_clock;
  // Watching costs nothing that is noticed once a wait is long.
  constexpr auto interval = std::chrono::milliseconds(100);
  auto next = Clock::now() + interval;
  const std::string who = text("rank ", rank, op);
  // NCCL's kernels do not end when a peer is lost; it says so on the side.
  for (;;) {
    CUresult state = driver.cuStreamQuery(stream);
    if (state == CUDA_SUCCESS)
      break;
    if (state != CUDA_ERROR_NOT_READY) {
      communication->report(status);
      orEnd(who, plan, status, [&] {
        try {
          check(state, synchronous ? "the GPU"
                                   : "the GPU (MESHWRIGHT_SYNCHRONOUS=1 finds out at which op)");
        } catch (const Error &error) {
          fail(error.what(), health->trouble());
        }
      });
    }
    if (Clock::now() >= next) {
      bool forOthers = communication->report(status), moved = progress->moved();
      if (!forOthers && moved)
        status.clearWaiting();
      else if (!forOthers)
        status.setWaiting({});
      orEnd(who, plan, status, [&] { communication->check(); });
      next = Clock::now() + interval;
    }
    std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
  spans->collect(stream);
  status.clearWaiting();
  status.collective = -1;
}

} // namespace meshwright::cuda
