//===- ConvertCommand.cpp - the `convert` command -----------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "../TomlText.h"
#include "Converter.h"

#include "meshwright/AtomicFile.h"
#include "meshwright/InputFile.h"
#include "meshwright/Pipeline.h"
#include "meshwright/runtime/FileArguments.h"
#include "meshwright/runtime/ShortMessage.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Path.h"

using namespace llvm;

namespace meshwright {
using namespace convert;

static constexpr const char *convertUsage =
    "usage: meshwright convert SETTINGS [--from SYSTEM] [--devices N] [-o RECIPE.toml]\n"
    "                          [--config CONFIG.json]\n"
    "  Converts the settings of another training system into flags of 'meshwright compile', 'predict'\n"
    "  and 'fit', and of the executable; lists the keys that have no equivalent, with what comes\n"
    "  nearest, and those that are ignored, with the reason.\n"
    "  --from SYSTEM         what SETTINGS is of (default: by its name and contents):\n"
    "                          torchtitan  a TOML file\n"
    "                          megatron    Megatron-LM: a launch script, a file of arguments, or YAML\n"
    "                                      with MODEL_ARGS\n"
    "                          deepspeed   DeepSpeed: a JSON file\n"
    "                          nanotron    a YAML file\n"
    "  --devices N           number of devices, where SETTINGS leaves it to the launcher\n"
    "  -o RECIPE.toml        also write the flags as a recipe for 'meshwright compile --recipe'\n"
    "  --config CONFIG.json  also write the model as a Hugging Face configuration, where SETTINGS\n"
    "                        describes a GPT-2 or Llama-like model (megatron, nanotron)\n";

static constexpr InputKind settingsInput{"settings of a training system", 1};

namespace {
enum class Format { Toml, Json, Yaml, Arguments };

struct System {
  StringLiteral name;
  Format format;
  void (*convert)(Converter &);
};

struct ConvertArguments {
  std::string settings, recipe, config;
  const System *system = nullptr;
  int64_t devices = 0;
};
} // namespace

static constexpr System systems[] = {{"torchtitan", Format::Toml, convertTorchtitan},
                                     {"megatron", Format::Arguments, convertMegatron},
                                     {"deepspeed", Format::Json, convertDeepSpeed},
                                     {"nanotron", Format::Yaml, convertNanotron}};

static Error refuseToConvert(const Twine &why) { return createStringError(why + "\n" + convertUsage); }

static const System *systemNamed(StringRef name) {
  auto *found = find_if(systems, [&](const System &system) { return system.name == name; });
  return found == std::end(systems) ? nullptr : found;
}

static Expected<ConvertArguments> readConvertArguments(ArrayRef<std::string> args) {
  ConvertArguments read;
  for (size_t i = 0; i < args.size(); ++i) {
    StringRef flag = args[i];
    if (flag == "-h" || flag == "--help")
      return make_error<HelpRequested>(convertUsage);
    if (is_contained({"-o", "--output", "--from", "--devices", "--config"}, flag)) {
      if (i + 1 == args.size() || args[i + 1].empty())
        return refuseToConvert(flag + " needs a value");
      std::string value = args[++i];
      if (flag == "--from") {
        if (!(read.system = systemNamed(value)))
          return createStringError("--from " + notAmong(value, map_to_vector(systems, [](const System &s) {
                                                               return StringRef(s.name);
                                                             })));
      } else if (flag == "--devices") {
        if (StringRef(value).getAsInteger(10, read.devices) || read.devices < 1 || read.devices > INT32_MAX)
          return createStringError("--devices '" + value + "' must be a whole number from 1 to 2147483647");
      } else {
        (flag == "--config" ? read.config : read.recipe) = value;
      }
    } else if (flag.starts_with("-")) {
      return refuseToConvert("unknown option '" + flag + "'");
    } else if (!read.settings.empty()) {
      return refuseToConvert("'" + flag + "' is one argument too many: one file is converted at a time");
    } else {
      read.settings = flag.str();
    }
  }
  if (read.settings.empty())
    return refuseToConvert("no settings given");
  std::vector<FileArgument> files{{"SETTINGS", read.settings, FileUse::Input}};
  if (!read.recipe.empty())
    files.push_back({"-o", read.recipe, FileUse::Output});
  if (!read.config.empty())
    files.push_back({"--config", read.config, FileUse::Output});
  if (std::string clash = clashOf(files); !clash.empty())
    return createStringError(clash);
  return read;
}

/// By the ending of the name, or else by what the text looks like.
static const System *guess(StringRef path, StringRef text) {
  StringRef ending = sys::path::extension(path);
  if (ending == ".toml")
    return systemNamed("torchtitan");
  if (ending == ".json")
    return systemNamed("deepspeed");
  bool hasArguments = text.contains("--tensor-model-parallel-size") || text.contains("--micro-batch-size") ||
                      text.contains("--num-layers");
  if (ending == ".yaml" || ending == ".yml")
    return systemNamed(text.contains("--") && hasArguments ? "megatron" : "nanotron");
  if (hasArguments || ending == ".sh")
    return systemNamed("megatron");
  if (text.ltrim().starts_with("{"))
    return systemNamed("deepspeed");
  return nullptr;
}

static Expected<Settings> readSettings(const System &system, StringRef path, StringRef text) {
  bool yaml = sys::path::extension(path) == ".yaml" || sys::path::extension(path) == ".yml";
  switch (system.format) {
  case Format::Toml:
    return readToml(text, path);
  case Format::Json:
    return readJson(text, path);
  case Format::Yaml:
    return readYaml(text, path);
  case Format::Arguments:
    break;
  }
  if (!yaml)
    return readArguments(text, path);
  // A mapping with arguments as keys; what else it has is about launching.
  Expected<Settings> settings = readYaml(text, path);
  if (!settings)
    return settings;
  Settings arguments;
  for (Setting &setting : *settings)
    if (size_t at = setting.key.find("--"); at != std::string::npos) {
      setting.key = setting.key.substr(at + 2);
      if (setting.kind == Setting::Switch && setting.text == "false")
        continue; // An argument that is not given.
      SmallVector<StringRef> words;
      SplitString(setting.text, words);
      if (setting.kind == Setting::Text && words.size() > 1)
        setting = listOf(setting.key, {words.begin(), words.end()}, setting.line);
      arguments.push_back(std::move(setting));
    }
  return distinct(std::move(arguments));
}

//===--- what is written ---------------------------------------------------------===//

/// `text` as one word of a shell.
static std::string shellWord(StringRef text) {
  if (!text.empty() && all_of(text, [](char c) { return isAlnum(c) || StringRef("_./=,:+-@%").contains(c); }))
    return text.str();
  std::string result = "'";
  for (char c : text)
    result += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return result + "'";
}

static std::string lineOf(ArrayRef<std::pair<std::string, std::string>> flags, bool switches) {
  std::string line;
  for (auto &[name, value] : flags)
    line += (line.empty() ? "--" : " --") + name + (switches && value == "true" ? "" : " " + shellWord(value));
  return line;
}

/// What fits a column, and a terminal.
static std::string shown(StringRef text, size_t width) {
  std::string result;
  for (char c : text.take_front(4 * width))
    result += isPrint(c) || (c & 0x80) ? c : ' ';
  if (result.size() > width)
    result = std::string(firstBytes(result, width - 2)) + "..";
  return json::fixUTF8(result);
}

/// Keys with the same reason together, since files have dozens of them.
static void printIgnored(ArrayRef<const Remark *> group, raw_ostream &os) {
  std::vector<StringRef> reasons;
  for (const Remark *remark : group)
    if (!is_contained(reasons, StringRef(remark->why)))
      reasons.push_back(remark->why);
  for (StringRef reason : reasons) {
    os << "  " << reason << ":\n";
    size_t column = 0;
    for (const Remark *remark : group) {
      if (remark->why != reason)
        continue;
      std::string key = shown(remark->setting.key, 90);
      if (column && column + key.size() + 2 > 100) {
        os << ",\n";
        column = 0;
      }
      os << (column ? ", " : "    ") << key;
      column += (column ? 2 : 4) + key.size();
    }
    os << "\n";
  }
}

static void printRemarks(const Converter &c, raw_ostream &os) {
  static constexpr std::pair<Fate, StringLiteral> groups[] = {
      {Fate::Nearest, "without equivalent, and what comes nearest:"},
      {Fate::Undecided, "not decided by the file:"},
      {Fate::Model, "the model:"},
      {Fate::Unknown, "not understood, and left out:"},
      {Fate::NoEffect, "without effect:"}};
  for (auto [fate, title] : groups) {
    std::vector<const Remark *> group;
    for (const Remark &remark : c.remarks)
      if (remark.fate == fate)
        group.push_back(&remark);
    if (group.empty())
      continue;
    stable_sort(group, [](auto *a, auto *b) { return a->setting.line < b->setting.line; });
    os << "\n" << title << "\n";
    if (fate == Fate::NoEffect) {
      printIgnored(group, os);
      continue;
    }
    size_t keys = 0, values = 0;
    for (const Remark *remark : group) {
      keys = std::max(keys, shown(remark->setting.key, 56).size());
      values = std::max(values, shown(remark->setting.text, 24).size());
    }
    for (const Remark *remark : group)
      os << "  line " << left_justify(std::to_string(remark->setting.line), 4) << " "
         << left_justify(shown(remark->setting.key, 56), keys) << "  "
         << left_justify(shown(remark->setting.text, 24), values) << "  " << remark->why << "\n";
  }
}

static std::string recipeOf(const Converter &c, const System &system, const ConvertArguments &read) {
  std::string text = "# meshwright convert --from " + system.name.str() + " " +
                     shown(sys::path::filename(read.settings), 200) + "\n";
  if (!c.runFlags.empty())
    text += "# The executable's flags: " + shown(lineOf(c.runFlags, false), 4096) + "\n";
  if (c.model && !read.config.empty())
    text += "model = " + tomlString(read.config) + "\n";
  for (const Flag &flag : compileFlags())
    for (auto &[name, value] : c.flags)
      if (name == flag.name) {
        bool isBare = flag.form == Flag::Integer || flag.form == Flag::Switch;
        text += name + " = " + (isBare ? value : tomlString(value)) + "\n";
      }
  return text;
}

Error convertSettings(ArrayRef<std::string> args, raw_ostream &os) {
  Expected<ConvertArguments> read = readConvertArguments(args);
  if (!read)
    return read.takeError();
  auto file = readInput(read->settings, settingsInput);
  if (!file)
    return createStringError("cannot read '" + read->settings + "': " + toString(file.takeError()));
  StringRef text = (*file)->getBuffer();
  if (text.trim().empty())
    return createStringError("'" + read->settings + "' is empty");
  if (text.contains('\0'))
    return createStringError("'" + read->settings + "' is no text; name a file of settings");
  const System *system = read->system ? read->system : guess(read->settings, text);
  if (!system)
    return createStringError("'" + read->settings +
                             "' is of no system that its name or contents tell: give --from torchtitan (TOML), megatron "
                             "(a script with arguments), deepspeed (JSON) or nanotron (YAML)");
  Expected<Settings> settings = readSettings(*system, read->settings, text);
  if (!settings)
    return settings.takeError();
  Converter c(read->settings, std::move(*settings), read->devices);
  system->convert(c);
  if (c.failed())
    return createStringError(c.error);
  // In the order in which help lists them.
  auto place = [](StringRef name) {
    return find_if(compileFlags(), [&](const Flag &flag) { return name == flag.name; });
  };
  stable_sort(c.flags, [&](auto &a, auto &b) { return place(a.first) < place(b.first); });
  if (!read->config.empty()) {
    if (!c.model)
      return createStringError("--config " + read->config + ": '" + read->settings + "' does not describe a model that can "
                               "be written; without --config the reason is listed");
    if (Error error = writeFileAtomically(formatv("{0:2}\n", json::Value(json::Object(*c.model))).str(), read->config))
      return error;
  }
  if (!read->recipe.empty())
    if (Error error = writeFileAtomically(recipeOf(c, *system, *read), read->recipe))
      return error;
  os << "flags of 'meshwright compile' for these settings of " << system->name << ":\n" << lineOf(c.flags, true) << "\n";
  if (!c.runFlags.empty())
    os << "\nflags of the executable:\n" << lineOf(c.runFlags, false) << "\n";
  if (c.model)
    os << "\nMODEL: "
       << (read->config.empty() ? "--config CONFIG.json writes it, as model_type " : read->config + ", of model_type ")
       << c.model->getString("model_type").value_or("") << "\n";
  printRemarks(c, os);
  return Error::success();
}

} // namespace meshwright
