//===- Json.cpp - JSON that others wrote ----------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "common/checkpoint/Json.h"

#include "common/monitor/Error.h"
#include "meshwright/runtime/NonFinite.h"

#include <set>

using namespace meshwright;
using Json = nlohmann::json;

static constexpr size_t maxDepth = 256, maxShown = 200;

Json meshwright::parseJson(std::string_view text, const std::string &what,
                           const std::string &remedy) {
  // Of each array and object that is open, the keys so far.
  std::vector<std::set<std::string>> open;
  auto check = [&](int, Json::parse_event_t event, Json &value) {
    switch (event) {
    case Json::parse_event_t::object_start:
    case Json::parse_event_t::array_start:
      if (open.size() == maxDepth)
        fail(what, " nests arrays and objects deeper than ", maxDepth, remedy);
      open.emplace_back();
      break;
    case Json::parse_event_t::object_end:
    case Json::parse_event_t::array_end:
      open.pop_back();
      break;
    case Json::parse_event_t::key:
      if (!open.back().insert(value.get<std::string>()).second)
        fail(what, " has the key ", shortText(value), " twice in one object", remedy);
      break;
    case Json::parse_event_t::value:
      break;
    }
    return true;
  };
  Json json = Json::parse(text.begin(), text.end(), check, /*allow_exceptions=*/false);
  if (json.is_discarded())
    fail(what, " is not valid JSON", remedy);
  return json;
}

bool meshwright::isConfig(const std::string &description) {
  return Json::accept(withoutNonFinite(description));
}

std::string meshwright::jsonText(const std::string &text) {
  return Json::parse(Json(text).dump(-1, ' ', false, Json::error_handler_t::replace)).get<std::string>();
}

std::string meshwright::shortText(const Json &json) {
  std::string all = json.dump(-1, ' ', /*ensure_ascii=*/true);
  return all.size() <= maxShown ? all : all.substr(0, maxShown) + "...";
}
