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

/// A plan with one parameter on the mesh a=2, b=3.
inline nlohmann::json planText(std::vector<int64_t> shape, std::vector<int64_t> local,
                               nlohmann::json sharding, bool stacked = false,
                               nlohmann::json storage = {{"tensor", "w"}}) {
  return meshwright::plan::whole<meshwright::plan::Plan>(
      {{"version", 1},
       {"hash", "0123456789abcdef"},
       {"model", "m"},
       {"config", ""},
       {"target", "cpu"},
       {"precision", "f32"},
       {"optimizer", "sgd"},
       {"mesh", {{{"axis", "a"}, {"size", 2}}, {{"axis", "b"}, {"size", 3}}}},
       {"batch", 12},
       {"sequence", 4},
       {"microbatches", 1},
       {"vocabulary", 10},
       {"max_positions", 4},
       {"data_axes", {"a", "b"}},
       {"programs",
        {meshwright::plan::whole<meshwright::plan::Program>(
            {{"name", "main"}, {"arena_bytes", 4096}})}},
       {"variables",
        {{{"name", "w"},
          {"role", "parameter"},
          {"type", "f32"},
          {"shape", shape},
          {"local_shape", local},
          {"sharding", sharding},
          {"stacked", stacked},
          {"offset", 64},
          {"in", 0},
          {"init", {{"kind", "normal"}, {"std", 2.0}}},
          {"storage", storage}}}},
       {"inputs",
        {{{"name", "tokens"}, {"type", "i32"}, {"shape", {1, 2, 4}}, {"offset", 0}, {"in", 0}},
         {{"name", "targets"}, {"type", "i32"}, {"shape", {1, 2, 4}}, {"offset", 0}, {"in", 0}}}},
       {"outputs",
        {{{"name", "loss"},
          {"type", "f32"},
          {"shape", nlohmann::json::array()},
          {"offset", 0},
          {"in", 0}},
         {{"name", "grad_norm"},
          {"type", "f32"},
          {"shape", nlohmann::json::array()},
          {"offset", 0},
          {"in", 0}}}},
       {"groups", {{"a"}, {"a", "b"}}},
       {"scratch_bytes", {0, 0}},
       {"collectives", nlohmann::json::array()},
       {"flops", 1.5e12}});
}

/// The master of a parameter "w" of shape [6, 5].
inline nlohmann::json masterText(const char *type, nlohmann::json local, nlohmann::json sharding) {
  return {{"name", "w.master"}, {"in", 0},         {"role", "master"},     {"of", "w"},
          {"type", type},       {"shape", {6, 5}}, {"local_shape", local}, {"sharding", sharding},
          {"stacked", false},   {"offset", 1024}};
}

/// The storage of a tensor [8, n] whose rows, or columns of its file if `transposed`, are these of
/// 24: 4 6 5 7 16 18 17 19.
inline nlohmann::json storageOfRowsApart(bool transposed) {
  return {{"tensor", "w"},
          {"transpose", transposed},
          {"slice",
           {{"dim", transposed ? 1 : 0},
            {"begin", 4},
            {"size", 8},
            {"full", 24},
            {"period", 12},
            {"runs", {0, 2, 2, 1, 2, 2}}}}};
}

#endif // MESHWRIGHT_TEST_RUNTIME_PLANTEXT_H
