//===- Gpu.h - the GPU of a rank ---------------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_RUNTIME_CUDA_GPU_H
#define MESHWRIGHT_RUNTIME_CUDA_GPU_H

#include "common/monitor/Error.h"
#include "common/monitor/Failure.h"
#include "common/train/Context.h"
#include "cuda/Attention.h"
#include "cuda/Communication.h"
#include "cuda/Graph.h"
#include "cuda/Health.h"
#include "cuda/Kernels.h"
#include "cuda/Libraries.h"
#include "cuda/Matmul.h"
#include "cuda/Progress.h"
#include "cuda/Spans.h"
#include "cuda/Transfers.h"

#include <memory>
#include <vector>

namespace meshwright::cuda {

/// One GPU and the stream that a rank's computations go through, in order.
class Gpu : public meshwright::Device {
public:
  /// The GPU of this rank: the one with its number among the ranks of its machine, or the
  /// only one it sees.
  Gpu(const Plan &plan, RankGroup &world, RankStatus &status);
  ~Gpu() override;

  static Gpu &of(MwContext *context) { return static_cast<Gpu &>(*context->device); }

  /// Makes the device current in the calling thread: CUDA keeps that by thread.
  void use() const { MW_CUDA(cuCtxSetCurrent, cuda); }
  std::string describe() const override;
  void useGraphs(const std::string &mode) override { graphs = mode; }
  /// The first run does what libraries do once, such as loading kernels and connecting
  /// ranks; the second is captured, and what was captured is launched from then on. Runs
  /// that are traced, dumped or watched are not.
  void run(MwContext &context, EntryPoint program, char *arena) override;
  void read(void *to, const void *from, int64_t bytes) override;
  /// Reads a number by which the program goes on.
  int32_t follow(const int32_t *from);
  void tune(Arena &arena, const std::string &file, RankGroup &world) override;
  void beginSpan() override;
  void endSpan(Trace &trace, const Trace::Span &span) override;

  /// Waits until the stream has done everything; notices errors of communication, and
  /// says where it waits for others. `op` is what it waits for, if that is known.
  void wait(const std::string &op = "");

  /// Calls `body(gpu)`, which puts an op of the program on a stream; `what()` names it.
  /// Generated code has no unwind tables: errors end the run here, or the capture that is
  /// under way.
  template <typename What, typename Body>
  static void enqueue(MwContext *context, What what, Body body) {
    Gpu &gpu = of(context);
    if (!gpu.captureError.empty())
      return;
    gpu.status.enqueued.fetch_add(1, std::memory_order_relaxed);
    try {
      body(gpu);
      if (gpu.synchronous)
        gpu.wait(", " + std::string(what()));
    } catch (const std::exception &error) {
      gpu.failed(text("rank ", context->rank(), ", ", what(), ": ", error.what()));
    }
  }
  template <typename Body> static void enqueue(MwContext *context, Body body) {
    auto what = [&] {
      return context->opName ? text(context->opName, " (at ", context->opLocation, ")")
                             : "the program";
    };
    enqueue(context, what, [&](Gpu &gpu) {
      if (context->opName)
        gpu.progress->mark(gpu.stream, context->opName, context->opLocation);
      body(gpu);
    });
  }

  CUdevice device = 0;
  CUcontext cuda = nullptr;
  CUstream stream = nullptr;
  std::unique_ptr<Kernels> kernels;
  std::unique_ptr<Matmuls> matmuls;
  std::unique_ptr<Attentions> attentions;
  std::unique_ptr<Communication> communication;
  std::unique_ptr<Transfers> transfers; ///< null where the plan offloads nothing
  /// Bytes in use on the GPU before the arena, as they came.
  std::vector<MemoryLine> beside;
  /// Of the arena.
  int64_t arenaBytes = 0;
  /// In what NCCL knows it, in words; empty where it does not.
  std::string registered;
  /// Where to write what the rank is at and waits for.
  RankStatus &status;
  std::unique_ptr<Spans> spans;
  std::unique_ptr<Progress> progress;
  std::unique_ptr<Health> health;
  /// Where the host's threads run, in words; may be empty.
  std::string affinity;

  /// Notes as `what` the memory that came into use since the last time; null: it is
  /// accounted for elsewhere.
  void measure(const char *what);

private:
  /// A program of the executable.
  struct Runs {
    int64_t count = 0;
    std::unique_ptr<Graph> graph;
    bool refused = false; ///< it cannot be captured
    bool follows = false; ///< numbers that the GPU computes
    /// Bytes that it sends, by kind of collective.
    std::map<std::string, int64_t> sentBytes;
    std::array<int64_t, copyEngines> copiedBytes = {};
  };

  /// How many ranks share the GPU that is chosen.
  int choose(RankGroup &world);
  /// Of the GPUs called `names`, which this rank sees, the number of its own.
  int numberOf(RankGroup &world, const std::vector<CUuuid> &names, int sharing) const;
  /// An Error with the plan's table unless the GPU has free what `ranks` of them need.
  void checkFree(int64_t ranks) const;
  void enqueueRun(MwContext &context, EntryPoint program, char *arena);
  /// Whether the program has been captured.
  bool capture(MwContext &context, Runs &runs, EntryPoint program, char *arena);
  void failed(const std::string &message);

  const Plan &plan;
  int rank;
  int64_t measured = 0;
  std::string graphs = "auto";
  bool capturing = false;
  std::string captureError;
  std::map<EntryPoint, Runs> programs;
  Runs *running = nullptr; ///< of the program that is enqueued
  /// Waits for every op, so that errors of the GPU are those of the op that made them.
  bool synchronous;
  std::unique_ptr<FailureHook> abortCommunication;
};

} // namespace meshwright::cuda

#endif // MESHWRIGHT_RUNTIME_CUDA_GPU_H
