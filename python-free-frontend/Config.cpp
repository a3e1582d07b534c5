//===- Config.cpp - a config.json with every key accounted for ---------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Config.h"
#include "meshwright/InputFile.h"
#include "meshwright/Json.h"

#include "meshwright/runtime/NonFinite.h"
#include "meshwright/runtime/Suggestion.h"

#include "mlir/IR/Location.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Regex.h"

#include <charconv>
#include <cmath>
#include <limits>

using namespace mlir;
using namespace meshwright::frontend;

/// Calls `found(dotted key, line, column)` for each key of the JSON `text`, which is valid but for
/// numbers that are not finite, and `nonFinite(dotted key, number)` for each of these.
static void forEachKey(StringRef text,
                       llvm::function_ref<void(const std::string &, unsigned, unsigned)> found,
                       llvm::function_ref<void(const std::string &, StringRef)> nonFinite) {
  // The keys on the way to here; an array is one step without a name.
  SmallVector<std::string> path;
  unsigned line = 1;
  size_t lineStart = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (c == '\n') {
      ++line;
      lineStart = i + 1;
    } else if (c == '{' || c == '[') {
      path.push_back("");
    } else if (c == '}' || c == ']') {
      path.pop_back();
    } else if (StringRef word = meshwright::nonFiniteAt(text, i); !word.empty()) {
      // A list is as its key.
      auto keys = ArrayRef(path).take_while([](const std::string &key) { return !key.empty(); });
      nonFinite(llvm::join(keys, "."), word);
      i += word.size() - 1;
    } else if (c == '"') {
      size_t begin = i++;
      while (text[i] != '"')
        i += text[i] == '\\' ? 2 : 1;
      size_t next = text.find_first_not_of(" \t\r\n", i + 1);
      if (next == StringRef::npos || text[next] != ':' || path.empty())
        continue;
      auto key = llvm::json::parse(text.slice(begin, i + 1));
      if (!key) {
        llvm::consumeError(key.takeError());
        continue;
      }
      path.back() = key->getAsString().value_or("").str();
      found(llvm::join(path, "."), line, unsigned(begin - lineStart + 1));
    }
  }
}

FailureOr<Config> Config::read(StringRef path, MLIRContext *context) {
  auto at = [&](unsigned line, unsigned column) {
    return FileLineColLoc::get(context, path, line, column);
  };
  auto buffer = readInput(path, configInput, /*isText=*/true);
  if (!buffer)
    return emitError(at(0, 0)) << "cannot read the model description '" << path
                               << "': " << llvm::toString(buffer.takeError())
                               << "; give the path of a config.json or of an .mlir file";

  auto state = std::make_shared<State>();
  state->path = path.str();
  StringRef content = (*buffer)->getBuffer();
  if (content.starts_with("\xFE\xFF") || content.starts_with("\xFF\xFE"))
    return emitError(at(1, 1)) << "this is text in UTF-16, but JSON is in UTF-8; save it as UTF-8";
  content.consume_front("\xEF\xBB\xBF"); // a byte order mark, as some editors write it
  state->text = content.str();
  state->context = context;
  // The parser recurses: what no configuration nests to would end the process.
  if (size_t deep = beyondDepth(state->text); deep != StringRef::npos) {
    StringRef before = StringRef(state->text).take_front(deep);
    unsigned line = before.count('\n') + 1, column = deep - (before.rfind('\n') + 1) + 1;
    return emitError(FileLineColLoc::get(context, path, line, column))
           << "arrays and objects are nested more than " << jsonDepth
           << " deep, which no model description needs; check the file";
  }
  auto root = llvm::json::parse(meshwright::withoutNonFinite(state->text));
  if (!root) {
    // The parser reports "[line:column, byte=n]: what".
    std::string message = llvm::toString(root.takeError());
    SmallVector<StringRef> parts;
    unsigned line = 1, column = 1;
    StringRef what = message;
    if (llvm::Regex("^\\[([0-9]+):([0-9]+), byte=[0-9]+\\]: (.*)$").match(message, &parts)) {
      (void)parts[1].getAsInteger(10, line);
      (void)parts[2].getAsInteger(10, column);
      ++column; // it counts columns from 0
      what = parts[3];
    }
    StringRef text = StringRef(state->text).ltrim();
    // An alias is "#name = .."; a heading of another text is not.
    StringRef first = text.split('\n').first;
    bool isIr = text.starts_with("module") || text.starts_with("//") ||
                (first.starts_with("#") && first.drop_front().split(' ').second.starts_with("="));
    return emitError(at(line, column))
           << "this is not valid JSON: " << what << "; "
           << (isIr ? "it looks like IR, which is read from files whose names end in .mlir; rename "
                      "the file"
               : text.starts_with("version https://git-lfs.github.com/spec/")
                   ? "it is a pointer of git-LFS to the file; fetch that with 'git lfs pull'"
               : text.starts_with("{") ? "the file may be truncated, fetch or save it again"
                                       : "a config.json begins with {; name the file that describes a model");
  }
  state->root = std::move(*root);
  const llvm::json::Object *members = state->root.getAsObject();
  if (!members)
    return emitError(at(1, 1)) << "this is no JSON object; a model description is one, with a "
                                  "\"model_type\" key";
  std::string again;
  auto addKey = [&](const std::string &key, unsigned line, unsigned column) {
    // Inside arrays several objects may have the same keys.
    if (!state->positions.try_emplace(key, line, column).second &&
        !StringRef(key).starts_with(".") && !StringRef(key).contains("..") && again.empty()) {
      again = key;
      state->positions[key] = {line, column};
    }
  };
  forEachKey(state->text, addKey, [&](const std::string &key, StringRef number) {
    state->nonFinite.try_emplace(key, number.str());
  });
  Config config(std::move(state), members, "");
  if (!again.empty()) {
    config.error(again) << "key \"" << again << "\" is given twice; keep one";
    return failure();
  }
  return config;
}

