//===- FakeCudnnGraph.cpp - what cuDNN's operation graphs compute -----------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "FakeCudnnGraph.h"

#include "FakeStreams.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

using namespace fake;

void Descriptor::missing(cudnnBackendAttributeName_t name) const {
  wrong("cuDNN: attribute %d of a descriptor of kind %d is not set", int(name), int(type));
}

void fake::checkKnown(cudnnBackendDescriptorType_t type, cudnnBackendAttributeName_t name) {
  static const std::map<cudnnBackendDescriptorType_t, std::set<int>> known = {
      {CUDNN_BACKEND_TENSOR_DESCRIPTOR,
       {CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_ATTR_TENSOR_DIMENSIONS,
        CUDNN_ATTR_TENSOR_STRIDES, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_ATTR_TENSOR_IS_VIRTUAL,
        CUDNN_ATTR_TENSOR_IS_BY_VALUE}},
      {CUDNN_BACKEND_MATMUL_DESCRIPTOR, {CUDNN_ATTR_MATMUL_COMP_TYPE}},
      {CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR,
       {CUDNN_ATTR_OPERATION_MATMUL_ADESC, CUDNN_ATTR_OPERATION_MATMUL_BDESC,
        CUDNN_ATTR_OPERATION_MATMUL_CDESC, CUDNN_ATTR_OPERATION_MATMUL_DESC}},
      {CUDNN_BACKEND_POINTWISE_DESCRIPTOR,
       {CUDNN_ATTR_POINTWISE_MODE, CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_ATTR_POINTWISE_AXIS}},
      {CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR,
       {CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, CUDNN_ATTR_OPERATION_POINTWISE_XDESC,
        CUDNN_ATTR_OPERATION_POINTWISE_BDESC, CUDNN_ATTR_OPERATION_POINTWISE_TDESC,
        CUDNN_ATTR_OPERATION_POINTWISE_YDESC, CUDNN_ATTR_OPERATION_POINTWISE_ALPHA1,
        CUDNN_ATTR_OPERATION_POINTWISE_ALPHA2}},
      {CUDNN_BACKEND_REDUCTION_DESCRIPTOR,
       {CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_ATTR_REDUCTION_COMP_TYPE,
        CUDNN_ATTR_REDUCTION_IS_DETERMINISTIC}},
      {CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR,
       {CUDNN_ATTR_OPERATION_REDUCTION_XDESC, CUDNN_ATTR_OPERATION_REDUCTION_YDESC,
        CUDNN_ATTR_OPERATION_REDUCTION_DESC}},
      {CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR,
       {CUDNN_ATTR_OPERATION_RESHAPE_XDESC, CUDNN_ATTR_OPERATION_RESHAPE_YDESC}},
      {CUDNN_BACKEND_OPERATION_SDPA_FWD_DESCRIPTOR,
       {CUDNN_ATTR_OPERATION_SDPA_FWD_QDESC, CUDNN_ATTR_OPERATION_SDPA_FWD_KDESC,
        CUDNN_ATTR_OPERATION_SDPA_FWD_VDESC, CUDNN_ATTR_OPERATION_SDPA_FWD_ODESC,
        CUDNN_ATTR_OPERATION_SDPA_FWD_STATSDESC, CUDNN_ATTR_OPERATION_SDPA_FWD_SCALEDESC}},
      {CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR,
       {CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_ATTR_OPERATIONGRAPH_OPS}},
  };
  auto found = known.find(type);
  if (found != known.end() && !found->second.count(name))
    wrong("cuDNN: attribute %d of a descriptor of kind %d is unknown here", int(name), int(type));
}

//===----------------------------------------------------------------------===//
// Tensors
//===----------------------------------------------------------------------===//

