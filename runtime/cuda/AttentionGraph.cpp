//===- AttentionGraph.cpp - a call of attention as cuDNN's graphs ---------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "cuda/AttentionGraph.h"

#include "common/monitor/Error.h"
#include "cuda/Libraries.h"

#include <cudnn_frontend.h>
#include <optional>

using namespace meshwright;
using namespace meshwright::cuda;
namespace fe = cudnn_frontend;

/// Where the frontend looks for cuDNN's functions.
void *cudnn_frontend::cudnn_dlhandle = nullptr;

namespace {
using Tensor = std::shared_ptr<fe::graph::Tensor_attributes>;

/// The tensors of a call, by their numbers in cuDNN's graphs, above those that the frontend
/// gives its own.
enum Id : int64_t { Q = 101, K, V, Out, Lse, DOut, DQ, DK, DV };
const Id forwardOperands[] = {Q, K, V, Out, Lse};
const Id backwardOperands[] = {DOut, Q, K, V, Out, Lse, DQ, DK, DV};
} // namespace

static void require(cudnnStatus_t status, const char *call) {
  if (status != CUDNN_STATUS_SUCCESS)
    fail(call, ": ", fe::detail::get_error_string(status));
}

void cuda::loadCudnn() {
  // Earlier versions have the frontend copy lengths of sequences in each call where these
  // are no multiples of 128.
  constexpr size_t oldest = 91501;
  static const bool loaded = [] {
    fe::cudnn_dlhandle = openCudnn();
    try {
      fe::detail::get_backend_version();
    } catch (const std::exception &error) {
      fail("libcudnn.so.9 is no cuDNN 9: ", error.what());
    }
    if (fe::detail::get_backend_version() < oldest)
      fail("cuDNN ", cudnnVersion(), " is too old: 9.15.1 or a later 9 works");
    return true;
  }();
  (void)loaded;
}

std::string cuda::cudnnVersion() {
  size_t version = fe::detail::get_backend_version();
  return text(version / 10000, ".", version / 100 % 100, ".", version % 100);
}

static void require(const fe::error_t &error, const char *what) {
  if (error.is_good())
    return;
  std::string message = error.err_msg;
  for (size_t at; (at = message.find('\n')) != std::string::npos;)
    message.replace(at, 1, "; ");
  fail(what, ": ", message);
}

static int64_t elementBytes(Id id) { return id == Lse ? 4 : 2; }

namespace {
struct Handle {
  Handle() = default;
  Handle(const Handle &) = delete;
  Handle &operator=(const Handle &) = delete;
  ~Handle() {
    if (value)
      fe::detail::destroy_handle(value);
  }
  cudnnHandle_t value = nullptr;
};
} // namespace

struct AttentionGraph::Plan {
  Plan(const cudnn::Attention &call, const CudnnTarget &target, int64_t mostWorkspaceBytes)
      : call(call), part(cudnn::partOf(call, target.arch)) {
    const MwAttention &sizes = call.sizes;
    graph.set_sm_version(target.arch).set_sm_count(target.processors);
    auto type = sizes.elementType == MW_BF16 ? fe::DataType_t::BFLOAT16 : fe::DataType_t::HALF;
    graph.set_io_data_type(type)
        .set_intermediate_data_type(fe::DataType_t::FLOAT)
        .set_compute_data_type(fe::DataType_t::FLOAT);
    if (call.backward)
      addBackward();
    else
      addForward();
    require(graph.validate(), "cuDNN does not support it");
    if (target.properties.empty()) {
      require(fe::detail::create_handle(&handle.value), "cudnnCreate");
      require(fe::detail::set_stream(handle.value, target.stream), "cudnnSetStream");
      require(graph.build_operation_graph(handle.value), "cuDNN's operations");
    } else {
      auto device = std::make_shared<fe::DeviceProperties>();
      const std::string &text = target.properties;
      require(device->deserialize({text.begin(), text.end()}), "properties of the GPU");
      graph.set_device_properties(device);
      require(graph.build_operation_graph(), "cuDNN's operations");
    }
    require(graph.create_execution_plans({fe::HeurMode_t::A}), "cuDNN has no engine");
    require(graph.check_support(), "cuDNN has no engine");
    // The fastest may want more memory than there is, and the next less.
    fe::error_t made{fe::error_code_t::HEURISTIC_QUERY_FAILED, "it offers none"};
    for (int64_t i = 0; i < graph.get_execution_plan_count() && made.is_bad(); ++i)
      made = choose(i, mostWorkspaceBytes);
    if (made.is_bad() && leastRefused)
      fail("cuDNN asks for ", grouped(uint64_t(*leastRefused)),
           " bytes of scratch memory or more, the plan has ", grouped(uint64_t(mostWorkspaceBytes)),
           "; compile with --gpu-arch sm_", target.arch);
    require(made, "cuDNN cannot make the code of its engine");
  }
  fe::error_t choose(int64_t candidate, int64_t mostWorkspaceBytes) {
    fe::error_t made = graph.build_plan_at_index(candidate);
    int64_t bytes = 0;
    if (made.is_good())
      made = graph.get_workspace_size_plan_at_index(candidate, bytes);
    if (made.is_bad())
      return made;
    if (bytes > mostWorkspaceBytes) {
      leastRefused = std::min(bytes, leastRefused.value_or(bytes));
      return {fe::error_code_t::GRAPH_NOT_SUPPORTED, "it needs more scratch memory"};
    }
    chosen = candidate;
    workspaceBytes = bytes;
    return made;
  }