Location Config::location(StringRef key) const {
  auto position = state->positions.lookup(prefix + key.str());
  return FileLineColLoc::get(state->context, state->path, position.first, position.second);
}

InFlightDiagnostic Config::error(StringRef key) {
  state->failed = true;
  auto position = llvm::cast<FileLineColLoc>(location(key));
  InFlightDiagnostic diagnostic = emitError(position);
  // Where there is a line, the file is named with it.
  if (!position.getLine())
    diagnostic << "'" << state->path << "': ";
  return diagnostic;
}

bool Config::has(StringRef key) const {
  const llvm::json::Value *value = lookup(key);
  return value && value->kind() != llvm::json::Value::Null;
}

const llvm::json::Value *Config::lookup(StringRef key) const {
  const llvm::json::Object *object = members;
  while (object) {
    if (const llvm::json::Value *value = object->get(key))
      return value;
    auto [first, rest] = key.split('.');
    object = rest.empty() ? nullptr : object->getObject(first);
    key = rest;
  }
  return nullptr;
}

void Config::alias(StringRef key, StringRef alias) {
  const llvm::json::Value *one = lookup(key), *other = lookup(alias);
  if (one && other && *one != *other) {
    error(alias) << "\"" << alias << "\" is another name of \"" << key
                 << "\", but their values differ; keep one";
    used.insert(alias);
  }
  aliases[key] = alias.str();
}

void Config::assume(StringRef key, bool value) {
  assumed.try_emplace(key.str(), value);
}

StringRef Config::nonFinite(StringRef key) const {
  auto found = state->nonFinite.find(prefix + key.str());
  return found == state->nonFinite.end() ? StringRef() : StringRef(found->second);
}

const llvm::json::Value *Config::find(StringRef key) {
  used.insert(key);
  StringRef name = key;
  if (auto alias = aliases.find(key); alias != aliases.end()) {
    used.insert(alias->second);
    if (!lookup(key))
      name = alias->second;
  }
  StringRef number = nonFinite(name);
  if (const llvm::json::Value *value = number.empty() ? lookup(name) : nullptr)
    return value;
  if (auto value = assumed.find(key.str()); value != assumed.end())
    return &value->second;
  if (number.empty())
    return nullptr;
  if (wrong.insert(name).second)
    error(name) << "\"" << prefix << name << "\" is or has " << number
                << ", but the model needs finite numbers there; write one";
  return nullptr;
}