GraphTensor::GraphTensor(const Descriptor &descriptor) {
  id = descriptor.get<int64_t>(CUDNN_ATTR_TENSOR_UNIQUE_ID);
  alignment = descriptor.get<int64_t>(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT);
  sizes = descriptor.all<int64_t>(CUDNN_ATTR_TENSOR_DIMENSIONS);
  strides = descriptor.all<int64_t>(CUDNN_ATTR_TENSOR_STRIDES);
  isVirtual = descriptor.get<char>(CUDNN_ATTR_TENSOR_IS_VIRTUAL, 0);
  isByValue = descriptor.get<char>(CUDNN_ATTR_TENSOR_IS_BY_VALUE, 0);
  auto told = descriptor.get<cudnnDataType_t>(CUDNN_ATTR_TENSOR_DATA_TYPE);
  isBoolean = told == CUDNN_DATA_BOOLEAN;
  switch (told) {
  case CUDNN_DATA_FLOAT:
    type = Type::F32;
    break;
  case CUDNN_DATA_BFLOAT16:
    type = Type::Bf16;
    break;
  case CUDNN_DATA_HALF:
    type = Type::F16;
    break;
  case CUDNN_DATA_INT32:
  case CUDNN_DATA_BOOLEAN: // 0 and 1
    type = Type::I32;
    break;
  default:
    wrong("cuDNN: tensor %ld has data of type %d, which is unknown here", long(id), int(told));
  }
  if (sizes.empty() || sizes.size() != strides.size())
    wrong("cuDNN: tensor %ld has %zu extents and %zu strides", long(id), sizes.size(),
          strides.size());
  if (isBoolean && !isVirtual)
    wrong("cuDNN: tensor %ld has truth values in memory, which is unknown here", long(id));
  if (isByValue && elements() != 1)
    wrong("cuDNN: tensor %ld is given by value, but has %ld elements", long(id), long(elements()));
}

size_t GraphTensor::elements() const {
  size_t count = 1;
  for (int64_t size : sizes)
    count *= size_t(size);
  return count;
}

size_t GraphTensor::extent() const {
  int64_t last = 0;
  for (size_t i = 0; i < sizes.size(); ++i)
    last += (sizes[i] - 1) * strides[i];
  return size_t(last + 1) * widthOf(type);
}

std::vector<int64_t> GraphTensor::offsets() const {
  std::vector<int64_t> result = {0};
  for (size_t d = 0; d < sizes.size(); ++d) {
    std::vector<int64_t> finer;
    finer.reserve(result.size() * size_t(sizes[d]));
    for (int64_t offset : result)
      for (int64_t i = 0; i < sizes[d]; ++i)
        finer.push_back(offset + i * strides[d]);
    result = std::move(finer);
  }
  return result;
}

static float rounded(Type type, float value) {
  if (type != Type::Bf16 && type != Type::F16)
    return value;
  uint16_t narrow;
  write(type, &narrow, 0, value);
  return read(type, &narrow, 0);
}

/// The extents in words.
static std::string shape(const GraphTensor &tensor) {
  std::string result = std::to_string(tensor.id) + " [";
  for (int64_t size : tensor.sizes)
    result += std::to_string(size) + (&size == &tensor.sizes.back() ? "]" : ", ");
  return result;
}

/// Ends the process unless each of the `count` leading extents of `narrow` divides that of
/// `wide`: neighbours share an index then, as heads of queries do with heads of keys, and all
/// do where it is 1.
static void checkDivides(const GraphTensor &wide, const GraphTensor &narrow, size_t count) {
  bool divides = wide.sizes.size() == narrow.sizes.size();
  for (size_t d = 0; d < count && divides; ++d)
    divides = wide.sizes[d] % narrow.sizes[d] == 0;
  if (!divides)
    wrong("cuDNN: tensors %s and %s do not go together", shape(wide).c_str(),
          shape(narrow).c_str());
}

/// For each of the `count` leading indices of `wide`, where the same one of `narrow` is among
/// its own.
static std::vector<int64_t> leading(const GraphTensor &wide, const GraphTensor &narrow,
                                    size_t count) {
  std::vector<int64_t> result = {0};
  for (size_t d = 0; d < count; ++d) {
    int64_t group = wide.sizes[d] / narrow.sizes[d];
    std::vector<int64_t> finer;
    finer.reserve(result.size() * size_t(wide.sizes[d]));
    for (int64_t base : result)
      for (int64_t i = 0; i < wide.sizes[d]; ++i)
        finer.push_back(base * narrow.sizes[d] + i / group);
    result = std::move(finer);
  }
  return result;
}

//===----------------------------------------------------------------------===//
// Operations
//===----------------------------------------------------------------------===//

const GraphTensor &OperationGraph::add(const Descriptor &operation,
                                       cudnnBackendAttributeName_t name) {
  GraphTensor made(*operation.get<Descriptor *>(name));
  return all.emplace(made.id, made).first->second;
}

