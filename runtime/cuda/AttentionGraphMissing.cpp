//===- AttentionGraphMissing.cpp - a runtime without cuDNN ----------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// In AttentionGraph.cpp's place where cuDNN's frontend was not found.
//
//===----------------------------------------------------------------------===//
#include "cuda/AttentionGraph.h"

#include "common/monitor/Error.h"

using namespace meshwright::cuda;

struct AttentionGraph::Plan {};

[[noreturn]] static void missing() {
  meshwright::fail("Meshwright was built without cuDNN's frontend, so that its executables cannot "
                   "use cuDNN; .ci/setup gets it, with pip, for the next build");
}

void meshwright::cuda::loadCudnn() { missing(); }
std::string meshwright::cuda::cudnnVersion() { return ""; }
AttentionGraph::AttentionGraph(const cudnn::Attention &, const CudnnTarget &, int64_t) { missing(); }
AttentionGraph::~AttentionGraph() = default;
int64_t AttentionGraph::workspaceBytes() const { return 0; }
int64_t AttentionGraph::candidates() const { return 0; }
std::string AttentionGraph::engine(int64_t) const { return ""; }
int64_t AttentionGraph::candidate() const { return 0; }
bool AttentionGraph::choose(int64_t, int64_t) { return false; }
void AttentionGraph::run(void *const *) const {}