/// `value` as JSON text, short enough for a message.
static std::string show(const llvm::json::Value &value) {
  std::string text;
  llvm::raw_string_ostream(text) << value;
  // As short as says it exactly: 0.3, not 0.29999999999999999.
  if (value.kind() == llvm::json::Value::Number && !value.getAsInteger()) {
    char digits[64];
    text.assign(digits, std::to_chars(digits, std::end(digits), *value.getAsNumber()).ptr);
  }
  return text.size() <= 60 ? text : text.substr(0, 57) + "...";
}

void Config::mismatch(StringRef key, const llvm::json::Value &value, StringRef wanted) {
  // A key that says several things is read as often.
  if (wrong.insert(key).second)
    error(key) << "\"" << prefix << key << "\" must be " << wanted << ", found " << show(value);
}

int64_t Config::integer(StringRef key, int64_t otherwise, int64_t least, int64_t most) {
  const llvm::json::Value *value = find(key);
  if (!value)
    return otherwise;
  std::optional<int64_t> number = value->getAsInteger();
  if (number && *number >= least && *number <= most)
    return *number;
  mismatch(key, *value,
           "an integer from " + std::to_string(least) + " to " + std::to_string(most));
  return otherwise;
}

int64_t Config::size(StringRef key, int64_t otherwise, int64_t most) {
  return integer(key, otherwise, 1, most);
}
int64_t Config::count(StringRef key, int64_t otherwise) {
  return integer(key, otherwise, 0, largestSize);
}
int64_t Config::index(StringRef key, int64_t otherwise) {
  return integer(key, otherwise, -1, largestSize);
}

std::optional<int64_t> Config::optionalSize(StringRef key, std::optional<int64_t> otherwise) {
  const llvm::json::Value *value = find(key);
  if (!value)
    return otherwise;
  if (value->kind() == llvm::json::Value::Null)
    return {};
  return integer(key, 1, 1, largestSize);
}

int64_t Config::token(StringRef key, int64_t vocabulary, std::optional<int64_t> otherwise) {
  const llvm::json::Value *value = find(key);
  if (!value && otherwise) {
    if (*otherwise >= vocabulary && !failed())
      error("") << "without \"" << key << "\" it is " << *otherwise
                << ", which is no token of the vocabulary, below " << vocabulary << "; set \""
                << key << "\" to null or to a token";
    return *otherwise;
  }
  if (!value || value->kind() == llvm::json::Value::Null)
    return -1;
  std::optional<int64_t> number = value->getAsInteger();
  // After an error the vocabulary may be another one.
  if (number && (failed() || (*number >= -vocabulary && *number < vocabulary)))
    return *number < 0 ? *number + vocabulary : *number;
  mismatch(key, *value, "null or a token of the vocabulary, below " + std::to_string(vocabulary));
  return -1;
}

std::optional<std::vector<int64_t>> Config::counts(StringRef key) {
  const llvm::json::Value *value = find(key);
  if (!value || value->kind() == llvm::json::Value::Null)
    return {};
  std::vector<int64_t> numbers;
  const llvm::json::Array *array = value->getAsArray();
  bool counts = array && llvm::all_of(*array, [&](const llvm::json::Value &element) {
                  numbers.push_back(element.getAsInteger().value_or(-1));
                  return numbers.back() >= 0;
                });
  if (counts)
    return numbers;
  mismatch(key, *value, "an array of integers from 0");
  return {};
}

std::optional<std::vector<int64_t>> Config::listedCounts(StringRef key) {
  const llvm::json::Value *value = find(key);
  std::optional<StringRef> text = value ? value->getAsString() : std::nullopt;
  if (!text)
    return counts(key);
  std::vector<int64_t> numbers;
  SmallVector<StringRef> words;
  text->split(words, ',', -1, /*KeepEmpty=*/false);
  for (StringRef word : words)
    if (word.trim().getAsInteger(10, numbers.emplace_back()) || numbers.back() < 0) {
      mismatch(key, *value, "an array of integers from 0, or a text of these with commas between");
      return {};
    }
  return numbers;
}

