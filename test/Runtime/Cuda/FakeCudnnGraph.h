//===- FakeCudnnGraph.h - what cuDNN's operation graphs compute -------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// cuDNN's frontend spells attention out as products, pointwise operations, reductions and
// views of tensors with extents and strides, which cuDNN then matches with its fused
// kernels. Here they are computed one after the other, as the documentation of each says:
// https://docs.nvidia.com/deeplearning/cudnn/backend/latest/api/cudnn-graph-library.html
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_TEST_RUNTIME_CUDA_FAKECUDNNGRAPH_H
#define MESHWRIGHT_TEST_RUNTIME_CUDA_FAKECUDNNGRAPH_H

#include "FakeCompute.h"
#include "cudnn.h"

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace fake {

class OperationGraph;

/// One of cuDNN's descriptors: what it has been told.
struct Descriptor {
  struct Value {
    cudnnBackendAttributeType_t type;
    int64_t count;
    std::vector<char> bytes;
  };
  cudnnBackendDescriptorType_t type;
  bool finalized = false;
  std::map<cudnnBackendAttributeName_t, Value> values = {};
  std::shared_ptr<const OperationGraph> graph = nullptr; ///< of an operation graph, finalized

  template <typename T> std::vector<T> all(cudnnBackendAttributeName_t name) const {
    auto found = values.find(name);
    if (found == values.end())
      return {};
    const T *begin = reinterpret_cast<const T *>(found->second.bytes.data());
    return {begin, begin + found->second.bytes.size() / sizeof(T)};
  }
  /// Ends the process where it was not set.
  template <typename T> T get(cudnnBackendAttributeName_t name) const {
    std::vector<T> found = all<T>(name);
    if (found.empty())
      missing(name);
    return found[0];
  }
  template <typename T> T get(cudnnBackendAttributeName_t name, T otherwise) const {
    std::vector<T> found = all<T>(name);
    return found.empty() ? otherwise : found[0];
  }

private:
  [[noreturn]] void missing(cudnnBackendAttributeName_t name) const;
};

/// A tensor of a graph: in memory that calls name, a number that they bring along, or
/// virtual, between two operations.
struct GraphTensor {
  explicit GraphTensor(const Descriptor &descriptor);
  size_t elements() const;
  /// Bytes from its first element to behind its last.
  size_t extent() const;
  /// Where each element is, counted in elements, in the order of the indices.
  std::vector<int64_t> offsets() const;

  int64_t id, alignment;
  std::vector<int64_t> sizes, strides;
  Type type;
  bool isVirtual, isByValue, isBoolean;
};

class OperationGraph {
public:
  /// Ends the process where something is unknown here.
  explicit OperationGraph(const Descriptor &descriptor);

  const std::map<int64_t, GraphTensor> &tensors() const { return all; }
  bool writes(int64_t id) const { return written.count(id); }
  int products() const { return productCount; }

  /// With the address of each tensor that is in memory, and the numbers.
  void compute(const std::map<int64_t, char *> &addresses,
               const std::map<int64_t, float> &numbers) const;

private:
  /// Elements in the order of the indices.
  using Values = std::vector<float>;
  struct Operation {
    std::vector<int64_t> inputs, outputs;
    std::function<std::vector<Values>(const std::vector<const Values *> &)> compute;
  };
  /// The tensor that an attribute of an operation names.
  const GraphTensor &add(const Descriptor &operation, cudnnBackendAttributeName_t name);
  Operation product(const Descriptor &descriptor);
  Operation pointwise(const Descriptor &descriptor);
  Operation reduction(const Descriptor &descriptor);
  Operation view(const Descriptor &descriptor);
  Operation attention(const Descriptor &descriptor);
  void sort();

  std::map<int64_t, GraphTensor> all;
  std::vector<Operation> operations; ///< each after those that make what it reads
  std::set<int64_t> written;
  int productCount = 0;
};

/// Ends the process for an attribute that is unknown here: it would change what is computed.
void checkKnown(cudnnBackendDescriptorType_t type, cudnnBackendAttributeName_t name);

} // namespace fake

#endif // MESHWRIGHT_TEST_RUNTIME_CUDA_FAKECUDNNGRAPH_H
