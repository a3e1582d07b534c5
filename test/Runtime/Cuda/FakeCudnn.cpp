//===- FakeCudnn.cpp - a cuDNN that only looks on ----------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// Stands for libcudnn.so.9 beside the fake driver. Descriptors keep what they are told;
// one engine makes every graph. What is executed must be a graph that was finalized, on
// the handle it was made for, with an address for each tensor of it that is not virtual,
// and these and the scratch memory must lie in memory that was allocated.
// FAKE_CUDNN_WORKSPACE is the scratch memory its plans ask for (256), FAKE_CUDNN_REFUSES
// makes it have no engine, FAKE_CUDNN_VERSION changes its version.
//
//===----------------------------------------------------------------------===//
#include "FakeStreams.h"
#include "cudnn.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <set>
#include <vector>

/// Of FakeGpu.cpp: ends the process if the range was not allocated; counts a launch.
extern "C" void fakeGpuCheckRange(const char *what, const void *address, size_t bytes);
extern "C" void fakeGpuCount(const char *name);

struct cudnnContext {
  cudaStream_t stream = nullptr;
};

namespace {
struct Value {
  cudnnBackendAttributeType_t type;
  int64_t count;
  std::vector<char> bytes;
};
struct Descriptor {
  cudnnBackendDescriptorType_t type;
  bool finalized = false;
  std::map<cudnnBackendAttributeName_t, Value> values;

