//===- Options.cpp - flags and recipes ---------------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "meshwright/Options.h"
#include "meshwright/Bytes.h"
#include "meshwright/Suggestion.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"

#include <CLI/CLI.hpp>
#include <charconv>
#include <iomanip>
#include <sstream>
#define TOML_EXCEPTIONS 0
#include <toml++/toml.h>

using namespace llvm;

namespace meshwright {

char HelpRequested::ID;

/// Calls `visit` with the member that holds a flag's value.
template <typename Visitor>
static auto withValue(CompileOptions &options, const Flag &flag, Visitor visit) {
  return std::visit(
      [&](auto member) {
        if constexpr (std::is_same_v<decltype(member), OfTarget>)
          return visit(options.targetFlags[flag.name]);
        else
          return visit(options.*member);
      },
      flag.member);
}

/// Why `text` is not a whole number of 64 bits; empty if it is. CLI11 alone would take
/// the nearest one, and 010 for 8.
static std::string checkInteger(std::string &text) {
  int64_t number = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc::invalid_argument || end != text.data() + text.size())
    return "'" + text + "' is not a whole number";
  if (error == std::errc::result_out_of_range)
    return text + " does not fit into 64 bits";
  text = std::to_string(number);
  return "";
}

/// A flag without its value is more likely a script's empty variable than a wish for
/// the default.
static Error checkNotEmpty(CompileOptions &options) {
  for (const Flag &flag : compileFlags()) {
    if (!options.given.count(flag.name))
      continue;
    bool empty = withValue(options, flag, [](auto &value) {
      using T = std::decay_t<decltype(value)>;
      auto isBlank = [](StringRef text) { return text.trim().empty(); };
      if constexpr (std::is_same_v<T, std::string>)
        return isBlank(value);
      else if constexpr (std::is_same_v<T, std::vector<std::string>>)
        return any_of(value, isBlank);
      else
        return false;
    });
    if (empty)
      return createStringError(Twine("--") + flag.name + " is empty; give " + flag.value +
                               " or leave the flag out");
  }
  return Error::success();
}

/// The line whose keys have more parts than any recipe's, or 0. The parser makes a table of each
/// part, and destroys them by recursion.
static unsigned lineOfDeepKey(StringRef text) {
  constexpr unsigned most = 64;
  unsigned line = 0;
  while (!text.empty()) {
    StringRef rest;
    std::tie(rest, text) = text.split('\n');
    ++line;
    unsigned dots = 0;
    char quote = 0;
    for (char c : rest) {
      if (quote ? c == quote : c == '"' || c == '\'')
        quote = quote ? 0 : c;
      else if (!quote && c == '#')
        break;
      else if (!quote && c == '.' && ++dots > most)
        return line;
    }
  }
  return 0;
}

/// "; did you mean ...?" for the name of a flag that does not exist, or "." alone.
static std::string meantBy(StringRef name, StringRef dashes) {
  std::string spelling = name.lower();
  std::replace(spelling.begin(), spelling.end(), '_', '-');
  std::vector<std::string> names = {"model", "seeds"};
  if (!dashes.empty())
    names = {"help"};
  for (const Flag &flag : compileFlags())
    names.push_back(flag.name);
  if (std::string near = nearestName(spelling, names); !near.empty())
    return "; did you mean " + (dashes + near).str() + "?";
  if (std::string axis = axisCalled(spelling); !axis.empty())
    return "; did you mean " + (dashes + "mesh" + (dashes.empty() ? " = \"" : " ") + axis).str() +
           "=2" +
           (dashes.empty()       ? "\"?"
            : spelling == "fsdp" ? " --zero 3?"
                                 : "?");
  return ".";
}

static Error unknownArgument(StringRef word, StringRef model) {
  static constexpr StringLiteral help = " See 'meshwright compile --help' for all flags";
  StringRef flag = word.split('=').first;
  if (!flag.starts_with("-"))
    return createStringError("'" + word + "' is one argument too many: MODEL is '" + model +
                             "' already, and one is "
                             "compiled at a time." +
                             help);
  return createStringError(
      "there is no flag " + flag + meantBy(flag.ltrim('-'), "--") + help +
      "; those of an executable, such as --data and --lr, are given when it runs");
}

