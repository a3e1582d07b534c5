//===- TensorNorms.h - how large weights and states are -------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_RUNTIME_COMMON_TENSORNORMS_H
#define MESHWRIGHT_RUNTIME_COMMON_TENSORNORMS_H

#include "common/plan/Plan.h"

#include <string>
#include <utility>
#include <vector>

struct MwContext;

namespace meshwright {

/// The Euclidean norms of all tensors that a checkpoint has, by their names there, weights first; on rank 0, others
/// get none. Of `addresses`, where the host has them. Collective: tensors pass through rank 0 part by part, as into
/// a checkpoint.
std::vector<std::pair<std::string, double>> tensorNorms(MwContext &context,
                                                        const VariableAddresses &addresses);

} // namespace meshwright

#endif // MESHWRIGHT_RUNTIME_COMMON_TENSORNORMS_H