std::vector<double> Config::positives(StringRef key, size_t size) {
  const llvm::json::Value *value = find(key);
  std::vector<double> numbers;
  if (const llvm::json::Array *array = value ? value->getAsArray() : nullptr)
    for (const llvm::json::Value &element : *array)
      numbers.push_back(element.getAsNumber().value_or(0));
  if (numbers.size() == size &&
      llvm::all_of(numbers, [](double number) { return number > 0 && std::isfinite(number); }))
    return numbers;
  if (value)
    mismatch(key, *value, "an array of " + std::to_string(size) + " numbers above 0");
  return std::vector<double>(size, 1.0);
}

std::pair<double, double> Config::range(StringRef key, std::pair<double, double> otherwise) {
  used.insert(key);
  const llvm::json::Value *value = lookup(key);
  if (!value || value->kind() == llvm::json::Value::Null)
    return otherwise;
  StringRef number = nonFinite(key);
  if (const llvm::json::Array *array = value->getAsArray(); array && array->size() == 2) {
    double first = (*array)[0].getAsNumber().value_or(-1);
    // The text that is parsed has 0 where the file has Infinity.
    double second = (*array)[1].getAsNumber().value_or(-1);
    const llvm::json::Object *written = (*array)[1].getAsObject();
    if ((number == "Infinity" && second == 0) ||
        (written && written->getString("__float__") == std::optional<StringRef>("Infinity")))
      second = INFINITY;
    if (first >= 0 && first <= second && (number.empty() || (number == "Infinity" && std::isinf(second))))
      return {first, second};
  }
  if (number.empty())
    mismatch(key, *value, "an array of two numbers from 0 on that do not decrease");
  else
    error(key) << "\"" << prefix << key << "\" has " << number
               << ", which only its second number may be, as Infinity; write two numbers that do not decrease";
  return otherwise;
}

std::optional<double> Config::optionalPositive(StringRef key, std::optional<double> otherwise) {
  const llvm::json::Value *value = find(key);
  if (!value)
    return otherwise;
  if (value->kind() == llvm::json::Value::Null)
    return {};
  return positive(key, 1.0);
}

double Config::positive(StringRef key, double otherwise) {
  const llvm::json::Value *value = find(key);
  if (!value)
    return otherwise;
  std::optional<double> number = value->getAsNumber();
  if (number && *number > 0 && std::isfinite(*number))
    return *number;
  mismatch(key, *value, "a number above 0");
  return otherwise;
}

double Config::probability(StringRef key, double otherwise) {
  const llvm::json::Value *value = find(key);
  if (!value)
    return otherwise;
  std::optional<double> number = value->getAsNumber();
  if (number && *number >= 0 && *number < 1)
    return *number;
  mismatch(key, *value, "a probability in [0, 1)");
  return otherwise;
}

bool Config::flag(StringRef key, bool otherwise) {
  const llvm::json::Value *value = find(key);
  if (!value)
    return otherwise;
  if (std::optional<bool> flag = value->getAsBoolean())
    return *flag;
  mismatch(key, *value, "true or false");
  return otherwise;
}

std::string Config::text(StringRef key, StringRef otherwise) {
  const llvm::json::Value *value = find(key);
  if (!value)
    return otherwise.str();
  if (std::optional<StringRef> text = value->getAsString())
    return text->str();
  mismatch(key, *value, "a string");
  return otherwise.str();
}

std::optional<std::vector<std::string>> Config::texts(StringRef key) {
  const llvm::json::Value *value = find(key);
  if (!value || value->kind() == llvm::json::Value::Null)
    return {};
  std::vector<std::string> texts;
  const llvm::json::Array *array = value->getAsArray();
  bool strings = array && llvm::all_of(*array, [&](const llvm::json::Value &element) {
                   texts.push_back(element.getAsString().value_or("").str());
                   return element.getAsString().has_value();
                 });
  if (strings)
    return texts;
  mismatch(key, *value, "an array of strings");
  return {};
}

std::optional<Config> Config::object(StringRef key) {
  const llvm::json::Value *value = find(key);
  if (!value || value->kind() == llvm::json::Value::Null)
    return {};
  if (const llvm::json::Object *nested = value->getAsObject())
    return Config(state, nested, prefix + key.str() + ".");
  mismatch(key, *value, "an object");
  return {};
}

