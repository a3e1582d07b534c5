//===- Shards.cpp - which part of a checkpoint a rank writes ----------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "common/checkpoint/Shards.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <set>

using namespace meshwright;

namespace {
/// A rank among those that hold the same part of a variable.
struct Replica {
  int64_t index = 0, count = 1;
};
/// RowRange of one dimension of a file tensor.
struct RowRange {
  int64_t begin, count, step;
};
} // namespace

static Replica replicaOf(const Plan &plan, const Variable &variable, int64_t rank) {
  std::set<int> dividing;
  for (const auto &axes : variable.sharding)
    dividing.insert(axes.begin(), axes.end());
  std::vector<int64_t> coordinates = plan.coordinates(rank);
  Replica replica;
  for (int axis = 0; axis < int(plan.mesh.size()); ++axis) {
    if (dividing.count(axis))
      continue;
    int64_t at = coordinates[size_t(axis)], size = plan.mesh[size_t(axis)].size;
    for (const auto &[restricted, listed] : plan.programs[variable.program].at)
      if (restricted == axis) {
        at = std::find(listed.begin(), listed.end(), at) - listed.begin();
        size = int64_t(listed.size());
      }
    replica.index = replica.index * size + at;
    replica.count *= size;
  }
  return replica;
}

/// The rows of each dimension of a file tensor of `shape` that `part` has.
static std::vector<RowRange> rowsOf(const StoredPart &part, const std::vector<int64_t> &shape) {
  std::vector<int64_t> dense = denseStrides(shape);
  std::vector<RowRange> rows;
  for (size_t d = 0; d < shape.size(); ++d) {
    RowRange row{part.fileOffset / dense[d] % shape[d], 1, 1};
    if (size_t along = dimensionAlong(part, dense[d], shape[d]); along < part.extent.size()) {
      row.count = part.extent[along];
      row.step = part.fileStrides[along] / dense[d];
    }
    rows.push_back(row);
  }
  return rows;
}

/// The dimension of the file tensor along which the variables that are stored in it are concatenated.
static size_t slicedDimension(const FileTensor &tensor) {
  for (auto [variable, number] : tensor.parts)
    if (variable->storage.slice)
      return size_t(variable->storage.slice->dim);
  return 0;
}

/// The boxes of `tensor` that `rank` writes. `share` is the place of the tensor among all, from 0 to 1.
static std::vector<Box> boxesOf(const Plan &plan, const FileTensor &tensor, int64_t rank, double share) {
  size_t sliced = slicedDimension(tensor);
  // The rows along that dimension, by those of the others: adjacent slices of a fused tensor are merged into one box.
  using Range = std::pair<int64_t, int64_t>; // the first one, and how many
  std::map<std::vector<Range>, std::vector<Range>> rowsBySide;
  for (auto [variable, number] : tensor.parts) {
    // Where a master has the lower halves of numbers, its rank writes the numbers.
    if (plan.programOf(rank) != variable->program || (variable->isHalved && variable->role == Variable::Parameter))
      continue;
    Box box = shardOf(plan, *variable, rank);
    if (!holdsTensor(*variable, box, number))
      continue;
    Replica replica = replicaOf(plan, *variable, rank);
    if (std::min(int64_t(share * double(replica.count)), replica.count - 1) != replica.index)
      continue;
    size_t skip = variable->numbered;
    for (const StoredPart &part : storedParts(*variable, {box.begin.begin() + skip, box.begin.end()},
                                              {box.extent.begin() + skip, box.extent.end()}, number)) {
      std::vector<Range> side;
      std::vector<RowRange> rows = rowsOf(part, tensor.shape);
      for (size_t d = 0; d < rows.size(); ++d)
        side.push_back(d == sliced ? Range() : Range(rows[d].begin, rows[d].count));
      std::vector<Range> &along = rowsBySide[side];
      RowRange row = rows.empty() ? RowRange{0, 1, 1} : rows[sliced];
      if (row.step == 1)
        along.emplace_back(row.begin, row.count);
      else
        for (int64_t i = 0; i < row.count; ++i)
          along.emplace_back(row.begin + i * row.step, 1);
    }
  }
  std::vector<Box> boxes;
  for (auto &[side, rows] : rowsBySide) {
    std::sort(rows.begin(), rows.end());
    for (auto row = rows.begin(); row != rows.end();) {
      int64_t begin = row->first, count = 0;
      for (; row != rows.end() && row->first == begin + count; ++row)
        count += row->second;
      Box box;
      for (size_t d = 0; d < side.size(); ++d) {
        box.begin.push_back(d == sliced ? begin : side[d].first);
        box.extent.push_back(d == sliced ? count : side[d].second);
      }
      boxes.push_back(std::move(box));
    }
  }
  return boxes;
}

std::vector<std::vector<FileTensor>> meshwright::shardsOf(const Plan &plan, const std::vector<FileTensor> &tensors,
                                                          int64_t rank) {
  int64_t all = 0, before = 0;
  for (const FileTensor &tensor : tensors)
    all += tensor.bytes();
  std::vector<std::vector<FileTensor>> files;
  for (const FileTensor &tensor : tensors) {
    double share = all ? (double(before) + double(tensor.bytes()) / 2) / double(all) : 0;
    before += tensor.bytes();
    std::vector<Box> boxes = boxesOf(plan, tensor, rank, share);
    files.resize(std::max(files.size(), boxes.size()));
    for (size_t i = 0; i < boxes.size(); ++i) {
      files[i].push_back(tensor);
      files[i].back().box = std::move(boxes[i]);
    }
  }
  if (files.empty() && rank == 0)
    files.emplace_back();
  return files;
}

std::string meshwright::shardName(int64_t rank, size_t number, size_t count) {
  char name[96];
  snprintf(name, sizeof(name), "shard-%05lld-model-%05zu-of-%05zu.safetensors", static_cast<long long>(rank + 1),
           number + 1, count);
  return name;
}
