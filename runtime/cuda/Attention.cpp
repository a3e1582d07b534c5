//===- Attention.cpp - attention by cuDNN ---------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "cuda/Attention.h"

#include "common/monitor/Error.h"
#include "cuda/Gpu.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <set>
#include <thread>

namespace meshwright::cuda {

/// The graph of one call; throws where cuDNN cannot make it within the plan.
static std::unique_ptr<AttentionGraph> build(const AttentionEntry &entry,
                                             const CudnnTarget &target) {
  std::string reason = cudnn::whyNot(entry.call, target.arch);
  if (!reason.empty())
    fail(reason);
  // Parts depend on the architecture, and so may what they need.
  return std::make_unique<AttentionGraph>(entry.call, target, entry.workspaceBytes);
}

static const char *nameOf(const AttentionEntry &entry) {
  return entry.call.backward ? "attention_grad" : "attention";
}

Attentions::Attentions(const Plan &plan, int rank, CUdevice device, CUstream stream)
    : entries(plan.attentions), graphs(plan.attentions.size()) {
  std::vector<size_t> wanted;
  for (size_t i = 0; i < plan.attentions.size(); ++i)
    if (plan.attentions[i].byCudnn)
      wanted.push_back(i);
  if (wanted.empty())
    return;
  std::vector<std::string> reasons(plan.attentions.size());
  try {
    loadCudnn();
    int arch = attributeOf(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) * 10 +
               attributeOf(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
    int processors = attributeOf(device, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
    CUcontext context = nullptr;
    MW_CUDA(cuCtxGetCurrent, &context);
    // Most of the time goes into compiling kernels, one a graph.
    std::atomic<size_t> next{0};
    auto work = [&] {
      for (size_t at; (at = next++) < wanted.size();)
        try {
          MW_CUDA(cuCtxSetCurrent, context);
          graphs[wanted[at]] = build(plan.attentions[wanted[at]], {arch, processors, stream});
        } catch (const std::exception &error) {
          reasons[wanted[at]] = error.what();
        }
    };
    std::vector<std::thread> threads(std::min(
        wanted.size(), size_t(std::max(1u, std::thread::hardware_concurrency()))));
    for (std::thread &thread : threads)
      thread = std::thread(work);
    for (std::thread &thread : threads)
      thread.join();
  } catch (const std::exception &error) {
    for (size_t i : wanted)
      reasons[i] = error.what();
  }
  std::set<std::string> said;
  for (size_t i : wanted) {
    const AttentionEntry &entry = plan.attentions[i];
    if (reasons[i].empty())
      continue;
    if (!entry.fallback)
      fail(nameOf(entry), " at ", entry.location, " is to be cuDNN's (--attention cudnn): ",
           reasons[i]);
    if (said.insert(reasons[i]).second)
      fprintf(stderr, "note: rank %d: generated kernels, which are slower, instead of cuDNN's: %s\n",
              rank, reasons[i].c_str());
  }
}

std::string Attentions::describe(size_t number) const {
  const cudnn::Attention &call = entries[number].call;
  const MwAttention &s = call.sizes;
  return text(nameOf(entries[number]), s.elementType == MW_BF16 ? " bf16" : " f16", " batch=", s.batch,
              " queries=", s.queries, " keys=", s.keys, " heads=", s.heads, " kv_heads=", s.kvHeads,
              " head_dim=", s.headDim, s.window ? text(" window=", s.window) : "",
              s.causal ? " causal" : "",
              call.backward && call.deterministic ? " deterministic" : "");
}

bool Attentions::run(int32_t number, void *const *operands) const {
  const std::unique_ptr<AttentionGraph> &graph = graphs.at(size_t(number));
  if (!graph)
    return false;
  graph->run(operands);
  return true;
}

std::string Attentions::describe() const {
  std::set<std::string> engines;
  size_t generated = 0;
  for (const auto &graph : graphs)
    if (graph)
      engines.insert(graph->engine());
    else
      ++generated;
  if (graphs.empty())
    return "";
  if (engines.empty())
    return "attention by generated kernels";
  std::string result = "attention by cuDNN " + cudnnVersion();
  for (const std::string &engine : engines)
    result += text(engine == *engines.begin() ? " (" : ", ", engine);
  return result + (generated ? "), some by generated kernels" : ")");
}

} // namespace meshwright::cuda

using namespace meshwright;

int32_t mw_cudnn_attention(MwContext *context, int32_t call, void *const *operands) {
  bool made = true;
  cuda::Gpu::enqueue(context, [&](cuda::Gpu &gpu) { made = gpu.attentions->run(call, operands); });
  return made;
}
