//===- PlanHash.h - whether a plan is as it was written ---------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_RUNTIME_COMMON_PLANHASH_H
#define MESHWRIGHT_RUNTIME_COMMON_PLANHASH_H

#include <string>
#include <string_view>

namespace meshwright {

/// The hash that a plan of this text must have, or an empty string if the text has none.
std::string hashOfPlan(std::string_view json);

/// An Error if the plan of an executable has another hash than it says.
void checkPlanHash(std::string_view json);

} // namespace meshwright

#endif // MESHWRIGHT_RUNTIME_COMMON_PLANHASH_H
