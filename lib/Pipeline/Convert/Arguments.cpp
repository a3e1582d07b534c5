//===- Arguments.cpp - command lines and shell scripts as settings -----------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// Launch scripts collect their arguments in arrays, in quoted text or behind the command,
// and write sizes as variables. Each `--key` counts where it stands, so that it does not
// matter which of these a script uses. Nothing is executed: conditions are not evaluated,
// and a variable that a script sets to several values has none.
//
//===----------------------------------------------------------------------===//
#include "Settings.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"

#include <optional>

using namespace llvm;

namespace meshwright::convert {

/// Words end there.
static constexpr size_t longest = 1 << 16;
/// Variables with longer values, which no setting has, are not replaced: scripts could double them line by line.
static constexpr size_t longestVariable = 256;

namespace {
/// Integers, + - * / % and parentheses, as in $(( )).
class Arithmetic {
public:
  explicit Arithmetic(StringRef text) : rest(text) {}

  std::optional<int64_t> value() {
    std::optional<int64_t> result = sum(0);
    return rest.trim().empty() ? result : std::nullopt;
  }

private:
  using Number = std::optional<int64_t>;

  Number sum(unsigned depth) {
    Number left = product(depth);
    for (rest = rest.ltrim(); left && (rest.starts_with("+") || rest.starts_with("-")); rest = rest.ltrim()) {
      bool minus = rest.front() == '-';
      rest = rest.drop_front();
      Number right = product(depth);
      int64_t result = 0;
      if (!right || (minus ? __builtin_sub_overflow(*left, *right, &result)
                           : __builtin_add_overflow(*left, *right, &result)))
        return std::nullopt;
      left = result;
    }
    return left;
  }

  Number product(unsigned depth) {
    Number left = atom(depth);
    for (rest = rest.ltrim(); left && !rest.empty() && StringRef("*/%").contains(rest.front());
         rest = rest.ltrim()) {
      char op = rest.front();
      rest = rest.drop_front();
      Number right = atom(depth);
      int64_t result = 0;
      if (!right || (op != '*' && (*right == 0 || *right == -1)) ||
          (op == '*' && __builtin_mul_overflow(*left, *right, &result)))
        return std::nullopt;
      left = op == '*' ? result : op == '/' ? *left / *right : *left % *right;
    }
    return left;
  }

  Number atom(unsigned depth) {
    rest = rest.ltrim();
    if (rest.consume_front("(")) {
      Number inside = depth < 32 ? sum(depth + 1) : std::nullopt;
      rest = rest.ltrim();
      return rest.consume_front(")") ? inside : std::nullopt;
    }
    int64_t number = 0;
    StringRef digits = rest.take_while([](char c) { return isDigit(c); });
    if (digits.empty() || digits.getAsInteger(10, number))
      return std::nullopt;
    rest = rest.drop_front(digits.size());
    return number;
  }

  StringRef rest;
};

class Script {
public:
  explicit Script(StringRef text) : text(text) {}
  Settings read();

private:
  bool at(StringRef what) const { return text.substr(next).starts_with(what); }
  void step() { line += text[next++] == '\n'; }

  /// One word, from its first character on; an assignment sets its variable.
  void word();
  /// Appends a `$..` to `out`.
  void expand(std::string &out);
  std::string valueOf(StringRef name, StringRef otherwise, StringRef written) const;
  /// The text up to the bracket that closes what has just been opened.
  StringRef inside(char open, char close);
  void assign(StringRef name, std::string value, bool appended);

  /// A word of a command line or of a variable with arguments.
  void argument(StringRef word, unsigned at, bool quoted);
  void arguments(StringRef words, unsigned at);
  void endOption();