/// Whether a key that no table knows switches nothing on: models that lack the key compute the same.
/// False and 0 may switch off what every model has, such as rotary positions.
static bool switchesNothingOn(StringRef key, const llvm::json::Value &value) {
  static constexpr StringRef parts[] = {"causal",  "rope",   "rotary", "norm",      "layernorm",
                                        "rmsnorm", "scale",  "scaled", "normalize", "normalized",
                                        "gate",    "gated",  "glu",    "residual",  "bidirectional"};
  using Kind = llvm::json::Value::Kind;
  bool isOff = (value.kind() == Kind::Boolean && !*value.getAsBoolean()) ||
               (value.kind() == Kind::Number && *value.getAsNumber() == 0);
  if (isOff) {
    SmallVector<StringRef> words;
    key.split(words, '_');
    return llvm::none_of(words, [](StringRef word) { return llvm::is_contained(parts, word); });
  }
  return value.kind() == Kind::Null || (value.getAsString() && value.getAsString()->empty()) ||
         (value.getAsArray() && value.getAsArray()->empty()) ||
         (value.getAsObject() && value.getAsObject()->empty());
}

void Config::finish(StringRef family, ArrayRef<StringRef> ignored, ArrayRef<FixedKey> fixed) {
  // Of objects of which keys are known, the keys inside.
  std::vector<std::string> keys;
  auto isOpened = [&](StringRef object) {
    auto isInside = [&](StringRef key) { return key.consume_front(object) && key.starts_with("."); };
    return llvm::any_of(used.keys(), isInside) || llvm::any_of(ignored, isInside) ||
           llvm::any_of(fixed, [&](const FixedKey &rule) { return isInside(rule.key); });
  };
  auto collect = [&](auto &self, const llvm::json::Object &object, const std::string &before) -> void {
    for (const auto &[name, value] : object) {
      std::string key = before + StringRef(name).str();
      if (!isOpened(key) || value.kind() == llvm::json::Value::Null)
        keys.push_back(key);
      else if (const llvm::json::Object *inside = value.getAsObject())
        self(self, *inside, key + ".");
      else
        mismatch(key, value, "an object");
    }
  };
  collect(collect, *members, "");
  // In the order of the file, so that messages are too.
  llvm::sort(keys, [&](const std::string &a, const std::string &b) {
    return state->positions.lookup(prefix + a) < state->positions.lookup(prefix + b);
  });
  for (StringRef key : keys) {
    // What all objects may have is known by its name inside, too.
    StringRef name = key.rsplit('.').second.empty() ? key : key.rsplit('.').second;
    if (used.contains(key) || llvm::is_contained(ignored, key) || llvm::is_contained(ignored, name))
      continue;
    const llvm::json::Value &value = *lookup(key);
    auto ruleOf = [&](StringRef key) {
      return llvm::find_if(fixed, [&](const FixedKey &candidate) { return candidate.key == key; });
    };
    const FixedKey *rule = ruleOf(key);
    if (rule == fixed.end())
      rule = ruleOf(name);
    StringRef number = nonFinite(key);
    if (rule != fixed.end()) {
      bool fits = number.empty() && llvm::any_of(rule->allowed, [&](StringRef text) {
        auto allowed = llvm::json::parse(text);
        return allowed ? *allowed == value : (llvm::consumeError(allowed.takeError()), false);
      });
      if (!fits)
        error(key) << "\"" << prefix << key << "\" is "
                   << (number.empty() ? show(value) : number.str()) << ": " << rule->reason
                   << ", which is not supported for " << family << "; what works is "
                   << llvm::join(rule->allowed, " or ");
      continue;
    }
    // A misspelt key is the likeliest unknown one.
    std::string near = nearestName(
        key, llvm::map_to_vector(used, [](const auto &entry) { return entry.getKey().str(); }));
    if (near.empty() && number.empty() && switchesNothingOn(name, value))
      continue;
    InFlightDiagnostic diagnostic = error(key);
    diagnostic << "key \"" << prefix << key << "\" is not known for " << family
               << " and might change what the model computes; ";
    if (!near.empty())
      diagnostic << "did you mean \"" << prefix << near << "\"? Otherwise ";
    diagnostic << "remove it if it does not, or describe the model in an .mlir file "
                  "(docs/models.md lists the known keys)";
  }
}
