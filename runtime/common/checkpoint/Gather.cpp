//===- Gather.cpp - global tensors from their parts -----------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "common/checkpoint/Gather.h"

#include "common/checkpoint/TensorCopy.h"
#include "common/monitor/Error.h"
#include "common/train/Context.h"

#include <algorithm>
#include <map>
#include <tuple>

using namespace meshwright;

int64_t FileTensor::bytes() const { return elementsIn(writtenShape()) * 4; }

std::vector<FileTensor> meshwright::fileTensors(const Plan &plan, WeightKind kind) {
  std::vector<FileTensor> tensors;
  std::map<std::string, size_t> index;
  std::vector<int64_t> covered;
  // Programs that hold the same part, tied embeddings, update it alike: the first
  // one's is written.
  std::map<std::tuple<std::string, int64_t>, const Variable *> taken;
  for (const Variable &variable : plan.allVariables) {
    // A weight with a master is written from that, in all its digits: from both where the
    // master has the lower halves alone, parameters first, as plans have them.
    if (!isOf(variable, kind) || (variable.hasMaster && !variable.isHalved))
      continue;
    bool isLower = variable.isHalved && variable.role == Variable::Master;
    std::vector<int64_t> shape = storageLayout(variable).fileShape;
    int64_t count = elementsIn(variable.shape) / std::max<int64_t>(variable.tensors(), 1);
    for (int64_t number = 0; number < variable.tensors(); ++number) {
      std::string name = tensorName(variable, number, kind);
      int64_t begin = variable.storage.slice ? variable.storage.slice->begin + rowsAbove(variable, number) : -1;
      auto first = taken.find({name, begin});
      if (isLower && (first == taken.end() || first->second->name != variable.of ||
                      first->second->program != variable.program))
        continue;
      if (!isLower && !taken.try_emplace({name, begin}, &variable).second)
        continue;
      auto [entry, isNew] = index.try_emplace(name, tensors.size());
      if (isNew) {
        tensors.push_back({name, shape, {}, {}});
        covered.push_back(0);
      }
      FileTensor &tensor = tensors[entry->second];
      if (tensor.shape != shape)
        fail("plan: the variables stored in ", name, " give it both shape ",
             shapeText(tensor.shape), " and ", shapeText(shape));
      tensor.parts.push_back({&variable, number});
      if (!isLower)
        covered[entry->second] += count;
    }
  }
  for (size_t i = 0; i < tensors.size(); ++i)
    if (covered[i] != elementsIn(tensors[i].shape))
      fail("plan: the variables stored in ", tensors[i].name, " cover ", covered[i], " of its ",
           elementsIn(tensors[i].shape), " elements");
  return tensors;
}

const std::string &meshwright::savedName(const MwContext &context, const FileTensor &tensor) {
  auto found = context.fileNames.find(tensor.name);
  return found == context.fileNames.end() ? tensor.name : found->second;
}

bool meshwright::holdsTensor(const Variable &variable, const Box &box, int64_t number) {
  if (box.elements() == 0)
    return false;
  for (size_t d = variable.numbered; d-- > 0; number /= variable.shape[d])
    if (int64_t at = number % variable.shape[d] - box.begin[d]; at < 0 || at >= box.extent[d])
      return false;
  return true;
}

std::vector<Box> meshwright::windowsOf(const std::vector<int64_t> &shape, int64_t capacity) {
  // Dimensions before `split` are taken one index at a time, that one in ranges, others whole.
  size_t split = 0;
  int64_t inner = elementsIn(shape);
  while (split < shape.size() && (inner /= std::max<int64_t>(shape[split], 1)) > capacity)
    ++split;
  int64_t rows = std::max<int64_t>(capacity / std::max<int64_t>(inner, 1), 1);
  std::vector<Box> windows;
  Box window{std::vector<int64_t>(shape.size()), shape};
  if (shape.empty())
    return {window};
  std::fill_n(window.extent.begin(), split, 1);
  for (int64_t left = elementsIn(shape); left > 0; left -= window.elements()) {
    window.extent[split] = std::min(rows, shape[split] - window.begin[split]);
    windows.push_back(window);
    window.begin[split] += window.extent[split];
    for (size_t d = split; d > 0 && window.begin[d] == shape[d]; --d) {
      window.begin[d] = 0;
      ++window.begin[d - 1];
    }
  }
  return windows;
}

namespace {
/// What one rank holds of a file tensor.
struct Source {
  int owner;
  bool isLower;    ///< the lower halves of numbers, which are added to the upper ones
  TensorView view; ///< its memory, on the owner
  std::vector<float> dequantized; ///< that memory, of a weight in 8 bits
  std::vector<StoredPart> parts;
};
} // namespace

/// What codes of 8 bits stand for: this rank's part of tensor `number` of a weight, whose part of it is `box`.
static std::vector<float> dequantize(const MwContext &context, const VariableAddresses &addresses, const Variable &weight,
                                     const Box &box, int64_t number) {
  const Variable &scale = context.plan.scaleOf(weight);
  Box rows = shardOf(context.plan, scale, context.rank());
  size_t row = weight.numbered;
  int64_t first = box.begin[row] - rows.begin[row], columns = weight.localShape.back();
  if (first < 0 || first + box.extent[row] > rows.extent[row])
    fail("plan: a rank has rows of the weight ", weight.name, " without their scales");
  auto *codes = reinterpret_cast<const int8_t *>(addresses.of(weight)) + tensorOffset(weight, box, number);
  auto *scales = reinterpret_cast<const float *>(addresses.of(scale)) + tensorOffset(scale, rows, number) + first;
  std::vector<float> numbers(size_t(box.extent[row] * columns));
  for (size_t i = 0; i < numbers.size(); ++i)
    numbers[i] = float(codes[i]) * scales[int64_t(i) / columns];
  return numbers;
}

