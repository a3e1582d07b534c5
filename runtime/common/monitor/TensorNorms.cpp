//===- TensorNorms.cpp - how large weights and states are -----------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "common/monitor/TensorNorms.h"

#include "common/checkpoint/Gather.h"
#include "common/train/Context.h"

#include <cmath>

using namespace meshwright;

std::vector<std::pair<std::string, double>>
meshwright::tensorNorms(MwContext &context, const VariableAddresses &addresses) {
  std::vector<std::pair<std::string, double>> norms;
  GatherBuffers buffers;
  for (WeightKind kind : {WeightKind::Parameters, WeightKind::Adapters, WeightKind::OptimizerStates})
    for (const FileTensor &tensor : fileTensors(context.plan, kind)) {
      if (kind == WeightKind::Parameters && tensor.parts.front().first->isOfModel)
        continue; // It is trained beside adapters, and told with these.
      double squares = 0;
      gatherTensor(context, addresses, tensor, buffers, [&](const float *elements, int64_t count) {
        for (int64_t i = 0; elements && i < count; ++i)
          squares += double(elements[i]) * elements[i];
      });
      if (context.rank() == 0)
        norms.emplace_back(tensor.name, std::sqrt(squares));
    }
  return norms;
}
