//===- Graph.h - a captured program -----------------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_RUNTIME_CUDA_GRAPH_H
#define MESHWRIGHT_RUNTIME_CUDA_GRAPH_H

#include "cuda/Libraries.h"

#include <functional>
#include <memory>

namespace meshwright::cuda {

/// All that a program puts on streams, launched at once. Addresses and numbers are those of
/// the time of capture, so what changes between launches is in the GPU's memory.
class Graph {
public:
  /// What `body` puts on `stream`, and on those that wait for it and are joined to it again.
  /// An Error if that cannot be captured; nothing has been run then.
  static std::unique_ptr<Graph> capture(CUstream stream, const std::function<void()> &body);
  ~Graph();
  Graph(const Graph &) = delete;
  Graph &operator=(const Graph &) = delete;

  void launch(CUstream stream) const { MW_CUDA(cuGraphLaunch, executable, stream); }

  /// Kernels, copies, and the like.
  size_t nodes() const { return count; }

private:
  Graph() = default;
  CUgraphExec executable = nullptr;
  size_t count = 0;
};

} // namespace meshwright::cuda

#endif // MESHWRIGHT_RUNTIME_CUDA_GRAPH_H