static void wantFloat(const Descriptor &descriptor, cudnnBackendAttributeName_t name) {
  auto type = descriptor.get<cudnnDataType_t>(name);
  if (type != CUDNN_DATA_FLOAT)
    wrong("cuDNN: an operation computes in type %d, which is unknown here", int(type));
}

OperationGraph::Operation OperationGraph::product(const Descriptor &descriptor) {
  wantFloat(*descriptor.get<Descriptor *>(CUDNN_ATTR_OPERATION_MATMUL_DESC),
            CUDNN_ATTR_MATMUL_COMP_TYPE);
  const GraphTensor &a = add(descriptor, CUDNN_ATTR_OPERATION_MATMUL_ADESC);
  const GraphTensor &b = add(descriptor, CUDNN_ATTR_OPERATION_MATMUL_BDESC);
  const GraphTensor &c = add(descriptor, CUDNN_ATTR_OPERATION_MATMUL_CDESC);
  ++productCount;
  size_t rank = c.sizes.size();
  if (rank < 2 || a.sizes.size() != rank || b.sizes.size() != rank ||
      a.sizes[rank - 2] != c.sizes[rank - 2] || a.sizes[rank - 1] != b.sizes[rank - 2] ||
      b.sizes[rank - 1] != c.sizes[rank - 1])
    wrong("cuDNN: the product of %s and %s is %s", shape(a).c_str(), shape(b).c_str(),
          shape(c).c_str());
  int64_t m = c.sizes[rank - 2], n = c.sizes[rank - 1], k = a.sizes[rank - 1];
  checkDivides(c, a, rank - 2);
  checkDivides(c, b, rank - 2);
  auto compute = [=](const std::vector<const Values *> &in) -> std::vector<Values> {
    std::vector<int64_t> ofA = leading(c, a, rank - 2), ofB = leading(c, b, rank - 2);
    Values result(ofA.size() * size_t(m * n));
    auto matrix = [](const Values &values, int64_t at, int64_t rows, int64_t columns) {
      return Matrix{const_cast<float *>(values.data()) + at * rows * columns, Type::F32, columns,
                    0};
    };
    // By columns it is the product of the transposed matrices, the other way round.
    for (size_t i = 0; i < ofA.size(); ++i) {
      Matrix to = matrix(result, int64_t(i), m, n);
      multiply(n, m, k, 1, 1, false, matrix(*in[1], ofB[i], k, n), false,
               matrix(*in[0], ofA[i], m, k), 0, to, to, {});
    }
    return {result};
  };
  return {{a.id, b.id}, {c.id}, compute};
}

namespace {
/// A pointwise operation of x, b and t.
struct Mode {
  int operands;
  float (*compute)(float, float, float);
};
} // namespace

static const Mode *modeOf(cudnnPointwiseMode_t mode) {
  static const std::map<cudnnPointwiseMode_t, Mode> modes = {
      {CUDNN_POINTWISE_ADD, {2, [](float x, float b, float) { return x + b; }}},
      {CUDNN_POINTWISE_SUB, {2, [](float x, float b, float) { return x - b; }}},
      {CUDNN_POINTWISE_MUL, {2, [](float x, float b, float) { return x * b; }}},
      {CUDNN_POINTWISE_DIV, {2, [](float x, float b, float) { return x / b; }}},
      {CUDNN_POINTWISE_EXP, {1, [](float x, float, float) { return std::exp(x); }}},
      {CUDNN_POINTWISE_LOG, {1, [](float x, float, float) { return std::log(x); }}},
      {CUDNN_POINTWISE_IDENTITY, {1, [](float x, float, float) { return x; }}},
      {CUDNN_POINTWISE_CMP_GT, {2, [](float x, float b, float) { return float(x > b); }}},
      {CUDNN_POINTWISE_CMP_GE, {2, [](float x, float b, float) { return float(x >= b); }}},
      {CUDNN_POINTWISE_BINARY_SELECT, {3, [](float x, float b, float t) { return t ? x : b; }}},
  };
  auto found = modes.find(mode);
  return found == modes.end() ? nullptr : &found->second;
}

