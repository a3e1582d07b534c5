//===- PlanText.h - plans written by hand ----------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_TEST_RUNTIME_PLANTEXT_H
#define MESHWRIGHT_TEST_RUNTIME_PLANTEXT_H

#include "meshwright/runtime/PlanSchema.h"

#include <nlohmann/json.hpp>

namespace meshwright::plan {

/// `entry`, and what every T has beside that, zero or empty.
template <typename T> nlohmann::json whole(nlohmann::json entry) {
  T initial;
  T::fields(initial, [&](const char *key, auto &field) {
    using Field = std::decay_t<decltype(field)>;
    if constexpr (std::is_arithmetic_v<Field> || std::is_same_v<Field, std::string>)
      entry.emplace(key, field);
    else if constexpr (!isOptional<Field>)
      entry.emplace(key, std::is_same_v<Field, Table<Shape>> ? nlohmann::json::object()
                                                             : nlohmann::json::array());
  });
  return entry;
}

} // namespace meshwright::plan

#endif // MESHWRIGHT_TEST_RUNTIME_PLANTEXT_H
