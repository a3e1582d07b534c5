//===- Sharding.cpp - which part of a tensor a rank holds -----------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "common/plan/Sharding.h"

#include "common/monitor/Error.h"
#include "common/plan/Plan.h"

#include "meshwright/runtime/StorageName.h"
#include "meshwright/runtime/StorageRows.h"

#include <algorithm>
#include <cstdlib>

using namespace meshwright;

int64_t Box::elements() const {
  int64_t product = 1;
  for (int64_t size : extent)
    product *= size;
  return product;
}

Box meshwright::shardOf(const Plan &plan, const Variable &variable, int64_t rank) {
  std::vector<int64_t> coordinates = plan.coordinates(rank);
  Box box;
  for (size_t d = 0; d < variable.shape.size(); ++d) {
    int64_t size = variable.shape[d], local = variable.localShape[d];
    int64_t begin = std::min(size, plan.axesIndex(variable.sharding[d], coordinates) * local);
    box.begin.push_back(begin);
    box.extent.push_back(std::min(local, size - begin));
  }
  return box;
}

bool meshwright::ownsShard(const Plan &plan, const Variable &variable, int64_t rank) {
  if (plan.programOf(rank) != variable.program)
    return false;
  std::vector<int64_t> coordinates = plan.coordinates(rank);
  // Of the ranks of its program, the first on each axis that does not shard it.
  for (const auto &[axis, listed] : plan.programs[variable.program].at)
    coordinates[size_t(axis)] -= *std::min_element(listed.begin(), listed.end());
  for (const auto &axes : variable.sharding)
    for (int axis : axes)
      coordinates[size_t(axis)] = 0;
  return std::all_of(coordinates.begin(), coordinates.end(), [](int64_t c) { return c == 0; });
}

std::vector<int64_t> meshwright::denseStrides(const std::vector<int64_t> &shape) {
  std::vector<int64_t> strides(shape.size(), 1);
  for (size_t d = shape.size(); d-- > 1;)
    strides[d - 1] = strides[d] * shape[d];
  return strides;
}

StorageLayout meshwright::storageLayout(const Variable &variable) {
  StorageLayout layout;
  layout.fileShape.assign(variable.shape.begin() + variable.numbered, variable.shape.end());
  size_t rank = layout.fileShape.size();
  if (variable.storage.transpose)
    std::swap(layout.fileShape[rank - 1], layout.fileShape[rank - 2]);
  if (const auto &slice = variable.storage.slice) {
    int64_t &size = layout.fileShape[size_t(slice->dim)];
    if (size != slice->size)
      fail("plan: the storage slice of ", variable.name, " has size ", slice->size,
           " but the variable has ", size);
    size = slice->full;
  }
  layout.strides = denseStrides(layout.fileShape);
  if (const auto &slice = variable.storage.slice)
    layout.offset = slice->begin * layout.strides[size_t(slice->dim)];
  if (variable.storage.transpose)
    std::swap(layout.strides[rank - 1], layout.strides[rank - 2]);
  return layout;
}

int64_t meshwright::rowsAbove(const Variable &variable, int64_t number) {
  const auto &slice = variable.storage.slice;
  return slice ? rowsAbove(variable.storage.tensor, number, variable.shape[variable.stacked], slice->size) : 0;
}

std::vector<StoredPart> meshwright::storedParts(const Variable &variable,
                                                const std::vector<int64_t> &begin,
                                                const std::vector<int64_t> &extent, int64_t number) {
  StorageLayout layout = storageLayout(variable);
  if (int64_t rows = rowsAbove(variable, number))
    layout.offset += rows * denseStrides(layout.fileShape)[size_t(variable.storage.slice->dim)];
  std::vector<int64_t> zero(begin.size());
  int64_t offset = layout.offset;
  for (size_t d = 0; d < begin.size(); ++d)
    offset += begin[d] * layout.strides[d];
  const auto &slice = variable.storage.slice;
  if (!slice || !slice->period)
    return {{zero, extent, offset, layout.strides}};
  // The dimension counts along the file's; transposing swaps the last two.
  size_t rank = begin.size(), dim = size_t(slice->dim);
  if (variable.storage.transpose && dim + 2 >= rank)
    dim = 2 * rank - 3 - dim;
  offset -= layout.offset + begin[dim] * layout.strides[dim];
  std::vector<StoredPart> parts;
  auto add = [&](const StoredRows &rows) {
    StoredPart part{zero, extent, offset + rows.fileRow * layout.strides[dim], layout.strides};
    part.first[dim] = rows.row - begin[dim];
    part.extent[dim] = rows.count;
    part.fileStrides[dim] *= rows.step;
    parts.push_back(std::move(part));
  };
  forEachStoredRows(slice->begin, *slice->period, *slice->runs, begin[dim], extent[dim], add);
  return parts;
}

