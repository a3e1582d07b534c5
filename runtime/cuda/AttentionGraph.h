//===- AttentionGraph.h - a call of attention as cuDNN's graphs -----------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// cuDNN describes what it fuses as a graph of operations, which its C++ frontend (headers
// alone) builds; heuristics then choose an engine, and the engine's code is made for the
// GPU. Nothing here needs a GPU: with a description of one as text the same graphs become
// plans, which is how they are tested.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_RUNTIME_CUDA_ATTENTIONGRAPH_H
#define MESHWRIGHT_RUNTIME_CUDA_ATTENTIONGRAPH_H

#include "meshwright/runtime/cuda/Cudnn.h"

#include <memory>
#include <string>

struct CUstream_st;

namespace meshwright::cuda {

/// cuDNN, loaded and found new enough; an Error says what is missing.
void loadCudnn();
/// "9.19.0", of what is loaded.
std::string cudnnVersion();

/// The GPU that plans are made for.
struct CudnnTarget {
  int arch;       ///< 90 of sm_90
  int processors; ///< multiprocessors
  CUstream_st *stream; ///< of the GPU that is current, on which calls are made
  /// Instead of that GPU, one that exists as this text alone, in cuDNN's JSON; no calls are
  /// made then.
  std::string properties = "";
};

/// The plan of one call: of cuDNN's kernels on one part of the batch and the heads after
/// the other (meshwright/runtime/cuda/Cudnn.h says why).
class AttentionGraph {
public:
  /// Of the plans that need no more than so much scratch memory the one that cuDNN thinks
  /// fastest. Throws an Error with cuDNN's words where it has none.
  AttentionGraph(const cudnn::Attention &call, const CudnnTarget &target,
                 int64_t mostWorkspaceBytes = INT64_MAX);
  ~AttentionGraph();

  /// Bytes of scratch memory that runs need.
  int64_t workspaceBytes() const;
  /// cuDNN's name of the engine and its settings.
  std::string engine() const { return engine(candidate()); }

  /// The plans that cuDNN offers, first the one that its heuristic thinks fastest.
  int64_t candidates() const;
  std::string engine(int64_t candidate) const;
  /// The one that runs: the first that can be made and fits, or that was chosen.
  int64_t candidate() const;
  /// False, and nothing changes, where cuDNN cannot make it or it needs more scratch memory.
  bool choose(int64_t candidate, int64_t mostWorkspaceBytes);

  /// Runs it on the call's operands in their order in exec.attention or
  /// exec.attention_grad, the workspace last.
  void run(void *const *operands) const;

private:
  struct Plan;
  std::unique_ptr<Plan> plan;
};

} // namespace meshwright::cuda

#endif // MESHWRIGHT_RUNTIME_CUDA_ATTENTIONGRAPH_H
