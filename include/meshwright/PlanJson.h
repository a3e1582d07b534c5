//===- PlanJson.h - the structs of a plan as JSON, and back -----------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_PLANJSON_H
#define MESHWRIGHT_PLANJSON_H

#include "meshwright/Json.h"
#include "meshwright/runtime/PlanSchema.h"

namespace meshwright::plan {

namespace detail {
struct Ignore {
  template <typename T> void operator()(const char *, T &) {}
};
template <typename T>
using IfFields = decltype(T::fields(std::declval<T &>(), std::declval<Ignore>()), true);

template <typename T> void put(llvm::json::Object &object, const char *key, const T &field) {
  object[key] = field;
}
template <typename T>
void put(llvm::json::Object &object, const char *key, const Table<T> &field) {
  llvm::json::Object inner;
  for (const auto &[name, value] : field)
    inner[name] = value;
  object[key] = std::move(inner);
}
template <typename T>
void put(llvm::json::Object &object, const char *key, const std::optional<T> &field) {
  if (field)
    put(object, key, *field);
}
} // namespace detail

/// Turns a struct with fields into JSON.
template <typename T, detail::IfFields<T> = true> llvm::json::Value toJSON(const T &value) {
  llvm::json::Object object;
  T::fields(value,
            [&](const char *key, const auto &field) { detail::put(object, key, field); });
  return object;
}

/// Reads a struct as llvm::json::fromJSON does, and ignores keys that are no fields.
template <typename T, detail::IfFields<T> = true>
bool fromJSON(const llvm::json::Value &value, T &result, llvm::json::Path path) {
  llvm::json::ObjectMapper object(value, path);
  bool fine = bool(object);
  T::fields(result, [&](const auto &key, auto &field) {
    fine = fine && object.map(llvm::StringLiteral::withInnerNUL(key), field);
  });
  return fine;
}

/// Reads a T from text. An error says where the text is no JSON of a T.
template <typename T> llvm::Expected<T> parse(llvm::StringRef text) {
  llvm::Expected<llvm::json::Value> value = parseJson(text);
  if (!value)
    return value.takeError();
  T result;
  llvm::json::Path::Root root;
  if (!fromJSON(*value, result, root))
    return root.getError();
  return result;
}

} // namespace meshwright::plan

// Structs of reports are converted too.
namespace meshwright {
using plan::toJSON;
namespace report {
using plan::toJSON;
}
} // namespace meshwright

#endif // MESHWRIGHT_PLANJSON_H