/// The file that a folder's model is described in.
static Error findModel(CompileOptions &options) {
  if (options.model.empty())
    return createStringError(
        "no model given: name a Hugging Face config.json, its folder, or a .mlir file");
  if (!sys::fs::is_directory(options.model))
    return Error::success();
  StringRef folder = StringRef(options.model).rtrim('/');
  for (const char *name : {"/config.json", "/model.mlir"})
    if (std::string file = (folder + name).str(); sys::fs::exists(file)) {
      options.model = file;
      return Error::success();
    }
  return createStringError("the folder '" + options.model +
                           "' has no config.json, which describes a model; name "
                           "the folder of a Hugging Face model, or a .mlir file");
}

static Error readRecipe(CompileOptions &options) {
  auto fail = [&](const Twine &message) {
    return createStringError("recipe '" + options.recipe + "': " + message);
  };
  auto file = MemoryBuffer::getFile(options.recipe, /*IsText=*/true);
  if (!file)
    return fail("cannot read the file: " + file.getError().message());
  if (unsigned line = lineOfDeepKey((*file)->getBuffer()))
    return fail("line " + Twine(line) + ": a key has more than 64 parts between dots; keys are the "
                "flags of 'meshwright compile --help', model and seeds");
  toml::parse_result parsed = toml::parse(std::string_view((*file)->getBuffer()), options.recipe);
  if (!parsed)
    return fail("line " + Twine(parsed.error().source().begin.line) + ": " +
                std::string(parsed.error().description()));
  const toml::table &table = parsed;
  for (auto &&[key, node] : table) {
    std::string name(key.str());
    const Flag *flag = find_if(compileFlags(), [&](const Flag &f) { return name == f.name; });
    if (flag == compileFlags().end() && name == "model") {
      if (!node.is_string())
        return fail("'model' must be a string");
      options.model = *node.value<std::string>();
      continue;
    }
    if (name == "seeds") {
      if (!node.is_table())
        return fail("'seeds' must be a table, e.g. [seeds]\n\"layers.*.q_proj.weight\" = "
                    "\"[{tensor}, {}]\"");
      for (auto &&[pattern, sharding] : *node.as_table()) {
        auto text = sharding.value<std::string>();
        if (!text)
          return fail("seed '" + Twine(std::string(pattern.str())) +
                      "' must be a string, e.g. \"[{tensor}, {}]\"");
        options.seeds.push_back({std::string(pattern.str()), *text});
      }
      continue;
    }
    if (flag == compileFlags().end() || name == "recipe")
      return fail("unknown key '" + name + "'" + meantBy(name, "") +
                  " The keys are the flags of 'meshwright compile --help', model and seeds");
    Error error = withValue(options, *flag, [&](auto &value) -> Error {
          using T = std::decay_t<decltype(value)>;
          if constexpr (std::is_same_v<T, std::vector<std::string>>) {
            if (auto text = node.value<std::string>()) {
              value = {*text};
              return Error::success();
            }
            if (!node.is_array())
              return fail("'" + name + "' must be a string or a list of strings");
            for (auto &&item : *node.as_array()) {
              auto text = item.value<std::string>();
              if (!text)
                return fail("'" + name + "' must be a list of strings");
              value.push_back(*text);
            }
          } else if constexpr (std::is_same_v<T, std::string>) {
            if (node.is_string())
              value = *node.value<std::string>();
            else if (node.is_integer())
              value = std::to_string(*node.value<int64_t>());
            else if (node.is_floating_point()) {
              std::ostringstream text;
              text << std::setprecision(17) << *node.value<double>();
              value = text.str();
            } else
              return fail("'" + name + "' must be a string");
            if (!flag->choices.empty() && !is_contained(flag->choices, value))
              return fail("'" + name + "' is '" + value + "'; the choices are " +
                          join(flag->choices, ", "));
          } else {
            bool fits = std::is_same_v<T, bool> ? node.is_boolean() : node.is_integer();
            if (!fits)
              return fail("'" + name + "' must be " +
                          (std::is_same_v<T, bool> ? "true or false" : "an integer"));
            value = *node.value<T>();
          }
          return Error::success();
        });
    if (error)
      return error;
    options.given.insert(name);
  }
  if (Error error = checkNotEmpty(options))
    return fail(toString(std::move(error)));
  return Error::success();
}

