//===- Rehearsal.cpp - calls of libraries before the first step -----------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "cuda/Rehearsal.h"

#include <algorithm>
#include <cstdio>

namespace meshwright::cuda {

void rehearse(Matmuls &matmuls, const Attentions &attentions, Space space, RankStatus &status,
              CUstream stream) {
  EnqueueScope enqueues(status);
  for (int64_t i = 0; i < matmuls.size(); ++i) {
    ActivityScope activity(status, matmuls.location(i));
    ++status.enqueued;
    BoundOperands bound = bindOperands(matmuls.shape(i), space.begin);
    if (bound.bytes > space.bytes)
      continue;
    std::string product = matmuls.describe(i);
    std::string wrong = matmuls.check(i, bound.operands.data(), stream);
    if (!wrong.empty())
      fprintf(stderr,
              "note: rank %d: kernels, which are slower, instead of cuBLASLt's epilogue of the "
              "product %s (%s): %s\n",
              status.rank, product.c_str(), matmuls.location(i), wrong.c_str());
  }
  for (size_t i = 0; i < attentions.size(); ++i) {
    AttentionGraph *graph = attentions.graph(i);
    if (!graph)
      continue;
    ActivityScope activity(status, attentions.entry(i).location.c_str());
    ++status.enqueued;
    if (BoundOperands bound = bindOperands(attentions.entry(i), space.begin);
        bound.bytes <= space.bytes)
      graph->run(bound.operands.data());
  }
  MW_CUDA(cuStreamSynchronize, stream);
}

void rehearse(Matmuls &matmuls, const Attentions &attentions, int64_t most, RankStatus &status,
              CUstream stream) {
  Space space{0, 0};
  auto enlarge = [&](int64_t bytes) {
    if (bytes <= most)
      space.bytes = std::max(space.bytes, bytes);
  };
  for (int64_t i = 0; i < matmuls.size(); ++i)
    enlarge(bindOperands(matmuls.shape(i), 0).bytes);
  for (size_t i = 0; i < attentions.size(); ++i)
    if (attentions.graph(i))
      enlarge(bindOperands(attentions.entry(i), 0).bytes);
  if (!space.bytes)
    return;
  MW_CUDA(cuMemAlloc, &space.begin, size_t(space.bytes));
  // The driver's own kernels too.
  MW_CUDA(cuMemsetD8Async, space.begin, 0, size_t(space.bytes), stream);
  MW_CUDA(cuMemsetD32Async, space.begin, 0, 1, stream);
  rehearse(matmuls, attentions, space, status, stream);
  MW_CUDA(cuMemFree, space.begin);
}

} // namespace meshwright::cuda
