//===- Settings.cpp - TOML, JSON and YAML as lists of settings ---------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Settings.h"

#include "meshwright/Json.h"
#include "meshwright/Toml.h"
#include "meshwright/TomlKeys.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/YAMLParser.h"

#include <charconv>
#include <sstream>
using namespace llvm;

namespace meshwright::convert {

/// No settings nest deeper; readers recurse.
static constexpr unsigned mostDepth = 32;

static Error failAt(StringRef path, unsigned line, const Twine &why) {
  return createStringError("'" + path + "'" + (line ? ", line " + Twine(line) : Twine()) + ": " + why);
}

bool Setting::isOff() const {
  static constexpr StringLiteral off[] = {"", "false", "none", "null", "disabled", "off", "no", "no_shard", "{}"};
  double number = 0;
  return kind == Null || (kind == List && items.empty()) || is_contained(off, StringRef(text).lower()) ||
         (kind == Number && to_float(text, number) && number == 0);
}

Setting settingOf(std::string key, StringRef text, unsigned line, bool quoted) {
  Setting setting{std::move(key), Setting::Text, text.str(), line};
  double number = 0;
  if (quoted)
    return setting;
  if (text == "true" || text == "false" || text == "True" || text == "False") {
    setting.kind = Setting::Switch;
    setting.text = text.lower();
  } else if (text.empty() || text == "null" || text == "~" || text == "None") {
    setting.kind = Setting::Null;
    setting.text = "null";
  } else if ((isDigit(text.front()) || StringRef("+-.").contains(text.front())) && to_float(text, number)) {
    setting.kind = Setting::Number;
  }
  return setting;
}

Setting listOf(std::string key, std::vector<std::string> items, unsigned line) {
  std::string text = "[" + join(items, ", ") + "]";
  return {std::move(key), Setting::List, std::move(text), line, std::move(items)};
}

Settings distinct(Settings settings) {
  StringMap<size_t> places;
  Settings result;
  for (Setting &setting : settings) {
    auto [place, isNew] = places.try_emplace(setting.key, result.size());
    if (isNew) {
      result.push_back(std::move(setting));
    } else if (Setting &before = result[place->second]; before.text != setting.text) {
      setting.otherLine = before.line;
      before = std::move(setting);
    }
  }
  return result;
}

static std::string joined(const std::string &prefix, StringRef key) {
  return prefix.empty() ? key.str() : prefix + "." + key.str();
}

//===--- TOML --------------------------------------------------------------------===//

static std::string textOf(const toml::node &node) {
  if (node.is_string())
    return **node.as_string();
  std::ostringstream text;
  if (auto number = node.value_exact<double>()) {
    char digits[32];
    return std::string(digits, std::to_chars(digits, std::end(digits), *number).ptr);
  }
  node.visit([&](auto &value) { text << value; });
  return text.str();
}

static void addToml(Settings &settings, const std::string &prefix, const toml::table &table) {
  for (auto &&[name, node] : table) {
    std::string key = joined(prefix, StringRef(name.data(), name.length()));
    unsigned line = node.source().begin.line;
    if (const toml::table *inner = node.as_table(); inner && !inner->empty()) {
      addToml(settings, key, *inner);
    } else if (const toml::array *array = node.as_array()) {
      std::vector<std::string> items;
      for (auto &&item : *array)
        items.push_back(textOf(item));
      settings.push_back(listOf(key, items, line));
    } else {
      settings.push_back(settingOf(key, inner ? "{}" : textOf(node), line, node.is_string()));
    }
  }
}

Expected<Settings> readToml(StringRef text, StringRef path) {
  if (unsigned line = lineOfDeepKey(text))
    return failAt(path, line, "a key has more than 64 parts between dots");
  toml::parse_result parsed = toml::parse(std::string_view(text), std::string_view(path));
  if (!parsed)
    return failAt(path, parsed.error().source().begin.line,
                  "not TOML: " + std::string(parsed.error().description()));
  Settings settings;
  addToml(settings, "", parsed);
  // Tables sort their keys.
  stable_sort(settings, [](const Setting &a, const Setting &b) { return a.line < b.line; });
  return settings;
}

//===--- JSON --------------------------------------------------------------------===//

namespace {
/// Walks through text that is known to be JSON; LLVM's parser forgets lines and the order of keys.
class JsonWalk {
public:
  JsonWalk(StringRef text, Settings &settings) : rest(text), settings(settings) {}

