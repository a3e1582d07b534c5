//===- Json.h - JSON that others wrote ------------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_RUNTIME_COMMON_JSON_H
#define MESHWRIGHT_RUNTIME_COMMON_JSON_H

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace meshwright {

/// The value that `text` is. An Error that begins with `what` ("--init x: its header") and
/// ends with `remedy` if the text is not JSON, names one key of an object twice, or nests
/// deeper than any file of the kinds that are read: what walks through it would need as
/// much stack.
nlohmann::json parseJson(std::string_view text, const std::string &what, const std::string &remedy);

/// Whether a model's description is a configuration in JSON, which may have Python's numbers that are
/// not finite, and not IR.
bool isConfig(const std::string &description);

/// `text` as a string of JSON can be: bytes that are no UTF-8, as paths may have, are U+FFFD.
std::string jsonText(const std::string &text);

/// `json` for an error: its beginning, if it is long.
std::string shortText(const nlohmann::json &json);

} // namespace meshwright

#endif // MESHWRIGHT_RUNTIME_COMMON_JSON_H
