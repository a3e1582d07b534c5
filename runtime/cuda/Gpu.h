//===- Gpu.h - the GPU of a rank ---------------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_RUNTIME_CUDA_GPU_H
#define MESHWRIGHT_RUNTIME_CUDA_GPU_H

#include "common/Context.h"
#include "cuda/Libraries.h"
#include "cuda/Matmul.h"

#include <map>
#include <memory>
#include <vector>

namespace meshwright::cuda {

/// One GPU and the stream that all of a rank's work goes through, in order; from the first
/// collective that is only started on, communication has a stream of its own.
class Gpu : public meshwright::Device {
public:
  /// The GPU of this rank: the one with its number among the ranks of its machine.
  Gpu(const Plan &plan, Communicator &world);
  ~Gpu() override;

  static Gpu &of(MwContext *context) { return static_cast<Gpu &>(*context->device); }

  /// Makes the device current in the calling thread: CUDA keeps that by thread.
  void use() const { MW_CUDA(cuCtxSetCurrent, cuda); }
  /// Waits until the stream has done everything; notices errors of communication.
  void wait();

  CUdevice device = 0;
  CUcontext cuda = nullptr;
  CUstream stream = nullptr;
  std::unique_ptr<Matmuls> matmuls;
  /// The next collective is only started, as number `start`.
  void startNext(int32_t start) { next = start; }
  /// The stream for communication, which comes after what has been computed so far.
  CUstream beginCommunication();
  /// What is computed from here on comes after it; if it was only started, after `waitFor`.
  void endCommunication();
  /// Computation goes on after the latest collective that was started as `start`.
  void waitFor(int32_t start);

  /// By group of the plan; made with the first collective.
  std::vector<ncclComm_t> groups;
  ncclComm_t world = nullptr;

private:
  void choose(Communicator &world);
  CUevent record(CUevent &event, CUstream on);

  int32_t next = -1;
  CUstream communication = nullptr;
  CUevent computed = nullptr, communicated = nullptr; ///< up to where the streams have come
  std::map<int32_t, CUevent> started;                 ///< by number
};

} // namespace meshwright::cuda

#endif // MESHWRIGHT_RUNTIME_CUDA_GPU_H