/// Checks a flag's value against its choices, which the help lists too.
static CLI::Validator oneOf(const Flag &flag) {
  auto check = [&flag](std::string &value) -> std::string {
    if (is_contained(flag.choices, value))
      return "";
    std::string meant = nearestName(value, flag.choices);
    return "'" + value + "' is not supported; " +
           (meant.empty() ? "the" : "did you mean " + meant + "? The") + " choices are " +
           join(flag.choices, ", ");
  };
  return CLI::Validator(check, "{" + join(flag.choices, ",") + "}");
}

Expected<CompileOptions> parseCompileOptions(ArrayRef<std::string> args) {
  // Twice over the same flags: once to learn the recipe's name, then on top of
  // what the recipe says.
  CompileOptions options;
  options.target = exec::getDefaultTarget().getName();
  for (bool second : {false, true}) {
    CLI::App app("Compiles a model description into one training executable.",
                 "meshwright compile");
    app.add_option("MODEL", options.model,
                   "Hugging Face config.json or its folder, or .mlir at any floor");
    for (const Flag &flag : compileFlags()) {
      std::string spelling =
          std::string(flag.name) == "output" ? "-o,--output" : std::string("--") + flag.name;
      if (auto *ofTarget = std::get_if<OfTarget>(&flag.member))
        options.targetFlags.try_emplace(flag.name, ofTarget->initial);
      withValue(options, flag, [&](auto &value) {
            using T = std::decay_t<decltype(value)>;
            if constexpr (std::is_same_v<T, bool>) {
              app.add_flag(spelling, value, flag.help);
            } else {
              CLI::Option *option =
                  app.add_option(spelling, value, flag.help)->type_name(flag.value);
              if constexpr (std::is_same_v<T, std::vector<std::string>>)
                option->allow_extra_args(false); // one value each time, the next word is the model
              if constexpr (std::is_same_v<T, std::string>) {
                if (!flag.choices.empty())
                  option->check(oneOf(flag))->type_name(flag.value);
                if (!value.empty())
                  option->capture_default_str();
              } else if constexpr (std::is_same_v<T, int64_t>) {
                option->transform(CLI::Validator(checkInteger, ""));
                if (value)
                  option->capture_default_str();
              }
            }
          });
    }
    std::vector<std::string> reversed(args.rbegin(), args.rend());
    try {
      app.parse(reversed);
    } catch (const CLI::CallForHelp &) {
      return make_error<HelpRequested>(app.help());
    } catch (const CLI::ParseError &error) {
      std::vector<std::string> rest = app.remaining();
      auto flag = find_if(rest, [](StringRef word) { return word.starts_with("-"); });
      if (!rest.empty())
        return unknownArgument(flag == rest.end() ? rest.front() : *flag, options.model);
      return createStringError(plainly(error.what()) + "\nSee 'meshwright compile --help'.");
    }
    for (const Flag &flag : compileFlags())
      if (app.count(std::string("--") + flag.name)) {
        options.given.insert(flag.name);
        options.fromRecipe.erase(flag.name);
      }
    if (Error error = checkNotEmpty(options))
      return std::move(error);
    if (!second) {
      if (options.recipe.empty())
        break;
      CompileOptions fresh;
      fresh.target = exec::getDefaultTarget().getName();
      fresh.recipe = options.recipe;
      if (Error error = readRecipe(fresh))
        return std::move(error);
      fresh.fromRecipe = fresh.given;
      options = fresh;
    }
  }
  // Values that were only shown as defaults are not the user's.
  for (const Flag &flag : compileFlags())
    if (std::holds_alternative<OfTarget>(flag.member) && !options.given.count(flag.name))
      options.targetFlags.erase(flag.name);
  if (const exec::Target *target = exec::findTarget(options.target);
      target && !target->getExits().empty() && !options.given.count("emit"))
    options.emit = target->getExits().back().str();
  if (Error error = findModel(options))
    return std::move(error);
  return options;
}

