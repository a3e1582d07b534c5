//===- TomlReader.cpp - reads tables of TOML, with errors for people --------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "TomlReader.h"

#include "meshwright/OptionValues.h"

using namespace meshwright;
using namespace meshwright::cost;
using llvm::createStringError;
using llvm::StringRef;
using llvm::Twine;

/// Beyond these, times would be infinite.
static constexpr double least = 1e-30, most = 1e30;

/// What a number that is positive, or not negative, must be besides.
static const char *rangeOf(double value) {
  return value >= most ? ", below 1e30" : value > 0 && value < least ? ", from 1e-30 on" : "";
}

llvm::Error TomlReader::parse(StringRef text,
                              llvm::function_ref<void(const toml::table &)> read) {
  toml::parse_result parsed = toml::parse(std::string_view(text), std::string_view(file));
  if (!parsed)
    return createStringError(Twine(file) + ", line " +
                             Twine(parsed.error().source().begin.line) + ": " +
                             std::string(parsed.error().description()));
  read(parsed);
  return error.empty() ? llvm::Error::success() : createStringError(error);
}

void TomlReader::fail(const toml::node &at, const Twine &message) {
  if (error.empty())
    error = (Twine(file) + ", line " + Twine(at.source().begin.line) + ": " + message).str();
}

void TomlReader::expectOnly(const toml::table &table, std::initializer_list<StringRef> keys) {
  for (auto &&[key, node] : table)
    if (!llvm::is_contained(keys, StringRef(key.data(), key.length())))
      fail(node, "unknown key " + notAmong(StringRef(key.data(), key.length()),
                                           llvm::SmallVector<StringRef>(keys)));
}

const toml::node *TomlReader::find(const toml::table &table, StringRef key, bool mustBe) {
  const toml::node *node = table.get(std::string_view(key));
  if (!node && mustBe)
    fail(table, "'" + key + "' is missing");
  return node;
}

std::string TomlReader::text(const toml::table &table, StringRef key, bool mustBe) {
  const toml::node *node = find(table, key, mustBe);
  if (!node)
    return "";
  if (!node->is_string() || node->as_string()->get().empty())
    fail(*node, "'" + key + "' must be a text");
  return node->value_or(std::string());
}

std::vector<std::string> TomlReader::texts(const toml::table &table, StringRef key) {
  std::vector<std::string> list;
  const toml::node *node = find(table, key, false);
  if (!node)
    return list;
  const toml::array *array = node->as_array();
  if (array)
    for (auto &&item : *array)
      list.push_back(item.value_or(std::string()));
  if (!array || llvm::is_contained(list, ""))
    fail(*node, "'" + key + "' must be a list of texts");
  return list;
}

bool TomlReader::flag(const toml::table &table, StringRef key) {
  const toml::node *node = find(table, key, false);
  if (node && !node->is_boolean())
    fail(*node, "'" + key + "' must be true or false");
  return node && node->value_or(false);
}

double TomlReader::number(const toml::table &table, StringRef key, bool mustBe) {
  const toml::node *node = find(table, key, mustBe);
  if (!node)
    return 0;
  double value = node->is_number() ? node->value_or(0.0) : -1;
  if (!(value == 0 || (value >= least && value < most)))
    fail(*node, "'" + key + "' must be a number that is not negative" + rangeOf(value));
  return value;
}

int64_t TomlReader::count(const toml::table &table, StringRef key, bool mustBe) {
  const toml::node *node = find(table, key, mustBe);
  if (!node)
    return 0;
  int64_t value = node->is_integer() ? node->value_or(int64_t(0)) : 0;
  if (value < 1 || value > (int64_t(1) << 31))
    fail(*node, "'" + key + "' must be a whole number from 1 on");
  return value;
}

std::optional<Rate> TomlReader::rate(const toml::table &table, StringRef key, bool mustBe) {
  const toml::node *node = find(table, key, mustBe);
  if (!node)
    return std::nullopt;
  if (node->is_number()) {
    double value = node->value_or(0.0);
    if (!(value >= least && value < most))
      fail(*node, "'" + key + "' must be a positive number" + rangeOf(value));
    return Rate(value);
  }
  std::vector<Rate::Point> points;
  if (const toml::array *array = node->as_array())
    for (auto &&item : *array) {
      const toml::array *pair = item.as_array();
      double size = pair && pair->size() == 2 ? (*pair)[0].value_or(-1.0) : -1;
      double value = pair && pair->size() == 2 ? (*pair)[1].value_or(-1.0) : -1;
      bool isInRange = size >= least && size < most && value >= least && value < most;
      if (!isInRange ||
          (!points.empty() && size <= points.back().size)) {
        points.clear();
        break;
      }
      points.push_back({size, value});
    }
  if (points.empty()) {
    fail(*node, "'" + key + "' must be a positive number, or pairs [[size, rate], ...] of positive "
                            "numbers from 1e-30 to 1e30 by ascending size");
    return std::nullopt;
  }
  return Rate(points);
}

void TomlReader::rates(const toml::table &table, StringRef key, RatesByType &rates, bool complete) {
  const toml::node *node = find(table, key, false);
  if (!node)
    return;
  const toml::table *types = node->as_table();
  if (!types)
    return fail(*node, "'" + key + "' must be a table with rates of f32 and bf16");
  expectOnly(*types, {"f32", "bf16"});
  if (std::optional<Rate> found = rate(*types, "f32", complete))
    rates.f32 = *found;
  if (std::optional<Rate> found = rate(*types, "bf16", complete))
    rates.narrow = *found;
}

std::vector<const toml::table *> TomlReader::tables(const toml::table &table, StringRef key,
                                                bool mustBe) {
  std::vector<const toml::table *> list;
  const toml::node *node = find(table, key, mustBe);
  if (!node)
    return list;
  bool areTables = true;
  if (const toml::array *array = node->as_array())
    for (auto &&item : *array) {
      areTables &= item.is_table();
      if (item.is_table())
        list.push_back(item.as_table());
    }
  if (list.empty() || !areTables)
    fail(*node, "'" + key + "' must be tables, each begun by [[" + key + "]]");
  return list;
}
