//===- Attention.h - attention by cuDNN -----------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// The graphs of all calls that the plan gives to cuDNN, made when the executable starts:
// nothing is compiled in a step, and what cuDNN refuses is known before the first. Where
// the plan has generated kernels too, these make the call then, and it is said why.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_RUNTIME_CUDA_ATTENTION_H
#define MESHWRIGHT_RUNTIME_CUDA_ATTENTION_H

#include "common/plan/Plan.h"
#include "cuda/AttentionGraph.h"
#include "cuda/Libraries.h"

#include <memory>
#include <vector>

namespace meshwright::cuda {

class Attentions {
public:
  /// For the GPU that is current. Throws where a call without a fallback cannot be made.
  Attentions(const Plan &plan, int rank, CUdevice device, CUstream stream);

  size_t size() const { return graphs.size(); }
  const AttentionEntry &entry(size_t number) const { return entries[number]; }
  /// cuDNN's plan of a call; null where generated kernels make it.
  AttentionGraph *graph(size_t number) const { return graphs[number].get(); }
  /// All that tells a call from others, in words.
  std::string describe(size_t number) const;

  /// Whether cuDNN has made call `number` of the plan.
  bool run(int32_t number, void *const *operands) const;

  /// "attention by cuDNN (ENGINE, ...)", and what is not; empty without attention.
  std::string describe() const;

private:
  std::vector<AttentionEntry> entries;
  std::vector<std::unique_ptr<AttentionGraph>> graphs; ///< null: generated kernels
};

} // namespace meshwright::cuda

#endif // MESHWRIGHT_RUNTIME_CUDA_ATTENTION_H