OperationGraph::Operation OperationGraph::pointwise(const Descriptor &descriptor) {
  auto &how = *descriptor.get<Descriptor *>(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR);
  auto mode = how.get<cudnnPointwiseMode_t>(CUDNN_ATTR_POINTWISE_MODE);
  for (auto factor : {CUDNN_ATTR_OPERATION_POINTWISE_ALPHA1, CUDNN_ATTR_OPERATION_POINTWISE_ALPHA2})
    if (descriptor.get<float>(factor, 1) != 1)
      wrong("cuDNN: a pointwise operation's factor %g is unknown here",
            double(descriptor.get<float>(factor)));
  const GraphTensor &x = add(descriptor, CUDNN_ATTR_OPERATION_POINTWISE_XDESC);
  const GraphTensor &y = add(descriptor, CUDNN_ATTR_OPERATION_POINTWISE_YDESC);
  auto precision = how.get<cudnnDataType_t>(CUDNN_ATTR_POINTWISE_MATH_PREC);
  // Whole numbers here are those of rows and columns, which floats hold exactly.
  bool counts = precision == CUDNN_DATA_INT32 && y.type == Type::I32 && mode == CUDNN_POINTWISE_ADD;
  if (precision != CUDNN_DATA_FLOAT && !counts &&
      !(precision == CUDNN_DATA_BOOLEAN && y.isBoolean))
    wrong("cuDNN: a pointwise operation computes in type %d, which is unknown here",
          int(precision));
  if (mode == CUDNN_POINTWISE_GEN_INDEX) {
    auto axis = how.get<int64_t>(CUDNN_ATTR_POINTWISE_AXIS);
    GraphTensor index = y;
    std::fill(index.strides.begin(), index.strides.end(), 0);
    index.strides.at(size_t(axis)) = 1;
    return {{x.id}, {y.id}, [=](const std::vector<const Values *> &) -> std::vector<Values> {
              std::vector<int64_t> found = index.offsets();
              return {Values(found.begin(), found.end())};
            }};
  }
  const Mode *known = modeOf(mode);
  if (!known)
    wrong("cuDNN: pointwise operation %d is unknown here", int(mode));
  std::vector<GraphTensor> operands = {x};
  if (known->operands > 1)
    operands.push_back(add(descriptor, CUDNN_ATTR_OPERATION_POINTWISE_BDESC));
  if (known->operands > 2)
    operands.push_back(add(descriptor, CUDNN_ATTR_OPERATION_POINTWISE_TDESC));
  size_t last = y.sizes.size() - 1;
  std::vector<int64_t> ids;
  for (const GraphTensor &operand : operands) {
    checkDivides(y, operand, last + 1);
    for (size_t d = 0; d <= last; ++d)
      if (operand.sizes[d] != y.sizes[d] && operand.sizes[d] != 1)
        wrong("cuDNN: a pointwise operation of %s has the result %s", shape(operand).c_str(),
              shape(y).c_str());
    ids.push_back(operand.id);
  }
  auto compute = [=](const std::vector<const Values *> &in) -> std::vector<Values> {
    size_t width = size_t(y.sizes[last]);
    Values result(y.elements());
    std::vector<int64_t> rows[3];
    size_t step[3] = {};
    for (size_t i = 0; i < in.size(); ++i) {
      rows[i] = leading(y, operands[i], last);
      step[i] = operands[i].sizes[last] > 1;
    }
    for (size_t row = 0; row < rows[0].size(); ++row) {
      const float none = 0, *from[3] = {&none, &none, &none};
      for (size_t i = 0; i < in.size(); ++i)
        from[i] = in[i]->data() + rows[i][row] * operands[i].sizes[last];
      for (size_t j = 0; j < width; ++j)
        result[row * width + j] =
            known->compute(from[0][j * step[0]], from[1][j * step[1]], from[2][j * step[2]]);
    }
    return {result};
  };
  return {ids, {y.id}, compute};
}

OperationGraph::Operation OperationGraph::reduction(const Descriptor &descriptor) {
  auto &how = *descriptor.get<Descriptor *>(CUDNN_ATTR_OPERATION_REDUCTION_DESC);
  wantFloat(how, CUDNN_ATTR_REDUCTION_COMP_TYPE);
  auto kind = how.get<cudnnReduceTensorOp_t>(CUDNN_ATTR_REDUCTION_OPERATOR);
  if (kind != CUDNN_REDUCE_TENSOR_ADD && kind != CUDNN_REDUCE_TENSOR_MAX)
    wrong("cuDNN: reduction %d is unknown here", int(kind));
  const GraphTensor &x = add(descriptor, CUDNN_ATTR_OPERATION_REDUCTION_XDESC);
  const GraphTensor &y = add(descriptor, CUDNN_ATTR_OPERATION_REDUCTION_YDESC);
  checkDivides(x, y, x.sizes.size());
  auto compute = [=](const std::vector<const Values *> &in) -> std::vector<Values> {
    bool adds = kind == CUDNN_REDUCE_TENSOR_ADD;
    std::vector<int64_t> to = leading(x, y, x.sizes.size());
    Values result(y.elements(), adds ? 0 : -std::numeric_limits<float>::infinity());
    for (size_t i = 0; i < to.size(); ++i) {
      float &into = result[size_t(to[i])];
      into = adds ? into + (*in[0])[i] : std::max(into, (*in[0])[i]);
    }
    return {result};
  };
  return {{x.id}, {y.id}, compute};
}

