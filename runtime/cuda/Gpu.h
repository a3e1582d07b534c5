//===- Gpu.h - the GPU of a rank ---------------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_RUNTIME_CUDA_GPU_H
#define MESHWRIGHT_RUNTIME_CUDA_GPU_H

#include "common/Context.h"
#include "cuda/Communication.h"
#include "cuda/Kernels.h"
#include "cuda/Libraries.h"
#include "cuda/Matmul.h"
#include "cuda/Spans.h"

#include <memory>
#include <vector>

namespace meshwright::cuda {

/// One GPU and the stream that a rank's computations go through, in order.
class Gpu : public meshwright::Device {
public:
  /// The GPU of this rank: the one with its number among the ranks of its machine, or the
  /// only one it sees.
  Gpu(const Plan &plan, Communicator &world);
  ~Gpu() override;

  static Gpu &of(MwContext *context) { return static_cast<Gpu &>(*context->device); }

  /// Makes the device current in the calling thread: CUDA keeps that by thread.
  void use() const { MW_CUDA(cuCtxSetCurrent, cuda); }
  std::string describe() const override;
  void beginSpan() override;
  void endSpan(Trace &trace, const Trace::Span &span) override;

  /// Waits until the stream has done everything; notices errors of communication, and
  /// says where it waits for others.
  void wait();

  CUdevice device = 0;
  CUcontext cuda = nullptr;
  CUstream stream = nullptr;
  std::unique_ptr<Kernels> kernels;
  std::unique_ptr<Matmuls> matmuls;
  std::unique_ptr<Communication> communication;
  /// Bytes in use on the GPU before the arena, as they came.
  std::vector<MemoryLine> beside;
  /// Where to write what the rank waits for, if not null.
  RankStatus *status = nullptr;

private:
  void choose(Communicator &world);
  /// Notes as `what` the memory that came into use since the last time.
  void measure(const char *what);

  std::unique_ptr<Spans> spans;
  int64_t measured = 0;
};

} // namespace meshwright::cuda

#endif // MESHWRIGHT_RUNTIME_CUDA_GPU_H