  StringRef text;
  size_t next = 0;
  unsigned line = 1;
  bool inArray = false;
  std::string array; ///< the variable of the array that the words belong to
  StringMap<std::string> variables;
  StringMap<bool> undecided; ///< variables of several values
  Settings settings;
  std::optional<Setting> option;
  bool isQuoted = false; ///< whether the option's only value is
};
} // namespace

static bool isNameStart(char c) { return isAlpha(c) || c == '_'; }
static bool isName(char c) { return isAlnum(c) || c == '_'; }

/// Whether text is arguments, which count where they are written.
static bool isArguments(StringRef text) { return text.ltrim().starts_with("--"); }

/// Whether a variable's value is arguments or a command with some.
static bool hasArguments(StringRef value) {
  for (size_t at = value.find("--"); at != StringRef::npos; at = value.find("--", at + 1))
    if ((at == 0 || isSpace(value[at - 1])) && at + 2 < value.size() && isAlpha(value[at + 2]))
      return true;
  return isArguments(value);
}

void Script::endOption() {
  if (!option)
    return;
  Setting &made = *option;
  if (made.items.empty())
    settings.push_back({made.key, Setting::Switch, "true", made.line});
  else if (made.items.size() == 1)
    settings.push_back(settingOf(made.key, made.items[0], made.line, isQuoted));
  else
    settings.push_back(listOf(made.key, made.items, made.line));
  option.reset();
}

void Script::argument(StringRef word, unsigned at, bool quoted) {
  if (word.size() > 2 && word.starts_with("--") && isAlpha(word[2])) {
    endOption();
    auto [name, value] = word.drop_front(2).split('=');
    std::string key = name.str();
    std::replace(key.begin(), key.end(), '_', '-');
    option = Setting{std::move(key), Setting::Switch, "", at};
    isQuoted = false;
    if (name.size() + 2 < word.size())
      option->items.push_back(value.str());
    return;
  }
  // The program that is started is no value of the launcher's last argument.
  if (!option || word.ends_with(".py")) {
    endOption();
    return;
  }
  if (!word.empty() || quoted)
    option->items.push_back(word.str());
}

void Script::arguments(StringRef words, unsigned at) {
  while (!words.empty()) {
    size_t end = std::min(words.find_first_of(" \t\r\n"), words.size());
    StringRef word = words.take_front(end);
    if (word.size() > 1 && (word.front() == '\'' || word.front() == '"') && word.back() == word.front())
      word = word.drop_front().drop_back();
    if (!word.empty())
      argument(word, at, false);
    if (end < words.size())
      at += words[end] == '\n';
    words = words.drop_front(std::min(words.size(), end + 1));
  }
}

StringRef Script::inside(char open, char close) {
  size_t begin = next;
  for (unsigned depth = 1; next < text.size(); step()) {
    depth += text[next] == open;
    depth -= text[next] == close;
    if (depth == 0) {
      StringRef found = text.slice(begin, next);
      step();
      return found;
    }
  }
  return text.drop_front(begin);
}

std::string Script::valueOf(StringRef name, StringRef otherwise, StringRef written) const {
  auto found = variables.find(name);
  if (undecided.count(name) || (found == variables.end() && otherwise.data() == nullptr))
    return written.str();
  if (found == variables.end()) {
    if (otherwise.size() > 1 && (otherwise.front() == '"' || otherwise.front() == '\'') &&
        otherwise.back() == otherwise.front())
      otherwise = otherwise.drop_front().drop_back();
    return otherwise.str();
  }
  if (found->second.size() > longestVariable)
    return written.str();
  return isArguments(found->second) ? "" : found->second;
}

void Script::expand(std::string &out) {
  size_t begin = next;
  step();
  auto written = [&] { return text.slice(begin, next); };
  if (at("((")) {
    next += 2;
    StringRef inner = inside('(', ')');
    if (at(")"))
      step();
    std::string expression;
    for (StringRef rest = inner; !rest.empty();) {
      if (rest.consume_front("$")) {
        rest.consume_front("{");
        continue;
      }
      if (isNameStart(rest.front())) {
        StringRef name = rest.take_while(isName);
        rest = rest.drop_front(name.size());
        rest.consume_front("}");
        expression += valueOf(name, StringRef(), "?");
      } else {
        expression += rest.front();
        rest = rest.drop_front();
      }
      if (expression.size() > longest)
        break;
    }
    std::optional<int64_t> value = Arithmetic(expression).value();
    out += value ? std::to_string(*value) : written().str();
  } else if (at("(")) {
    step();
    inside('(', ')');
    out += written();
  } else if (at("{")) {
    step();
    StringRef inner = inside('{', '}');
    StringRef name = inner.take_while(isName), rest = inner.drop_front(name.size());
    StringRef otherwise;
    if (!rest.consume_front("[@]"))
      rest.consume_front("[*]");
    if (rest.consume_front(":-") || rest.consume_front(":=") || rest.consume_front("-") || rest.consume_front("="))
      otherwise = rest.empty() ? StringRef("") : rest;
    else if (!rest.empty())
      name = ""; // another operation of the shell
    out += name.empty() ? written().str() : valueOf(name, otherwise, written());
  } else if (next < text.size() && isName(text[next])) {
    StringRef name = text.substr(next).take_while(isName);
    next += name.size();
    out += valueOf(name, StringRef(), written());
  } else {
    out += '$';
  }
}

void Script::assign(StringRef name, std::string value, bool appended) {
  if (hasArguments(value)) {
    variables[name] = "--";
    return;
  }
  auto [found, isNew] = variables.try_emplace(name, value);
  if (isNew)
    return;
  if (appended && found->second.size() <= longestVariable)
    found->second += value;
  else if (found->second != value)
    undecided[name] = true;
}

void Script::word() {
  unsigned begin = line;
  std::string made, name;
  bool quoted = false, assigns = false, appends = false;
  while (next < text.size() && made.size() < longest) {
    char c = text[next];
    if (isSpace(c) || StringRef(";&|()<>`").contains(c))
      break;
    if (c == '\\') {
      step();
      if (next < text.size()) {
        if (text[next] == '\n')
          break;
        made += text[next];
        step();
      }
    } else if (c == '\'') {
      quoted = true;
      for (step(); next < text.size() && text[next] != '\''; step())
        made += text[next];
      if (next < text.size())
        step();
    } else if (c == '"') {
      quoted = true;
      for (step(); next < text.size() && text[next] != '"' && made.size() < longest;) {
        if (text[next] == '$') {
          expand(made);
          continue;
        }
        if (text[next] == '\\' && next + 1 < text.size())
          step();
        made += text[next];
        step();
      }
      if (next < text.size())
        step();
    } else if (c == '$') {
      expand(made);
    } else if (c == '=' && !assigns && !quoted && !made.empty() && isNameStart(made.front())) {
      appends = made.back() == '+';
      StringRef variable = StringRef(made).drop_back(appends);
      if (!all_of(variable, isName)) {
        made += c;
        step();
        continue;
      }
      assigns = true;
      name = variable.str();
      made.clear();
      step();
      if (at("(")) {
        step();
        inArray = true;
        endOption();
        variables.try_emplace(name, "--");
        return;
      }
    } else {
      made += c;
      step();
    }
  }
  if (assigns) {
    endOption();
    if (hasArguments(made)) {
      arguments(made, begin);
      endOption();
    }
    assign(name, std::move(made), appends);
  } else if (quoted && isArguments(made) && StringRef(made).trim().contains_insensitive(" ")) {
    arguments(made, begin);
  } else {
    argument(made, begin, quoted);
  }
}

Settings Script::read() {
  while (next < text.size()) {
    char c = text[next];
    if (c == '#') {
      while (next < text.size() && text[next] != '\n')
        step();
    } else if (c == '\\' && next + 1 < text.size() &&
               (text[next + 1] == '\n' || (text[next + 1] == '\r' && next + 2 < text.size()))) {
      step();
      step();
    } else if (c == '\n') {
      if (!inArray)
        endOption();
      step();
    } else if (isSpace(c)) {
      step();
    } else if (StringRef(";&|()<>`").contains(c)) {
      endOption();
      inArray = false;
      step();
    } else {
      word();
    }
  }
  endOption();
  return distinct(std::move(settings));
}

Expected<Settings> readArguments(StringRef text, StringRef) { return Script(text).read(); }

} // namespace meshwright::convert