size_t meshwright::dimensionAlong(const StoredPart &part, int64_t stride, int64_t size) {
  // A dimension of a single element lies along any.
  size_t along = 0;
  while (along < part.extent.size() && (part.extent[along] == 1 || part.fileStrides[along] < stride ||
                                        part.fileStrides[along] >= stride * size))
    ++along;
  return along;
}

StoredPart meshwright::partOfBox(StoredPart part, const std::vector<int64_t> &fileShape, const Box &box) {
  std::vector<int64_t> dense = denseStrides(fileShape), inBox = denseStrides(box.extent);
  int64_t offset = 0;
  std::vector<int64_t> strides = part.fileStrides;
  for (size_t d = 0; d < fileShape.size(); ++d) {
    offset += (part.fileOffset / dense[d] % fileShape[d] - box.begin[d]) * inBox[d];
    if (size_t along = dimensionAlong(part, dense[d], fileShape[d]); along < part.extent.size())
      strides[along] = part.fileStrides[along] / dense[d] * inBox[d];
  }
  part.fileOffset = offset;
  part.fileStrides = std::move(strides);
  return part;
}

std::optional<StoredPart>
meshwright::partWithin(StoredPart part, const std::vector<int64_t> &fileShape, const Box &window) {
  std::vector<int64_t> dense = denseStrides(fileShape);
  for (size_t d = 0; d < fileShape.size(); ++d) {
    int64_t at = part.fileOffset / dense[d] % fileShape[d] - window.begin[d];
    size_t along = dimensionAlong(part, dense[d], fileShape[d]);
    if (along == part.extent.size()) {
      if (at < 0 || at >= window.extent[d])
        return std::nullopt;
      continue;
    }
    int64_t step = part.fileStrides[along] / dense[d];
    int64_t begin = std::max<int64_t>(0, ceilDivide(-at, step));
    int64_t end = std::min(part.extent[along], ceilDivide(window.extent[d] - at, step));
    if (begin >= end)
      return std::nullopt;
    part.first[along] += begin;
    part.extent[along] = end - begin;
    part.fileOffset += begin * part.fileStrides[along];
  }
  return part;
}

std::string meshwright::storageName(const Variable &variable, int64_t number) {
  const std::string &pattern = variable.storage.tensor;
  bool byLayer = pattern.find("{layer") != std::string::npos;
  if (byLayer != variable.stacked)
    fail("plan: variable ", variable.name, variable.stacked ? " is" : " is not",
         " stacked but its storage name is \"", pattern, "\"");
  int64_t each = variable.numbered > variable.stacked ? variable.shape[variable.stacked] : 1;
  std::string name = numberedTensorName(pattern, number % each);
  if (!byLayer)
    return name;
  std::optional<std::string> ofLayer = layerTensorName(name, number / each);
  if (!ofLayer)
    fail("plan: the storage name \"", pattern, "\" of variable ", variable.name,
         " has neither {layer} nor {layer+NUMBER}");
  return *ofLayer;
}

std::vector<int64_t> meshwright::tensorsIn(const Variable &variable, const Box &box) {
  std::vector<int64_t> numbers{0};
  for (size_t d = 0; d < variable.numbered; ++d) {
    std::vector<int64_t> next;
    for (int64_t number : numbers)
      for (int64_t i = 0; i < box.extent[d]; ++i)
        next.push_back(number * variable.shape[d] + box.begin[d] + i);
    numbers = std::move(next);
  }
  return numbers;
}

int64_t meshwright::tensorOffset(const Variable &variable, const Box &box, int64_t number) {
  std::vector<int64_t> strides = denseStrides(variable.localShape);
  int64_t offset = 0;
  for (size_t d = variable.numbered; d-- > 0; number /= variable.shape[d])
    offset += (number % variable.shape[d] - box.begin[d]) * strides[d];
  return offset;
}