  /// The extents and the distances in elements of a tensor's part, as cuDNN has them:
  /// batch, heads, sequence, elements.
  void describe(const Tensor &tensor, Id id) const {
    const MwAttention &s = call.sizes;
    bool ofKeys = id == K || id == V || id == DK || id == DV;
    int64_t length = ofKeys ? s.keys : s.queries, all = ofKeys ? s.kvHeads : s.heads;
    int64_t heads = ofKeys ? part.kvHeads : part.heads;
    tensor->set_uid(id);
    // cuDNN wants it without gaps, which a part has: it is of one sequence then.
    if (id == Lse)
      tensor->set_dim({part.batch, heads, length, 1})
          .set_stride({heads * length, length, 1, 1})
          .set_data_type(fe::DataType_t::FLOAT);
    else
      tensor->set_dim({part.batch, heads, length, s.headDim})
          .set_stride({length * all * s.headDim, s.headDim, all * s.headDim, 1});
  }
  Tensor input(Id id) {
    Tensor tensor = graph.tensor(fe::graph::Tensor_attributes());
    describe(tensor, id);
    return tensor;
  }
  void output(const Tensor &tensor, Id id) const {
    tensor->set_output(true);
    describe(tensor, id);
  }

  template <typename Attributes> Attributes attributes() const {
    const MwAttention &s = call.sizes;
    Attributes result;
    result.set_name("attention").set_attn_scale(s.scale);
    result.set_diagonal_alignment(fe::DiagonalAlignment_t::TOP_LEFT);
    if (s.causal)
      result.set_diagonal_band_right_bound(0);
    // Visible from key + bound > query on, as here.
    if (s.window)
      result.set_diagonal_band_left_bound(int(s.window));
    if (s.window && !s.causal)
      result.set_diagonal_band_right_bound(int(s.window - 1));
    return result;
  }
  void addForward() {
    auto how = attributes<fe::graph::SDPA_attributes>().set_generate_stats(true);
    auto [out, lse] = graph.sdpa(input(Q), input(K), input(V), how);
    output(out, Out);
    output(lse, Lse);
  }
  void addBackward() {
    auto how = attributes<fe::graph::SDPA_backward_attributes>().set_deterministic_algorithm(
        call.deterministic);
    auto [dq, dk, dv] = graph.sdpa_backward(input(Q), input(K), input(V), input(Out), input(DOut),
                                            input(Lse), how);
    output(dq, DQ);
    output(dk, DK);
    output(dv, DV);
  }

  /// Bytes from the beginning of a tensor to the part of the sequences from `batch` and
  /// the heads from `head` on.
  int64_t offsetOf(Id id, int64_t batch, int64_t head) const {
    const MwAttention &s = call.sizes;
    if (id == Lse)
      return elementBytes(id) * (batch * s.heads + head) * s.queries;
    bool ofKeys = id == K || id == V || id == DK || id == DV;
    if (ofKeys)
      return elementBytes(id) * (batch * s.keys * s.kvHeads + head * s.kvHeads / s.heads) *
             s.headDim;
    return elementBytes(id) * (batch * s.queries * s.heads + head) * s.headDim;
  }

  template <size_t count>
  void run(void *const *operands, const Id (&ids)[count]) const {
    std::unordered_map<int64_t, void *> addresses;
    void *workspace = operands[count];
    for (int64_t batch = 0; batch < call.sizes.batch; batch += part.batch)
      for (int64_t head = 0; head < call.sizes.heads; head += part.heads) {
        for (size_t i = 0; i < count; ++i)
          addresses[ids[i]] = static_cast<char *>(operands[i]) + offsetOf(ids[i], batch, head);
        require(graph.execute_plan_at_index(handle.value, addresses, workspace, chosen), "cuDNN");
      }
  }

  cudnn::Attention call;
  cudnn::Part part;
  /// Its own, since graphs are made by several threads and keep the handle they are made
  /// with.
  Handle handle;
  mutable fe::graph::Graph graph;
  int64_t chosen = 0; ///< of the plans that cuDNN offers
  int64_t workspaceBytes = 0;
  std::optional<int64_t> leastRefused; ///< bytes of scratch memory, of plans that want too much
};

AttentionGraph::AttentionGraph(const cudnn::Attention &call, const CudnnTarget &target,
                               int64_t mostWorkspaceBytes)
    : plan(std::make_unique<Plan>(call, target, mostWorkspaceBytes)) {}
AttentionGraph::~AttentionGraph() = default;

int64_t AttentionGraph::workspaceBytes() const { return plan->workspaceBytes; }

int64_t AttentionGraph::candidates() const { return plan->graph.get_execution_plan_count(); }

std::string AttentionGraph::engine(int64_t candidate) const {
  std::string name;
  require(plan->graph.get_plan_name_at_index(candidate, name), "cuDNN's plan");
  return name;
}

int64_t AttentionGraph::candidate() const { return plan->chosen; }

bool AttentionGraph::choose(int64_t candidate, int64_t mostWorkspaceBytes) {
  return plan->choose(candidate, mostWorkspaceBytes).is_good();
}

void AttentionGraph::run(void *const *operands) const {
  if (plan->call.backward)
    plan->run(operands, backwardOperands);
  else
    plan->run(operands, forwardOperands);
}