/// The rank's own and, on rank 0, all, upper halves before their lower ones. Of a shard, all that the rank holds.
static std::vector<Source> sourcesOf(MwContext &context, const VariableAddresses &addresses,
                                     const FileTensor &tensor) {
  std::vector<Source> sources;
  for (auto [variable, number] : tensor.parts)
    for (int owner = 0; owner < context.world->size(); ++owner) {
      if ((tensor.box || context.rank() != 0) && owner != context.rank())
        continue;
      Box box = shardOf(context.plan, *variable, owner);
      bool isSource = tensor.box ? context.plan.programOf(owner) == variable->program
                                 : ownsShard(context.plan, *variable, owner);
      if (!isSource || !holdsTensor(*variable, box, number))
        continue;
      Source source{owner, variable->isHalved && variable->role == Variable::Master, {}, {}, {}};
      size_t skip = variable->numbered;
      if (owner == context.rank()) {
        std::vector<int64_t> strides = denseStrides(variable->localShape);
        const char *data = addresses.of(*variable) +
                           tensorOffset(*variable, box, number) * bytesOf(variable->type);
        source.view = {
            variable->type, const_cast<char *>(data), {strides.begin() + skip, strides.end()}};
        if (variable->isQuantized()) {
          source.dequantized = dequantize(context, addresses, *variable, box, number);
          source.view.type = ElementType::F32;
          source.view.data = source.dequantized.data();
        }
      }
      source.parts = storedParts(*variable, {box.begin.begin() + skip, box.begin.end()},
                                 {box.extent.begin() + skip, box.extent.end()}, number);
      sources.push_back(std::move(source));
    }
  return sources;
}

/// The view's element at `first`, as the beginning of a view.
static TensorView viewAt(const TensorView &view, const std::vector<int64_t> &first) {
  int64_t offset = 0;
  for (size_t d = 0; d < first.size(); ++d)
    offset += first[d] * view.strides[d];
  return {view.type, static_cast<char *>(view.data) + offset * bytesOf(view.type), view.strides};
}

/// copyTensor on `threads` threads, each of which has a range of the first dimension that has more
/// than one index.
static void copyOnThreads(const std::vector<int64_t> &extent, const TensorView &from,
                          const TensorView &to, int threads) {
  size_t outer = 0;
  while (outer + 1 < extent.size() && extent[outer] == 1)
    ++outer;
  constexpr int64_t worthIt = 1 << 16; // elements
  if (threads == 1 || extent.empty() || elementsIn(extent) < worthIt)
    return copyTensor(extent, from, to);
  int64_t ranges = std::min<int64_t>(threads, extent[outer]);
#pragma omp parallel for num_threads(threads)
  for (int64_t range = 0; range < ranges; ++range) {
    int64_t begin = extent[outer] * range / ranges, end = extent[outer] * (range + 1) / ranges;
    std::vector<int64_t> part = extent, first(extent.size());
    part[outer] = end - begin;
    first[outer] = begin;
    copyTensor(part, viewAt(from, first), viewAt(to, first));
  }
}

void meshwright::gatherTensor(
    MwContext &context, const VariableAddresses &addresses, const FileTensor &tensor,
    GatherBuffers &buffers, const std::function<void(const float *elements, int64_t count)> &take) {
  bool isRoot = tensor.box || context.rank() == 0;
  std::vector<Source> sources = sourcesOf(context, addresses, tensor);
  Box whole = tensor.box.value_or(Box{std::vector<int64_t>(tensor.shape.size()), tensor.shape});
  std::vector<int64_t> fileStrides = denseStrides(whole.extent);
  for (Box window : windowsOf(whole.extent, buffers.capacity)) {
    int64_t begin = 0, count = window.elements();
    for (size_t d = 0; d < window.begin.size(); ++d) {
      begin += window.begin[d] * fileStrides[d];
      window.begin[d] += whole.begin[d];
    }
    float *collected = buffers.into;
    if (isRoot && !buffers.into) {
      buffers.window.resize(size_t(count));
      collected = buffers.window.data();
    }
    for (const Source &source : sources) {
      std::vector<StoredPart> parts;
      int64_t held = 0;
      for (const StoredPart &all : source.parts)
        if (auto part = partWithin(all, tensor.shape, window)) {
          held += elementsIn(part->extent);
          parts.push_back(tensor.box ? partOfBox(std::move(*part), tensor.shape, whole) : std::move(*part));
        }
      if (held == 0)
        continue;
      bool sent = !tensor.box && source.owner != 0;
      if (sent)
        buffers.packed.resize(size_t(held));
      if (sent && isRoot)
        context.world->receive(ElementType::F32, buffers.packed.data(), held, source.owner);
      float *packed = buffers.packed.data();
      for (const StoredPart &part : parts) {
        TensorView dense{ElementType::F32, packed, denseStrides(part.extent)};
        packed += sent ? elementsIn(part.extent) : 0;
        if (!isRoot) {
          copyOnThreads(part.extent, viewAt(source.view, part.first), dense, context.threads);
          continue;
        }
        TensorView to{ElementType::F32, collected + (part.fileOffset - begin),
                      part.fileStrides};
        TensorView from = sent ? dense : viewAt(source.view, part.first);
        if (source.isLower)
          addLowerHalves(part.extent, from, to);
        else
          copyOnThreads(part.extent, from, to, context.threads);
      }
      if (sent && !isRoot)
        context.world->send(ElementType::F32, buffers.packed.data(), held, 0);
    }
    take(isRoot ? collected : nullptr, count);
    if (buffers.into)
      buffers.into += count;
  }
}