/// The same memory with other extents and strides.
OperationGraph::Operation OperationGraph::view(const Descriptor &descriptor) {
  const GraphTensor &x = add(descriptor, CUDNN_ATTR_OPERATION_RESHAPE_XDESC);
  const GraphTensor &y = add(descriptor, CUDNN_ATTR_OPERATION_RESHAPE_YDESC);
  auto compute = [=](const std::vector<const Values *> &in) -> std::vector<Values> {
    constexpr size_t none = ~size_t(0);
    std::vector<size_t> there(x.extent() / widthOf(x.type), none);
    std::vector<int64_t> offsets = x.offsets();
    for (size_t i = 0; i < offsets.size(); ++i) {
      size_t &at = there[size_t(offsets[i])];
      if (at != none)
        wrong("cuDNN: elements of tensor %s, which is viewed otherwise, overlap", shape(x).c_str());
      at = i;
    }
    Values result;
    result.reserve(y.elements());
    for (int64_t offset : y.offsets()) {
      if (size_t(offset) >= there.size() || there[size_t(offset)] == none)
        wrong("cuDNN: a view %s of tensor %s has other elements", shape(y).c_str(),
              shape(x).c_str());
      result.push_back((*in[0])[there[size_t(offset)]]);
    }
    return {result};
  };
  return {{x.id}, {y.id}, compute};
}

/// Attention as one operation, which the frontend takes where nothing is masked.
OperationGraph::Operation OperationGraph::attention(const Descriptor &descriptor) {
  const GraphTensor &q = add(descriptor, CUDNN_ATTR_OPERATION_SDPA_FWD_QDESC);
  const GraphTensor &k = add(descriptor, CUDNN_ATTR_OPERATION_SDPA_FWD_KDESC);
  const GraphTensor &v = add(descriptor, CUDNN_ATTR_OPERATION_SDPA_FWD_VDESC);
  const GraphTensor &scale = add(descriptor, CUDNN_ATTR_OPERATION_SDPA_FWD_SCALEDESC);
  const GraphTensor &out = add(descriptor, CUDNN_ATTR_OPERATION_SDPA_FWD_ODESC);
  const GraphTensor &stats = add(descriptor, CUDNN_ATTR_OPERATION_SDPA_FWD_STATSDESC);
  productCount += 2;
  if (q.sizes.size() != 4 || k.sizes.size() != 4 || v.sizes.size() != 4 ||
      q.sizes[3] != k.sizes[3] || k.sizes[2] != v.sizes[2])
    wrong("cuDNN: attention of %s, %s and %s", shape(q).c_str(), shape(k).c_str(),
          shape(v).c_str());
  if (out.sizes != std::vector<int64_t>{q.sizes[0], q.sizes[1], q.sizes[2], v.sizes[3]} ||
      stats.sizes != std::vector<int64_t>{q.sizes[0], q.sizes[1], q.sizes[2], 1})
    wrong("cuDNN: attention's results are %s and %s", shape(out).c_str(), shape(stats).c_str());
  checkDivides(q, k, 2);
  checkDivides(q, v, 2);
  auto compute = [=](const std::vector<const Values *> &in) -> std::vector<Values> {
    int64_t queries = q.sizes[2], keys = k.sizes[2], depth = q.sizes[3], width = v.sizes[3];
    std::vector<int64_t> ofK = leading(q, k, 2), ofV = leading(q, v, 2);
    Values result(out.elements()), logs(stats.elements()), scores(size_t(keys), 0);
    for (size_t head = 0; head < ofK.size(); ++head)
      for (int64_t row = 0; row < queries; ++row) {
        int64_t at = int64_t(head) * queries + row;
        const float *query = in[0]->data() + at * depth;
        for (int64_t key = 0; key < keys; ++key)
          scores[size_t(key)] =
              (*in[3])[0] * std::inner_product(query, query + depth,
                                               in[1]->data() + (ofK[head] * keys + key) * depth,
                                               0.f);
        float most = *std::max_element(scores.begin(), scores.end()), sum = 0;
        for (float &score : scores)
          sum += score = std::exp(score - most);
        logs[size_t(at)] = most + std::log(sum);
        for (int64_t key = 0; key < keys; ++key) {
          float weight = rounded(q.type, scores[size_t(key)] / sum);
          for (int64_t i = 0; i < width; ++i)
            result[size_t(at * width + i)] +=
                weight * (*in[2])[size_t((ofV[head] * keys + key) * width + i)];
        }
      }
    return {result, logs};
  };
  return {{q.id, k.id, v.id, scale.id}, {out.id, stats.id}, compute};
}

