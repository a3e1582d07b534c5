//===- Spec.h - reading parts of a tokenizer.json ------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_TOKENIZER_CORE_SPEC_H
#define MESHWRIGHT_TOKENIZER_CORE_SPEC_H

#include "Tokenizer/Core/Error.h"
#include "Tokenizer/Core/SplitPattern.h"

#include <nlohmann/json.hpp>

namespace meshwright::tokenizer {

using Json = nlohmann::json;

/// The member `key` of an object as a T: `otherwise` where it is missing or null. An Error where it
/// is something else.
template <typename T> T get(const Json &object, const char *key, T otherwise) {
  auto found = object.find(key);
  if (found == object.end() || found->is_null())
    return otherwise;
  bool fits = true;
  if constexpr (std::is_same_v<T, bool>)
    fits = found->is_boolean();
  else if constexpr (std::is_same_v<T, std::string>)
    fits = found->is_string();
  else
    fits = found->is_number_integer();
  if (!fits)
    fail("its \"", key, "\" is ", found->dump(), ", which has another type than expected");
  return found->get<T>();
}

/// The text of an object's "type"; an Error if it is no object that has one. `part` is what it is
/// called in messages.
inline std::string typeOf(const Json &object, const char *part) {
  if (!object.is_object() || !object.contains("type") || !object["type"].is_string())
    fail("its ", part, " ", object.dump().substr(0, 80), " is no object with a \"type\"");
  return object["type"].get<std::string>();
}

/// The member `key` that must be an array.
inline const Json &arrayOf(const Json &object, const char *key, const char *part) {
  auto found = object.find(key);
  if (found == object.end() || !found->is_array())
    fail("its ", part, " has no array \"", key, "\"");
  return *found;
}

/// The "pattern" of a part: {"String": ..} or {"Regex": ..}.
inline std::unique_ptr<SplitPattern> makeSpecPattern(const Json &object, const char *part) {
  Json pattern = object.value("pattern", Json());
  if (pattern.is_object() && pattern.size() == 1 && pattern.front().is_string()) {
    std::string text = pattern.front().get<std::string>();
    if (pattern.begin().key() == "String")
      return makeLiteralPattern(text);
    if (pattern.begin().key() == "Regex")
      return makePattern(text);
  }
  fail("its ", part, " has the pattern ", pattern.dump(),
       ", but patterns are {\"String\": ..} or {\"Regex\": ..}");
}

} // namespace meshwright::tokenizer

#endif // MESHWRIGHT_TOKENIZER_CORE_SPEC_H