static std::string textOf(const Flag &flag, const CompileOptions &options) {
  if (std::holds_alternative<OfTarget>(flag.member))
    return options.targetFlags.at(flag.name);
  auto *text = std::get_if<std::string CompileOptions::*>(&flag.member);
  return text ? options.**text : "";
}

/// Refuses the flags and stages of other targets than the one asked for.
static Error checkTarget(const CompileOptions &o) {
  for (const Flag &flag : compileFlags())
    if (auto *ofTarget = std::get_if<OfTarget>(&flag.member);
        ofTarget && o.given.count(flag.name) && ofTarget->target->getName() != o.target)
      return createStringError(Twine("--") + flag.name + " " + textOf(flag, o) +
                               " changes nothing: it is for --target " +
                               ofTarget->target->getName());
  const exec::Target *target = exec::findTarget(o.target);
  if (target && !target->getExits().empty() && !is_contained(target->getExits(), o.emit))
    return createStringError("--emit " + o.emit + " is not supported; --target " + o.target +
                             " has " + join(target->getExits(), ", "));
  for (const auto &other : exec::getTargets())
    if (other.get() != target && is_contained(other->getEmissions(), o.emit))
      return createStringError("--emit " + o.emit + " is not supported; it is for --target " +
                               other->getName() + "; llvm and object work for " + o.target);
  return Error::success();
}

Error checkSupported(const CompileOptions &o) {
  auto refuse = [](const Twine &flag, const Twine &value, const Twine &works) {
    return createStringError("--" + flag + (value.isTriviallyEmpty() ? "" : " ") + value +
                             " is not supported; " + works);
  };
  if (Error error = checkTarget(o))
    return error;
  for (const Flag &flag : compileFlags()) {
    if (!flag.idle || !o.given.count(flag.name))
      continue;
    if (std::string why = flag.idle(o); !why.empty())
      return createStringError(Twine("--") + flag.name + " " + textOf(flag, o) +
                               " changes nothing: " + why);
  }
  if (o.gradDtype == "bf16" && o.precision != "bf16")
    return refuse("grad-dtype", o.gradDtype,
                  "it goes with --precision bf16; with " + o.precision + " leave it out");
  SmallVector<StringRef> offloaded;
  StringRef(o.offload).split(offloaded, ',', -1, /*KeepEmpty=*/!o.offload.empty());
  for (StringRef what : offloaded)
    if (what != "optimizer" && what != "activations")
      return createStringError("--offload '" + o.offload + "': '" + what +
                               "' cannot be kept on the host; optimizer, activations and "
                               "optimizer,activations can");
  if (std::optional<double> bytes = parseBytes(o.offloadBuffer); !bytes || *bytes < 128)
    return createStringError("--offload-buffer '" + o.offloadBuffer +
                             "' is no amount of memory of 128 bytes or more; write e.g. 32MiB "
                             "(units " + byteUnits + ")");
  if (o.microbatches < 1 || o.microbatches > INT32_MAX)
    return createStringError("--microbatches " + Twine(o.microbatches) +
                             " must be at least 1 and at most 2147483647");
  if (o.batch < 1 && o.given.count("batch"))
    return createStringError("--batch " + Twine(o.batch) + " must be positive");
  if (o.sequence < 1 && o.given.count("seq"))
    return createStringError("--seq " + Twine(o.sequence) + " must be positive");
  return Error::success();
}

} // namespace meshwright