//===----------------------------------------------------------------------===//
// Graphs
//===----------------------------------------------------------------------===//

OperationGraph::OperationGraph(const Descriptor &descriptor) {
  for (const Descriptor *operation : descriptor.all<Descriptor *>(CUDNN_ATTR_OPERATIONGRAPH_OPS))
    switch (operation->type) {
    case CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR:
      operations.push_back(product(*operation));
      break;
    case CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR:
      operations.push_back(pointwise(*operation));
      break;
    case CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR:
      operations.push_back(reduction(*operation));
      break;
    case CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR:
      operations.push_back(view(*operation));
      break;
    case CUDNN_BACKEND_OPERATION_SDPA_FWD_DESCRIPTOR:
      operations.push_back(attention(*operation));
      break;
    default:
      wrong("cuDNN: operations of kind %d are unknown here", int(operation->type));
    }
  sort();
}

void OperationGraph::sort() {
  std::set<int64_t> made;
  for (const Operation &operation : operations)
    for (int64_t id : operation.outputs)
      if (!made.insert(id).second)
        wrong("cuDNN: two operations make tensor %ld", long(id));
  std::vector<Operation> sorted;
  auto ready = [&](const Operation &operation) {
    return std::none_of(operation.inputs.begin(), operation.inputs.end(), [&](int64_t id) {
      if (!made.count(id) && all.at(id).isVirtual)
        wrong("cuDNN: nothing makes the virtual tensor %ld", long(id));
      return made.count(id) && !written.count(id);
    });
  };
  while (!operations.empty()) {
    auto found = std::find_if(operations.begin(), operations.end(), ready);
    if (found == operations.end())
      wrong("cuDNN: operations of a graph wait for each other");
    written.insert(found->outputs.begin(), found->outputs.end());
    sorted.push_back(std::move(*found));
    operations.erase(found);
  }
  operations = std::move(sorted);
}

void OperationGraph::compute(const std::map<int64_t, char *> &addresses,
                             const std::map<int64_t, float> &numbers) const {
  std::map<int64_t, Values> values;
  for (auto &[id, number] : numbers)
    values[id] = {number};
  std::map<int64_t, size_t> lastUse;
  for (size_t i = 0; i < operations.size(); ++i)
    for (int64_t id : operations[i].inputs)
      lastUse[id] = i;
  for (size_t i = 0; i < operations.size(); ++i) {
    const Operation &operation = operations[i];
    std::vector<const Values *> inputs;
    for (int64_t id : operation.inputs) {
      Values &input = values[id];
      const GraphTensor &tensor = all.at(id);
      if (input.empty())
        for (int64_t offset : tensor.offsets())
          input.push_back(read(tensor.type, addresses.at(id), size_t(offset)));
      inputs.push_back(&input);
    }
    std::vector<Values> results = operation.compute(inputs);
    for (size_t j = 0; j < results.size(); ++j) {
      const GraphTensor &tensor = all.at(operation.outputs[j]);
      for (float &value : results[j])
        value = rounded(tensor.type, value);
      if (!tensor.isVirtual) {
        std::vector<int64_t> offsets = tensor.offsets();
        for (size_t at = 0; at < offsets.size(); ++at)
          write(tensor.type, addresses.at(tensor.id), size_t(offsets[at]), results[j][at]);
      }
      if (lastUse.count(tensor.id))
        values[tensor.id] = std::move(results[j]);
    }
    for (int64_t id : operation.inputs)
      if (lastUse[id] == i)
        values.erase(id);
  }
}