  /// One value; `items` gets the text of a scalar instead of `settings`, if given.
  void value(const std::string &key, std::vector<std::string> *items = nullptr) {
    space();
    unsigned at = line;
    if (rest.starts_with("{")) {
      if (bool some = object(key, items); !some && !items)
        settings.push_back(settingOf(key, "{}", at, true));
      return;
    }
    if (rest.consume_front("[")) {
      std::vector<std::string> list;
      for (space(); !rest.consume_front("]"); space(), rest.consume_front(","))
        value(key, &list);
      Setting setting = listOf(key, std::move(list), at);
      if (items)
        items->push_back(setting.text);
      else
        settings.push_back(std::move(setting));
      return;
    }
    bool quoted = rest.starts_with("\"");
    std::string text = quoted ? string() : word();
    if (items)
      items->push_back(text);
    else
      settings.push_back(settingOf(key, text, at, quoted));
  }

private:
  bool object(const std::string &key, std::vector<std::string> *items) {
    rest = rest.drop_front();
    bool some = false;
    for (space(); !rest.consume_front("}"); space(), rest.consume_front(",")) {
      space();
      std::string name = string();
      space();
      rest.consume_front(":");
      // Objects in lists are not settings of any system here; their values are the list's.
      value(joined(key, name), items);
      some = true;
      space();
    }
    return some;
  }

  void space() {
    while (!rest.empty() && isSpace(rest.front())) {
      line += rest.front() == '\n';
      rest = rest.drop_front();
    }
  }

  std::string string() {
    size_t end = 1;
    while (end < rest.size() && rest[end] != '"')
      end += rest[end] == '\\' ? 2 : 1;
    StringRef quoted = rest.take_front(end + 1);
    rest = rest.drop_front(std::min(rest.size(), end + 1));
    Expected<json::Value> value = json::parse(quoted);
    if (!value) {
      consumeError(value.takeError());
      return quoted.str();
    }
    return value->getAsString().value_or(quoted).str();
  }

  std::string word() {
    size_t end = std::max<size_t>(1, rest.find_first_of(",]} \t\r\n"));
    StringRef word = rest.take_front(end);
    rest = rest.drop_front(word.size());
    return word.str();
  }

  StringRef rest;
  Settings &settings;
  unsigned line = 1;
};
} // namespace

Expected<Settings> readJson(StringRef text, StringRef path) {
  if (beyondDepth(text, mostDepth) != StringRef::npos)
    return failAt(path, 0, "not settings: arrays and objects are nested more than " + Twine(mostDepth) + " deep");
  Expected<json::Value> parsed = json::parse(text);
  if (!parsed)
    return failAt(path, 0, "not JSON: " + toString(parsed.takeError()));
  if (!parsed->getAsObject())
    return failAt(path, 1, "not settings: it must be an object { .. }");
  Settings settings;
  if (!parsed->getAsObject()->empty())
    JsonWalk(text, settings).value("");
  return distinct(std::move(settings));
}

//===--- YAML --------------------------------------------------------------------===//

namespace {
class YamlWalk {
public:
  YamlWalk(StringRef text, StringRef path) : path(path), stream(text, manager, /*ShowColors=*/false) {
    manager.setDiagHandler(
        [](const SMDiagnostic &diagnostic, void *context) {
          auto &walk = *static_cast<YamlWalk *>(context);
          walk.fail(diagnostic.getLineNo(), "not YAML: " + diagnostic.getMessage());
        },
        this);
  }

