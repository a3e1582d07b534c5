//===- Gather.h - global tensors from their parts -------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_RUNTIME_COMMON_GATHER_H
#define MESHWRIGHT_RUNTIME_COMMON_GATHER_H

#include "common/checkpoint/Weights.h"
#include "common/plan/Sharding.h"

#include <functional>
#include <optional>
#include <vector>

struct MwContext;

namespace meshwright {

struct Variable;

/// A tensor of a safetensors file and the variables' tensors that tile it.
struct FileTensor {
  std::string name;
  std::vector<int64_t> shape;
  std::vector<std::pair<const Variable *, int64_t>> parts; ///< with its number
  std::optional<Box> box = {}; ///< what of it the file of a shard has, and its rank holds

  /// The shape that the file has, and the bytes.
  const std::vector<int64_t> &writtenShape() const { return box ? box->extent : shape; }
  int64_t bytes() const;
};

/// The file tensors of the plan's parameters or optimizer states, in plan order.
std::vector<FileTensor> fileTensors(const Plan &plan, WeightKind kind);

/// The name by which `tensor` is saved.
const std::string &savedName(const MwContext &context, const FileTensor &tensor);

/// The memory in which parts of tensors come together: no more, however large a tensor is.
struct GatherBuffers {
  int64_t capacity = int64_t(1) << 20; ///< elements, in f32, of each of the two
  std::vector<float> window;           ///< on rank 0, unless `into` is set
  float *into = nullptr;               ///< where rank 0 keeps the windows, one after the other
  std::vector<float> packed;           ///< what one rank sends
};

/// Whether the part `box` of `variable` has elements of its tensor `number`.
bool holdsTensor(const Variable &variable, const Box &box, int64_t number);

/// Boxes of a tensor of `shape`, of `capacity` elements at most, which are one after the other in
/// memory and which it consists of, in this order.
std::vector<Box> windowsOf(const std::vector<int64_t> &shape, int64_t capacity);

/// Brings the parts of `tensor` together on rank 0, window by window, in f32 and the file's
/// layout. Each rank calls `take` for each window, with its elements on rank 0 and null on others,
/// and their number. Collective. Of ranks with the same part the first one sends it. With a box, each rank calls `take` for
/// the windows of its own one, without the others.
void gatherTensor(MwContext &context, const VariableAddresses &addresses, const FileTensor &tensor,
                  GatherBuffers &buffers,
                  const std::function<void(const float *elements, int64_t count)> &take);

} // namespace meshwright

#endif // MESHWRIGHT_RUNTIME_COMMON_GATHER_H
