//===- Graph.cpp - a captured program ---------------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "cuda/Graph.h"

#include "common/monitor/Error.h"

namespace meshwright::cuda {

namespace {
/// What cuStreamEndCapture gave, until an executable one is made of it.
struct Captured {
  CUgraph graph = nullptr;
  ~Captured() {
    if (graph)
      Driver::load().cuGraphDestroy(graph);
  }
};
} // namespace

std::unique_ptr<Graph> Graph::capture(CUstream stream, const std::function<void()> &body) {
  // Relaxed: libraries, and the threads of other ranks, may allocate in the meantime.
  MW_CUDA(cuStreamBeginCapture, stream, CU_STREAM_CAPTURE_MODE_RELAXED);
  Captured captured;
  std::string error;
  try {
    body();
  } catch (const std::exception &thrown) {
    error = thrown.what();
  }
  // In any case, for the stream to be of use again.
  CUresult ended = Driver::load().cuStreamEndCapture(stream, &captured.graph);
  if (!error.empty())
    fail(error);
  check(ended, "cuStreamEndCapture");
  std::unique_ptr<Graph> result(new Graph);
  MW_CUDA(cuGraphGetNodes, captured.graph, nullptr, &result->count);
  // Capturing notes the priorities of streams in the nodes; a launch goes by its own stream's
  // unless it is told to look at these.
  MW_CUDA(cuGraphInstantiate, &result->executable, captured.graph,
          CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY);
  MW_CUDA(cuGraphUpload, result->executable, stream);
  return result;
}

Graph::~Graph() {
  if (executable)
    Driver::load().cuGraphExecDestroy(executable);
}

} // namespace meshwright::cuda
