//===- Gather.cpp - global tensors from their parts -----------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "common/checkpoint/Gather.h"

#include "common/checkpoint/TensorCopy.h"
#include "common/monitor/Error.h"
#include "common/plan/Context.h"
#include "common/plan/Sharding.h"

#include <map>
#include <tuple>

using namespace meshwright;

static int64_t elements(const std::vector<int64_t> &shape) {
  int64_t product = 1;
  for (int64_t size : shape)
    product *= size;
  return product;
}

int64_t FileTensor::bytes() const { return elements(shape) * 4; }

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
    int64_t count = elements(variable.shape) / std::max<int64_t>(variable.tensors(), 1);
    for (int64_t number = 0; number < variable.tensors(); ++number) {
      std::string name = storageName(variable, number);
      int64_t begin = variable.storage.slice ? variable.storage.slice->begin : -1;
      auto first = taken.find({name, begin});
      if (isLower && (first == taken.end() || first->second->name != variable.of ||
                      first->second->program != variable.program))
        continue;
      if (!isLower && !taken.try_emplace({name, begin}, &variable).second)
        continue;
      auto [entry, isNew] = index.try_emplace(name, tensors.size());
      if (isNew) {
        tensors.push_back({name, shape, {}});
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
    if (covered[i] != elements(tensors[i].shape))
      fail("plan: the variables stored in ", tensors[i].name, " cover ", covered[i], " of its ",
           elements(tensors[i].shape), " elements");
  return tensors;
}

/// The extent of `box` in one of the variable's tensors.
static std::vector<int64_t> layerExtent(const Variable &variable, const Box &box) {
  return {box.extent.begin() + variable.numbered, box.extent.end()};
}

static bool holdsTensor(const Variable &variable, const Box &box, int64_t number) {
  if (box.elements() == 0)
    return false;
  for (size_t d = variable.numbered; d-- > 0; number /= variable.shape[d])
    if (int64_t at = number % variable.shape[d] - box.begin[d]; at < 0 || at >= box.extent[d])
      return false;
  return true;
}

static TensorView localView(const Variable &variable, const Box &box, int64_t number,
                            const VariableAddresses &addresses) {
  std::vector<int64_t> strides = denseStrides(variable.localShape);
  const char *data =
      addresses.of(variable) + tensorOffset(variable, box, number) * bytesOf(variable.type);
  return {variable.type,
          const_cast<char *>(data),
          {strides.begin() + variable.numbered, strides.end()}};
}

/// Copies `box` of a layer to where it lies in its file tensor.
static void copyToFile(const Variable &variable, const Box &box, const TensorView &from,
                       float *file) {
  std::vector<int64_t> begin(box.begin.begin() + variable.numbered, box.begin.end());
  for (const StoredPart &part : storedParts(variable, begin, layerExtent(variable, box))) {
    int64_t first = 0;
    for (size_t d = 0; d < part.first.size(); ++d)
      first += part.first[d] * from.strides[d];
    TensorView view{from.type, static_cast<char *>(from.data) + first * bytesOf(from.type),
                    from.strides};
    TensorView to{ElementType::F32, file + part.fileOffset, part.fileStrides};
    bool isLower = variable.isHalved && variable.role == Variable::Master;
    (isLower ? addLowerHalves : copyTensor)(part.extent, view, to);
  }
}

void meshwright::gatherTensor(MwContext &context, const VariableAddresses &addresses,
                              const FileTensor &tensor, std::vector<float> &result) {
  const Plan &plan = context.plan;
  bool isRoot = context.rank() == 0;
  if (isRoot)
    result.assign(size_t(elements(tensor.shape)), 0.0f);
  std::vector<float> packed;
  for (auto [variable, number] : tensor.parts) {
    for (int owner = 0; owner < context.world->size(); ++owner) {
      if (!isRoot && owner != context.rank())
        continue;
      Box box = shardOf(plan, *variable, owner);
      if (!ownsShard(plan, *variable, owner) || !holdsTensor(*variable, box, number))
        continue;
      std::vector<int64_t> extent = layerExtent(*variable, box);
      if (owner == 0) {
        copyToFile(*variable, box, localView(*variable, box, number, addresses), result.data());
        continue;
      }
      packed.resize(size_t(elements(extent)));
      TensorView packedView = {ElementType::F32, packed.data(), denseStrides(extent)};
      if (isRoot) {
        context.world->receive(ElementType::F32, packed.data(), int64_t(packed.size()), owner);
        copyToFile(*variable, box, packedView, result.data());
      } else {
        copyTensor(extent, localView(*variable, box, number, addresses), packedView);
        context.world->send(ElementType::F32, packed.data(), int64_t(packed.size()), 0);
      }
    }
  }
}
