//===- Gather.h - global tensors from their parts -------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_RUNTIME_COMMON_GATHER_H
#define MESHWRIGHT_RUNTIME_COMMON_GATHER_H

#include "common/checkpoint/Weights.h"

#include <functional>
#include <vector>

struct MwContext;

namespace meshwright {

struct Variable;

/// A tensor of a safetensors file and the variables' tensors that tile it.
struct FileTensor {
  std::string name;
  std::vector<int64_t> shape;
  std::vector<std::pair<const Variable *, int64_t>> parts; ///< with its number

  int64_t bytes() const; ///< in the file
};

/// The file tensors of the plan's parameters or optimizer states, in plan order.
std::vector<FileTensor> fileTensors(const Plan &plan, WeightKind kind);

/// Brings the parts of `tensor` together on rank 0, in f32 and the file's layout,
/// in `result`, which other ranks leave empty. Collective. Of ranks with the same
/// part the first one sends it.
void gatherTensor(MwContext &context, const VariableAddresses &addresses, const FileTensor &tensor,
                  std::vector<float> &result);

} // namespace meshwright

#endif // MESHWRIGHT_RUNTIME_COMMON_GATHER_H
