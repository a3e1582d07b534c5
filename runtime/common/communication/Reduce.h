//===- Reduce.h - element-wise reduction in a fixed order -----------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_RUNTIME_COMMON_REDUCE_H
#define MESHWRIGHT_RUNTIME_COMMON_REDUCE_H

#include "common/communication/RankGroup.h"

namespace meshwright {

/// Elements `reduceBlock` takes at most: small enough to stay in the first-level
/// cache together with the inputs.
constexpr int64_t reduceBlockElements = 1024;

/// output[i] = inputs[0][i] (+) inputs[1][i] (+) ... for i < count, in that order;
/// count <= reduceBlockElements. `output` may be one of the inputs.
void reduceBlock(ElementType type, Reduction reduction, const void *const *inputs, int ways,
                 void *output, int64_t count);

} // namespace meshwright

#endif // MESHWRIGHT_RUNTIME_COMMON_REDUCE_H