  template <typename T> std::vector<T> get(cudnnBackendAttributeName_t name) const {
    auto found = values.find(name);
    if (found == values.end())
      return {};
    const T *begin = reinterpret_cast<const T *>(found->second.bytes.data());
    return {begin, begin + found->second.bytes.size() / sizeof(T)};
  }
};

[[noreturn]] void wrong(const char *what, long number) {
  fprintf(stderr, "fake cuDNN: %s (%ld)\n", what, number);
  _Exit(99);
}

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

/// The tensors of a graph's operations by their numbers.
void collect(const Descriptor &descriptor, std::map<int64_t, const Descriptor *> &tensors,
             std::set<const Descriptor *> &seen) {
  if (!seen.insert(&descriptor).second)
    return;
  if (descriptor.type == CUDNN_BACKEND_TENSOR_DESCRIPTOR) {
    tensors[descriptor.get<int64_t>(CUDNN_ATTR_TENSOR_UNIQUE_ID).at(0)] = &descriptor;
    return;
  }
  for (auto &[name, value] : descriptor.values)
    if (value.type == CUDNN_TYPE_BACKEND_DESCRIPTOR)
      for (const Descriptor *inner : descriptor.get<const Descriptor *>(name))
        if (inner)
          collect(*inner, tensors, seen);
}

bool flag(const Descriptor &tensor, cudnnBackendAttributeName_t name) {
  std::vector<char> value = tensor.get<char>(name);
  return !value.empty() && value[0];
}

/// Bytes from a tensor's first element to its last.
size_t extentOf(const Descriptor &tensor) {
  auto sizes = tensor.get<int64_t>(CUDNN_ATTR_TENSOR_DIMENSIONS);
  auto strides = tensor.get<int64_t>(CUDNN_ATTR_TENSOR_STRIDES);
  int64_t last = 0;
  for (size_t i = 0; i < sizes.size(); ++i)
    last += (sizes[i] - 1) * strides[i];
  auto type = tensor.get<cudnnDataType_t>(CUDNN_ATTR_TENSOR_DATA_TYPE).at(0);
  return size_t(last + 1) * (type == CUDNN_DATA_FLOAT || type == CUDNN_DATA_INT32 ? 4 : 2);
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
  *made = new Descriptor{type, false, {}};
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t) {
  return CUDNN_STATUS_SUCCESS; // Others may still point to it.
}
cudnnStatus_t cudnnBackendInitialize(cudnnBackendDescriptor_t) { return CUDNN_STATUS_SUCCESS; }
cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t handle) {
  auto &descriptor = *static_cast<Descriptor *>(handle);
  if (number("FAKE_CUDNN_REFUSES", 0) &&
      descriptor.type == CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR)
    return CUDNN_STATUS_NOT_SUPPORTED;
  descriptor.finalized = true;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t handle,
                                       cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t count,
                                       const void *elements) {
  auto &descriptor = *static_cast<Descriptor *>(handle);
  if (descriptor.finalized)
    wrong("an attribute is set behind finalization", name);
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
    *count = 1;
    if (wanted > 0) {
      auto &config = **static_cast<Descriptor **>(elements);
      auto *engine = new Descriptor{CUDNN_BACKEND_ENGINE_DESCRIPTOR, true, {}};
      const auto &graph = descriptor.values.at(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
      engine->values[CUDNN_ATTR_ENGINE_OPERATION_GRAPH] = graph;
      const char *bytes = reinterpret_cast<const char *>(&engine);
      config.values[CUDNN_ATTR_ENGINECFG_ENGINE] = {CUDNN_TYPE_BACKEND_DESCRIPTOR, 1,
                                                   {bytes, bytes + sizeof(engine)}};
      config.finalized = true;
    }
    return CUDNN_STATUS_SUCCESS;
  }
  if (name == CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE || name == CUDNN_ATTR_ENGINECFG_WORKSPACE_SIZE)
    return answer(number("FAKE_CUDNN_WORKSPACE", 256));
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
      **static_cast<Descriptor **>(elements) = *descriptor.get<Descriptor *>(name).at(0);
    else
      memcpy(elements, found->second.bytes.data(), size_t(given) * sizeOf(type));
  }
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t planHandle,
                                  cudnnBackendDescriptor_t packHandle) {
  auto &plan = *static_cast<Descriptor *>(planHandle), &pack = *static_cast<Descriptor *>(packHandle);
  if (!plan.finalized || !pack.finalized)
    wrong("something that is executed is not finalized", plan.type);
  auto config = plan.get<Descriptor *>(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG).at(0);
  auto engine = config->get<Descriptor *>(CUDNN_ATTR_ENGINECFG_ENGINE).at(0);
  auto graph = engine->get<Descriptor *>(CUDNN_ATTR_ENGINE_OPERATION_GRAPH).at(0);
  if (graph->get<cudnnHandle_t>(CUDNN_ATTR_OPERATIONGRAPH_HANDLE).at(0) != handle)
    wrong("a graph is executed with another handle", 0);
  std::map<int64_t, const Descriptor *> tensors;
  std::set<const Descriptor *> seen;
  collect(*graph, tensors, seen);
  auto ids = pack.get<int64_t>(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
  auto addresses = pack.get<const char *>(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
  auto scratch = pack.get<const char *>(CUDNN_ATTR_VARIANT_PACK_WORKSPACE).at(0);
  auto scratchBytes = size_t(number("FAKE_CUDNN_WORKSPACE", 256));
  fakeGpuCheckRange("scratch memory of attention", scratch, scratchBytes);
  std::map<int64_t, const char *> given;
  for (size_t i = 0; i < ids.size(); ++i)
    given[ids[i]] = addresses.at(i);
  // As AttentionGraph.cpp numbers them: 104 and 105 are results forward, where there is no
  // 106.
  bool backward = given.count(106);
  fake::Work work{backward ? "cudnn attention_grad" : "cudnn attention",
                  {{fake::Access::Write, CUdeviceptr(scratch), scratchBytes}},
                  {}};
  for (auto &[id, tensor] : tensors) {
    if (flag(*tensor, CUDNN_ATTR_TENSOR_IS_VIRTUAL))
      continue;
    auto found = given.find(id);
    if (found == given.end())
      wrong("a tensor has no address", long(id));
    if (flag(*tensor, CUDNN_ATTR_TENSOR_IS_BY_VALUE))
      continue;
    size_t bytes = extentOf(*tensor);
    fakeGpuCheckRange("tensor of attention", found->second, bytes);
    bool read = id >= 101 && id <= (backward ? 106 : 103);
    work.accesses.push_back(
        {read ? fake::Access::Read : fake::Access::Write, CUdeviceptr(found->second), bytes});
  }
  work.run = [name = work.name] { return fakeGpuCount(name.c_str()), true; };
  fake::submit(CUstream(handle->stream), std::move(work));
  return CUDNN_STATUS_SUCCESS;
}
}
