//===- FakeCudnn.cpp - a cuDNN without a GPU ---------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// Stands for libcudnn.so.9 beside the fake driver. Descriptors keep what they are told;
// each of three engines makes every graph, and computes it where FAKE_GPU_COMPUTES is set
// (FakeCudnnGraph.h). What is executed must be a graph that was finalized, on the handle
// it was made for, with an address for each tensor of it that is in memory: aligned as the
// graph says, allocated as far as the tensor reaches, and apart from all that is written.
// Scratch memory is filled with NaNs before and behind, so that nothing else may be there.
// FAKE_CUDNN_WORKSPACE is the scratch memory its plans ask for (256), FAKE_CUDNN_FIRST that of
// the first of them, FAKE_CUDNN_REFUSES makes it have no engine, FAKE_CUDNN_VERSION changes its
// version.
//
//===----------------------------------------------------------------------===//
#include "FakeCudnnGraph.h"
#include "FakeStreams.h"
#include "cudnn.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <map>
#include <vector>

using namespace fake;

struct cudnnContext {
  cudaStream_t stream = nullptr;
};

namespace {
size_t sizeOf(cudnnBackendAttributeType_t type) {
  switch (type) {
  case CUDNN_TYPE_CHAR:
  case CUDNN_TYPE_BOOLEAN:
    return 1;
  case CUDNN_TYPE_INT64:
  case CUDNN_TYPE_DOUBLE:
  case CUDNN_TYPE_VOID_PTR:
  case CUDNN_TYPE_HANDLE:
  case CUDNN_TYPE_BACKEND_DESCRIPTOR:
  case CUDNN_TYPE_FRACTION:
    return 8;
  default:
    return 4;
  }
}

int64_t number(const char *variable, int64_t otherwise) {
  const char *text = getenv(variable);
  return text ? atoll(text) : otherwise;
}

/// What the heuristic offers: the second engine is the fastest, the third the same, but with
/// more scratch memory than any plan has.
constexpr int64_t engines = 3, fastest = 1, greedy = 2;

/// Of a plan or an engine's configuration.
int64_t workspaceOf(const Descriptor &descriptor) {
  const Descriptor &config =
      descriptor.type == CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR
          ? *descriptor.get<Descriptor *>(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG)
          : descriptor;
  auto engine = config.get<Descriptor *>(CUDNN_ATTR_ENGINECFG_ENGINE);
  int64_t index = engine->get<int64_t>(CUDNN_ATTR_ENGINE_GLOBAL_INDEX, 0);
  int64_t bytes = number("FAKE_CUDNN_WORKSPACE", 256);
  return index == greedy ? int64_t(1) << 40 : index == 0 ? number("FAKE_CUDNN_FIRST", bytes) : bytes;
}

/// The addresses of a tensor's elements, sorted.
std::vector<CUdeviceptr> addressesOf(const GraphTensor &tensor, CUdeviceptr begin) {
  std::vector<CUdeviceptr> result;
  for (int64_t offset : tensor.offsets())
    result.push_back(begin + CUdeviceptr(offset) * widthOf(tensor.type));
  std::sort(result.begin(), result.end());
  return result;
}

/// What a call is made with.
struct Operands {
  std::map<int64_t, char *> addresses;
  std::map<int64_t, float> numbers;
  std::vector<Access> accesses;
};

Operands operandsOf(const OperationGraph &graph, const Descriptor &pack) {
  Operands result;
  auto ids = pack.all<int64_t>(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
  auto given = pack.all<char *>(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
  if (ids.size() != given.size())
    wrong("cuDNN is given %zu addresses of %zu tensors", given.size(), ids.size());
  std::vector<const GraphTensor *> tensors; ///< of the accesses
  for (auto &[id, tensor] : graph.tensors()) {
    if (tensor.isVirtual)
      continue;
    auto found = std::find(ids.begin(), ids.end(), id);
    if (found == ids.end())
      wrong("cuDNN: tensor %ld has no address", long(id));
    char *address = given[size_t(found - ids.begin())];
    if (tensor.isByValue) {
      // It is the host's, and read now.
      result.numbers[id] = read(tensor.type, address, 0);
      continue;
    }
    if (tensor.alignment <= 0 || CUdeviceptr(address) % CUdeviceptr(tensor.alignment))
      wrong("cuDNN: tensor %ld is at %p, not at a multiple of %ld bytes", long(id),
            static_cast<void *>(address), long(tensor.alignment));
    checkRange("tensor of attention", CUdeviceptr(address), tensor.extent());
    result.addresses[id] = address;
    tensors.push_back(&tensor);
    result.accesses.push_back(
        {graph.writes(id) ? Access::Write : Access::Read, CUdeviceptr(address), tensor.extent()});
  }
  for (size_t i = 0; i < tensors.size(); ++i)
    for (size_t j = 0; j < tensors.size(); ++j) {
      const Access &a = result.accesses[i], &b = result.accesses[j];
      if (i == j || a.kind != Access::Write || a.begin >= b.begin + b.bytes ||
          b.begin >= a.begin + a.bytes)
        continue;
      // Rows of one may lie between rows of the other.
      std::vector<CUdeviceptr> one = addressesOf(*tensors[i], a.begin),
                               other = addressesOf(*tensors[j], b.begin), both;
      std::set_intersection(one.begin(), one.end(), other.begin(), other.end(),
                            std::back_inserter(both));
      if (!both.empty())
        wrong("cuDNN: tensor %ld, which is written, overlaps tensor %ld", long(tensors[i]->id),
              long(tensors[j]->id));
    }
  return result;
}
} // namespace

extern "C" {
size_t cudnnGetVersion() { return size_t(number("FAKE_CUDNN_VERSION", 91900)); }
size_t cudnnGetCudartVersion() { return 13000; }
const char *cudnnGetErrorString(cudnnStatus_t) { return "status"; }
void cudnnGetLastErrorString(char *message, size_t size) { snprintf(message, size, "fake"); }
cudnnStatus_t cudnnCreate(cudnnHandle_t *handle) {
  return *handle = new cudnnContext, CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnDestroy(cudnnHandle_t handle) { return delete handle, CUDNN_STATUS_SUCCESS; }
cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream) {
  return handle->stream = stream, CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnGetStream(cudnnHandle_t handle, cudaStream_t *stream) {
  return *stream = handle->stream, CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type,
                                           cudnnBackendDescriptor_t *made) {
  *made = new Descriptor{type};
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t) {
  return CUDNN_STATUS_SUCCESS; // Others may still point to it.
}
cudnnStatus_t cudnnBackendInitialize(cudnnBackendDescriptor_t) { return CUDNN_STATUS_SUCCESS; }
cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t handle) {
  auto &descriptor = *static_cast<Descriptor *>(handle);
  if (number("FAKE_CUDNN_REFUSES", 0) && descriptor.type == CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR)
    return CUDNN_STATUS_NOT_SUPPORTED;
  if (descriptor.type == CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR)
    descriptor.graph = std::make_shared<OperationGraph>(descriptor);
  descriptor.finalized = true;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t handle,
                                       cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t count,
                                       const void *elements) {
  auto &descriptor = *static_cast<Descriptor *>(handle);
  if (descriptor.finalized)
    wrong("cuDNN: attribute %d is set behind finalization", int(name));
  checkKnown(descriptor.type, name);
  const char *begin = static_cast<const char *>(elements);
  size_t bytes = size_t(count) * sizeOf(type);
  descriptor.values[name] = {type, count, std::vector<char>(begin, begin + bytes)};
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnBackendGetAttribute(const cudnnBackendDescriptor_t handle,
                                       cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t wanted,
                                       int64_t *count, void *elements) {
  auto &descriptor = *static_cast<Descriptor *>(handle);
  auto answer = [&](int64_t value) {
    if (count)
      *count = 1;
    if (elements && wanted > 0)
      memcpy(elements, &value, sizeOf(type));
    return CUDNN_STATUS_SUCCESS;
  };
  if (name == CUDNN_ATTR_ENGINEHEUR_RESULTS) {
    *count = engines;
    for (int64_t i = 0; i < std::min(wanted, engines); ++i) {
      auto &config = *static_cast<Descriptor **>(elements)[i];
      auto *engine = new Descriptor{CUDNN_BACKEND_ENGINE_DESCRIPTOR, true};
      const auto &graph = descriptor.values.at(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
      engine->values[CUDNN_ATTR_ENGINE_OPERATION_GRAPH] = graph;
      const char *index = reinterpret_cast<const char *>(&i);
      engine->values[CUDNN_ATTR_ENGINE_GLOBAL_INDEX] = {
          CUDNN_TYPE_INT64, 1, {index, index + sizeof(i)}};
      const char *bytes = reinterpret_cast<const char *>(&engine);
      config.values[CUDNN_ATTR_ENGINECFG_ENGINE] = {
          CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, {bytes, bytes + sizeof(engine)}};
      config.finalized = true;
    }
    return CUDNN_STATUS_SUCCESS;
  }
  if (name == CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE ||
      name == CUDNN_ATTR_ENGINECFG_WORKSPACE_SIZE)
    return answer(workspaceOf(descriptor));
  if (name == CUDNN_ATTR_OPERATIONGRAPH_ENGINE_GLOBAL_COUNT)
    return answer(32); // The frontend takes some by their number.
  auto found = descriptor.values.find(name);
  if (found == descriptor.values.end()) {
    if (type == CUDNN_TYPE_INT64 || type == CUDNN_TYPE_INT32 || type == CUDNN_TYPE_BOOLEAN)
      return answer(0);
    if (count)
      *count = 0;
    return CUDNN_STATUS_SUCCESS;
  }
  if (count)
    *count = found->second.count;
  if (elements && wanted > 0) {
    int64_t given = std::min(wanted, found->second.count);
    // A descriptor that is asked for is copied into the caller's.
    if (type == CUDNN_TYPE_BACKEND_DESCRIPTOR)
      **static_cast<Descriptor **>(elements) = *descriptor.get<Descriptor *>(name);
    else
      memcpy(elements, found->second.bytes.data(), size_t(given) * sizeOf(type));
  }
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t planHandle,
                                  cudnnBackendDescriptor_t packHandle) {
  auto &plan = *static_cast<Descriptor *>(planHandle),
       &pack = *static_cast<Descriptor *>(packHandle);
  if (!plan.finalized || !pack.finalized)
    wrong("cuDNN: something that is executed is not finalized");
  auto config = plan.get<Descriptor *>(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
  auto engine = config->get<Descriptor *>(CUDNN_ATTR_ENGINECFG_ENGINE);
  auto described = engine->get<Descriptor *>(CUDNN_ATTR_ENGINE_OPERATION_GRAPH);
  if (described->get<cudnnHandle_t>(CUDNN_ATTR_OPERATIONGRAPH_HANDLE) != handle)
    wrong("cuDNN: a graph is executed with another handle");
  std::shared_ptr<const OperationGraph> graph = described->graph;
  launchOfLibrary("cuDNN's plan " + std::to_string(size_t(planHandle)));
  Operands operands = operandsOf(*graph, pack);
  auto scratch = pack.get<char *>(CUDNN_ATTR_VARIANT_PACK_WORKSPACE);
  auto scratchBytes = size_t(workspaceOf(plan));
  checkRange("scratch memory of attention", CUdeviceptr(scratch), scratchBytes);
  for (const Access &access : operands.accesses)
    if (access.begin < CUdeviceptr(scratch) + scratchBytes &&
        CUdeviceptr(scratch) < access.begin + access.bytes)
      wrong("cuDNN: a tensor lies in the scratch memory of attention");
  // The gradient has five products: queries and keys, and what each of the four makes.
  Work work{graph->products() > 2 ? "cudnn attention_grad" : "cudnn attention", {}, {}};
  work.accesses = operands.accesses;
  work.accesses.push_back({Access::Write, CUdeviceptr(scratch), scratchBytes});
  double ms = engine->get<int64_t>(CUDNN_ATTR_ENGINE_GLOBAL_INDEX) == fastest ? 1 : 2;
  work.run = [graph, operands, scratch, scratchBytes, ms, name = work.name] {
    if (computes()) {
      memset(scratch, 0xFF, scratchBytes);
      graph->compute(operands.addresses, operands.numbers);
      memset(scratch, 0xFF, scratchBytes);
    }
    Lock lock(mutex);
    busy += ms;
    return countLaunch(name), true;
  };
  submit(CUstream(handle->stream), std::move(work));
  return CUDNN_STATUS_SUCCESS;
}
}
