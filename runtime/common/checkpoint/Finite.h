//===- Finite.h - looking for values that are no numbers ------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_RUNTIME_COMMON_FINITE_H
#define MESHWRIGHT_RUNTIME_COMMON_FINITE_H

#include "common/plan/Plan.h"

namespace meshwright {

/// Whether none of `count` values is infinite or no number.
bool isFinite(ElementType type, const char *data, int64_t count);

/// An Error that names the tensor if a value of the variables of `rank`, the rank of
/// `plan`, is not finite.
void checkFinite(const Plan &plan, const VariableAddresses &addresses, int64_t rank, int threads);

} // namespace meshwright

#endif // MESHWRIGHT_RUNTIME_COMMON_FINITE_H