  Expected<Settings> read() {
    auto document = stream.begin();
    if (document != stream.end()) {
      if (yaml::Node *root = document->getRoot()) {
        if (isa<yaml::MappingNode>(root))
          walk(root, "", 0);
        else if (!isa<yaml::NullNode>(root))
          fail(lineOf(root), "not settings: it must be a mapping of keys to values");
      }
      if (error.empty() && !stream.failed() && ++document != stream.end())
        fail(0, "it has several documents; keep the one with the settings");
    }
    if (error.empty() && stream.failed())
      fail(0, "not YAML");
    if (!error.empty())
      return failAt(path, line, error);
    return distinct(std::move(settings));
  }

private:
  unsigned lineOf(yaml::Node *node) {
    SMLoc at = node->getSourceRange().Start;
    return at.isValid() && manager.FindBufferContainingLoc(at) ? manager.FindLineNumber(at) : 0;
  }

  void fail(int at, const Twine &why) {
    if (!error.empty())
      return;
    line = unsigned(std::max(0, at));
    error = why.str();
  }

  /// Whether `node` is a value in itself, and its text.
  bool isScalar(yaml::Node *node, std::string &text, bool &quoted) {
    quoted = false;
    if (auto *scalar = dyn_cast<yaml::ScalarNode>(node)) {
      SmallString<64> storage;
      quoted = scalar->getRawValue().starts_with("'") || scalar->getRawValue().starts_with("\"");
      text = scalar->getValue(storage).str();
    } else if (auto *block = dyn_cast<yaml::BlockScalarNode>(node)) {
      quoted = true;
      text = block->getValue().str();
    } else if (isa<yaml::NullNode>(node)) {
      text = "null";
    } else {
      return false;
    }
    return true;
  }

  void walk(yaml::Node *node, const std::string &key, unsigned depth,
            std::vector<std::string> *items = nullptr) {
    if (!error.empty() || stream.failed())
      return;
    if (depth > mostDepth)
      return fail(lineOf(node), "it is nested more than " + Twine(mostDepth) + " deep");
    std::string text;
    bool quoted = false;
    if (isScalar(node, text, quoted)) {
      if (items)
        items->push_back(text);
      else
        settings.push_back(settingOf(key, text, lineOf(node), quoted));
    } else if (auto *mapping = dyn_cast<yaml::MappingNode>(node)) {
      size_t before = settings.size();
      for (yaml::KeyValueNode &entry : *mapping) {
        yaml::Node *name = entry.getKey();
        if (!name || stream.failed() || !error.empty())
          return;
        if (!isScalar(name, text, quoted))
          return fail(lineOf(name), "keys must be names");
        unsigned at = lineOf(name);
        yaml::Node *value = entry.getValue();
        if (!value || stream.failed())
          return;
        size_t had = settings.size();
        walk(value, joined(key, text), depth + 1, items);
        // Null values and empty collections have no place of their own.
        for (Setting &setting : MutableArrayRef(settings).drop_front(std::min(had, settings.size())))
          setting.line = setting.line ? setting.line : at;
      }
      if (!items && settings.size() == before && depth)
        settings.push_back(settingOf(key, "{}", lineOf(node), true));
    } else if (auto *sequence = dyn_cast<yaml::SequenceNode>(node)) {
      std::vector<std::string> list;
      unsigned at = lineOf(node);
      for (yaml::Node &item : *sequence) {
        if (stream.failed() || !error.empty())
          return;
        walk(&item, key, depth + 1, &list);
      }
      Setting setting = listOf(key, std::move(list), at);
      if (items)
        items->push_back(setting.text);
      else
        settings.push_back(std::move(setting));
    } else {
      fail(lineOf(node), "anchors and aliases (*) are not understood; write the value");
    }
  }

  StringRef path;
  SourceMgr manager;
  yaml::Stream stream;
  Settings settings;
  std::string error;
  unsigned line = 0;
};
} // namespace

Expected<Settings> readYaml(StringRef text, StringRef path) {
  if (beyondDepth(text, mostDepth) != StringRef::npos)
    return failAt(path, 0, "not settings: collections are nested more than " + Twine(mostDepth) + " deep");
  return YamlWalk(text, path).read();
}

} // namespace meshwright::convert
