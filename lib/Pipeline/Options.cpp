//===- Options.cpp - flags and recipes ---------------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "meshwright/Options.h"
#include "meshwright/InputFile.h"
#include "meshwright/LoadPlugin.h"
#include "meshwright/Toml.h"
#include "meshwright/TomlKeys.h"
#include "meshwright/runtime/Suggestion.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/FileSystem.h"

#include <CLI/CLI.hpp>
#include <charconv>
#include <iomanip>
#include <map>
#include <sstream>
using namespace llvm;

namespace meshwright {

namespace {
/// The texts of flags, by name: several of a list, one of others.
using Texts = std::map<std::string, std::vector<std::string>>;
} // namespace

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
static Error checkNotEmpty(const Texts &texts) {
  for (const Flag &flag : compileFlags())
    if (auto found = texts.find(flag.name);
        found != texts.end() &&
        any_of(found->second, [](StringRef text) { return text.trim().empty(); }))
      return createStringError(Twine("--") + flag.name + " is empty; give " + flag.value +
                               " or leave the flag out");
  return Error::success();
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

/// Whether a path that does not exist is written as models of the Hugging Face Hub are named, "meta-llama/Llama-3.1-8B".
static bool isHubName(StringRef path) {
  auto [owner, name] = path.split('/');
  return !owner.empty() && !name.empty() && !owner.contains('.') && !name.contains('/') && !name.ends_with(".json") &&
         !name.ends_with(".mlir") && !sys::fs::exists(owner);
}

/// The file that a folder's model is described in.
static Error findModel(CompileOptions &options) {
  if (options.model.empty())
    return createStringError(
        "no model given: name a Hugging Face config.json, its folder, or a .mlir file");
  // Before the default of -o, which is called after it.
  if (!sys::fs::exists(options.model))
    return createStringError("cannot read the model '" + options.model +
                             "': No such file or directory; give the path of a config.json or of an .mlir file" +
                             (isHubName(options.model) ? "; of a model on the Hugging Face Hub, download the config.json first" : ""));
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

/// The file of muP's base model, where its folder is given.
static Error findBase(CompileOptions &options) {
  if (!sys::fs::is_directory(options.mupBase))
    return Error::success();
  std::string file = (StringRef(options.mupBase).rtrim('/') + "/config.json").str();
  if (!sys::fs::exists(file))
    return createStringError("--mup-base: the folder '" + options.mupBase + "' has no config.json");
  options.mupBase = file;
  return Error::success();
}

/// Whether the flag takes the value, which may be a shorter name of a choice; any value where it has no choices.
static bool isChoice(const Flag &flag, StringRef value) {
  if (flag.choices.empty() || is_contained(flag.choices, value.str()))
    return true;
  CompileOptions unused;
  if (Error error = flag.read(value, unused)) {
    consumeError(std::move(error));
    return false;
  }
  return is_contained(flag.choices, flag.text(unused));
}

/// What a recipe gives a flag, as text.
static Expected<std::vector<std::string>> textsOf(const Flag &flag, const toml::node &node) {
  using Values = std::vector<std::string>;
  const char *quotes = node.is_string() ? ", without quotes" : "";
  if (flag.form == Flag::Switch)
    return node.is_boolean() ? Expected<Values>(Values{*node.value<bool>() ? "true" : "false"})
                             : createStringError(Twine("must be true or false") + quotes);
  if (*flag.without && node.is_boolean())
    return Values{*node.value<bool>() ? flag.without : flag.choices.front()};
  if (flag.form == Flag::Integer)
    return node.is_integer() ? Expected<Values>(Values{std::to_string(*node.value<int64_t>())})
                             : createStringError(Twine("must be an integer") + quotes);
  if (flag.form == Flag::List) {
    if (auto text = node.value<std::string>())
      return Values{*text};
    if (!node.is_array())
      return createStringError("must be a string or a list of strings");
    Values values;
    for (auto &&item : *node.as_array()) {
      auto text = item.value<std::string>();
      if (!text)
        return createStringError("must be a list of strings");
      values.push_back(*text);
    }
    return values;
  }
  std::ostringstream text;
  if (node.is_string())
    text << *node.value<std::string>();
  else if (node.is_integer())
    text << *node.value<int64_t>();
  else if (node.is_floating_point())
    text << std::setprecision(17) << *node.value<double>();
  else
    return createStringError("must be a string");
  if (!isChoice(flag, text.str()))
    return createStringError("is '" + text.str() + "'; the choices are " +
                             join(flag.choices, ", "));
  return Values{text.str()};
}

static Error readRecipe(CompileOptions &options, Texts &texts) {
  auto fail = [&](const Twine &message) {
    return createStringError("recipe '" + options.recipe + "': " + message);
  };
  auto file = readInput(options.recipe, recipeInput, /*isText=*/true);
  if (!file)
    return fail("cannot read the file: " + toString(file.takeError()));
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
    const Flag *flag = find_if(compileFlags(), [&](const Flag &f) { return name == f.name || (*f.alias && name == f.alias); });
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
    Expected<std::vector<std::string>> values = textsOf(*flag, node);
    if (!values)
      return fail("'" + name + "' " + toString(values.takeError()));
    if (!texts.try_emplace(flag->name, *values).second)
      return fail("has both " + Twine(flag->name) + " and " + flag->alias + ", which are one flag");
  }
  if (Error error = checkNotEmpty(texts))
    return fail(toString(std::move(error)));
  return Error::success();
}

/// What other systems call a choice; the same where none does.
static StringRef choiceCalled(StringRef name) {
  return StringSwitch<StringRef>(name.lower())
      .Cases({"gpu", "nvidia"}, "cuda")
      .Cases({"float16", "half", "f16"}, "fp16")
      .Cases({"bfloat16", "bfp16"}, "bf16")
      .Cases({"float32", "float", "fp32"}, "f32")
      .Cases({"float8", "f8"}, "fp8")
      .Default(name);
}

/// Checks a flag's value against its choices, which the help lists too.
static CLI::Validator oneOf(const Flag &flag) {
  auto check = [&flag](std::string &value) -> std::string {
    if (isChoice(flag, value))
      return "";
    if (StringRef meant = choiceCalled(value); meant != value && is_contained(flag.choices, meant.str()))
      return "'" + value + "' is not supported; did you mean " + meant.str() + "? The choices are " + join(flag.choices, ", ");
    return notAmong(value, flag.choices);
  };
  return CLI::Validator(check, "{" + join(flag.choices, ",") + "}");
}

/// Reads a command line: the texts of the flags that it gives.
static Expected<Texts> readCommandLine(ArrayRef<std::string> args, std::string &model) {
  CLI::App app("Compiles a model and a device mesh into one training executable, whose own flags "
               "(data, learning rate, checkpoints, resume) are listed by `EXE --help`.",
               "meshwright compile");
  app.add_option("MODEL", model, "Hugging Face config.json, the folder that holds one, IR (.mlir) at any phase, or StableHLO of JAX (.mlir)");
  const CompileOptions defaults;
  Texts values;
  std::map<std::string, bool> switches;
  for (const Flag &flag : compileFlags()) {
    std::string spelling =
        flag.name == StringRef("output") ? "-o,--output" : std::string("--") + flag.name;
    if (*flag.alias)
      spelling += std::string(",--") + flag.alias;
    if (flag.form == Flag::Switch) {
      app.add_flag(spelling, switches[flag.name], flag.help)->group(flag.group);
      continue;
    }
    std::vector<std::string> &value = values[flag.name];
    if (flag.form == Flag::List) {
      // One value each time; the next word is the model.
      app.add_option(spelling, value, flag.help)
          ->type_name(flag.value)
          ->allow_extra_args(false)
          ->group(flag.group);
      continue;
    }
    CLI::Option *option =
        app.add_option(spelling, value.emplace_back(flag.text(defaults)), flag.help);
    if (flag.form == Flag::Integer)
      option->transform(CLI::Validator(checkInteger, ""));
    else if (!flag.choices.empty())
      option->check(oneOf(flag));
    option->type_name(flag.value)->group(flag.group);
    if (!value.front().empty())
      option->capture_default_str();
  }
  std::vector<std::string> reversed(args.rbegin(), args.rend());
  for (const Flag &flag : compileFlags())
    for (std::string &word : reversed)
      if (*flag.without && word == std::string("--") + flag.name)
        word += std::string("=") + flag.without;
  try {
    app.parse(reversed);
  } catch (const CLI::CallForHelp &) {
    return make_error<HelpRequested>(app.help());
  } catch (const CLI::ParseError &error) {
    std::vector<std::string> rest = app.remaining();
    auto flag = find_if(rest, [](StringRef word) { return word.starts_with("-"); });
    if (!rest.empty())
      return unknownArgument(flag == rest.end() ? rest.front() : *flag, model);
    return createStringError(plainly(error.what()) + "\nSee 'meshwright compile --help'.");
  }
  Texts given;
  for (const Flag &flag : compileFlags())
    if (app.count(std::string("--") + flag.name))
      given[flag.name] = flag.form == Flag::Switch
                             ? std::vector<std::string>{switches[flag.name] ? "true" : "false"}
                             : values[flag.name];
  if (Error error = checkNotEmpty(given))
    return std::move(error);
  return given;
}

/// The plugins that a recipe names; what is wrong with the file is said when all of it is read.
static std::vector<std::string> pluginsOf(StringRef recipe) {
  std::vector<std::string> plugins;
  auto file = readInput(recipe, recipeInput, /*isText=*/true);
  if (!file || lineOfDeepKey((*file)->getBuffer())) {
    consumeError(file.takeError());
    return plugins;
  }
  toml::parse_result parsed = toml::parse(std::string_view((*file)->getBuffer()));
  if (!parsed)
    return plugins;
  toml::node_view<toml::node> named = parsed.table()["load-pass-plugin"];
  if (auto plugin = named.value<std::string>())
    plugins.push_back(*plugin);
  else if (const toml::array *list = named.as_array())
    for (auto &&item : *list)
      plugins.push_back(item.value_or(std::string()));
  return plugins;
}

/// Loads the plugins that a command line names, or else its recipe. Their optimizers are choices of flags, so this comes before
/// flags are read.
static Error loadNamedPlugins(ArrayRef<std::string> args) {
  std::vector<std::string> plugins;
  std::string recipe;
  auto valueOf = [&](size_t i, StringRef flag) -> std::optional<StringRef> {
    StringRef word = args[i];
    if (!word.consume_front(flag))
      return std::nullopt;
    if (word.consume_front("="))
      return word;
    return word.empty() && i + 1 < args.size() ? std::optional<StringRef>(args[i + 1]) : std::nullopt;
  };
  for (size_t i = 0; i < args.size(); ++i) {
    if (auto plugin = valueOf(i, "--load-pass-plugin"))
      plugins.push_back(plugin->str());
    if (auto file = valueOf(i, "--recipe"))
      recipe = file->str();
  }
  if (plugins.empty() && !recipe.empty())
    plugins = pluginsOf(recipe);
  erase_if(plugins, [](StringRef plugin) { return plugin.trim().empty(); });
  return loadPlugins(plugins);
}

Expected<CompileOptions> parseCompileOptions(ArrayRef<std::string> args) {
  if (Error error = loadNamedPlugins(args))
    return std::move(error);
  CompileOptions options;
  std::string model;
  Expected<Texts> given = readCommandLine(args, model);
  if (!given)
    return given.takeError();
  if (auto recipe = given->find("recipe"); recipe != given->end()) {
    options.recipe = recipe->second.front();
    Texts fromRecipe;
    if (Error error = readRecipe(options, fromRecipe))
      return std::move(error);
    for (auto &[name, texts] : fromRecipe)
      if (given->try_emplace(name, texts).second)
        options.fromRecipe.insert(name);
  }
  for (const Flag &flag : compileFlags())
    if (auto found = given->find(flag.name); found != given->end()) {
      options.given.insert(flag.name);
      for (StringRef text : found->second)
        if (Error error = flag.read(text, options))
          return std::move(error);
    }
  if (!model.empty())
    options.model = model;
  if (options.cluster && !options.target)
    if (!(options.target = exec::findTarget(options.cluster->target)))
      return createStringError("cluster " + options.cluster->name + ": its target '" +
                               options.cluster->target + "' must be one of " +
                               exec::targetNames());
  ArrayRef<StringLiteral> exits = options.getTarget().getExits();
  if (!exits.empty() && !options.given.count("emit"))
    options.emit = exits.back().str();
  if (Error error = findModel(options))
    return std::move(error);
  if (Error error = findBase(options))
    return std::move(error);
  return options;
}

/// Refuses the flags and phases of other targets than the one asked for.
static Error checkTarget(const CompileOptions &o) {
  const exec::Target &target = o.getTarget();
  for (const Flag &flag : compileFlags())
    if (flag.target && o.given.count(flag.name) && flag.target != &target)
      return createStringError(Twine("--") + flag.name + " " + flag.text(o) +
                               " changes nothing: it is for --target " + flag.target->getName());
  // Only where every type is emulated, for now.
  if (o.precision.isFp8() && !target.isDefault())
    return createStringError("--precision fp8 is not supported by --target " + target.getName() +
                             ", which has no products of 8 bits yet; --target " +
                             exec::getDefaultTarget().getName() +
                             " has, and --precision bf16 works");
  if (o.frozenWeights == FrozenWeights::int8 && !target.getExits().empty())
    return createStringError("--frozen-weights int8 is not supported by --target " + target.getName() +
                             ", which has no weights of 8 bits yet; leave it out, or use --target " +
                             exec::getDefaultTarget().getName());
  if (o.gradReduceDtype != GradientWire::asSummed && !target.getExits().empty())
    return createStringError("--grad-reduce-dtype " + optionText(o.gradReduceDtype) + " is not supported by --target " +
                             target.getName() + ", whose reductions send what they add; leave it out");
  if (o.gradReduceDtype == GradientWire::fp8 && !target.isDefault())
    return createStringError("--grad-reduce-dtype fp8 is not supported by --target " + target.getName() +
                             ", which has no kernels for numbers of 8 bits yet; --target " +
                             exec::getDefaultTarget().getName() + " has, and --grad-reduce-dtype bf16 works");
  if (o.gradCompression.signs && !target.isDefault())
    return createStringError("--grad-compression " + optionText(o.gradCompression) + " is not supported by --target " + target.getName() +
                             ", which has no kernels for bytes of signs yet; --target " + exec::getDefaultTarget().getName() +
                             " has, and --grad-compression powersgd:4 works");
  // Kernels of other targets have not been run on codes.
  if (o.optimizer->quantizesStates && !target.isDefault())
    return createStringError("--optimizer " + o.optimizer->name + " is not supported by --target " + target.getName() +
                             ", which has no kernels for states of 8 bits yet; --target " +
                             exec::getDefaultTarget().getName() + " has, and --optimizer adamw works");
  if (!target.getExits().empty() && !is_contained(target.getExits(), o.emit))
    return createStringError("--emit " + o.emit + " is not supported; --target " +
                             target.getName() + " has " + join(target.getExits(), ", "));
  for (const auto &other : exec::getTargets())
    if (other.get() != &target && is_contained(other->getEmissions(), o.emit))
      return createStringError("--emit " + o.emit + " is not supported; it is for --target " +
                               other->getName() + "; llvm and object work for " + target.getName());
  return Error::success();
}

/// Refuses what gradients that are approximated do not go with.
static Error checkCompression(const CompileOptions &o) {
  if (!o.gradCompression)
    return Error::success();
  auto refuse = [&](const Twine &other, const Twine &why) {
    return createStringError("--grad-compression " + optionText(o.gradCompression) + " does not go with " + other + ", " + why);
  };
  if (!o.getTarget().getExits().empty())
    return refuse("--target " + o.getTarget().getName(), "which has not been run with it; leave it out");
  if (o.gradReduceDtype != GradientWire::asSummed)
    return refuse("--grad-reduce-dtype " + optionText(o.gradReduceDtype), "which rounds what is sent; leave one of both out");
  if (o.dataSync == DataSync::parameterServer)
    return refuse("--data-sync parameter-server", "which adds on one rank; use --data-sync all-reduce, or leave it out");
  if (o.zero > 1)
    return refuse("--zero " + Twine(o.zero), "which reduces gradients in the backward pass, one layer and microbatch at a time; use --zero 1 or 0");
  if (o.gradCompression.signs && o.zero > 0)
    return refuse("--zero 1", "which stores a part of the average whose signs are sent on each rank; leave it out");
  if (o.gradCompression.signs && o.optimizer->quantizesStates)
    return refuse("--optimizer " + o.optimizer->name, "which stores the average whose signs are sent in 8 bits; use adamw");
  if (isOffload(o.offload.parameters))
    return refuse("--offload parameters", "which keeps gradients of layers off the device; use --offload optimizer, or leave it out");
  if (o.precision == MixedPrecision::fp16)
    return refuse("--precision fp16", "whose gradients have another scale when a later step adds what is left of them; use bf16");
  if (o.precision.isFp8())
    return refuse("--precision fp8", "whose gradients are products of rounded operands; use bf16");
  for (StringRef axis : {"pipe", "context", "expert", "tensor.2"})
    if (o.mesh.size(o.mesh.named(axis)) > 1)
      return refuse("mesh axis '" + axis + "'", "use data, replica and tensor, or leave it out");
  if (llvm::any_of(o.remat.policies, [](const RematPolicy &policy) { return policy.every != 1; }))
    return refuse("--remat " + optionText(o.remat), "which has layers in groups; use another policy");
  return Error::success();
}

Error checkSupported(const CompileOptions &o) {
  if (Error error = checkTarget(o))
    return error;
  if (!o.plan.empty())
    return createStringError("--plan " + o.plan + " is for 'meshwright compile' alone; 'meshwright plan' "
                             "searches layouts without it");
  for (const Flag &flag : compileFlags()) {
    if (!flag.idle || !o.given.count(flag.name))
      continue;
    if (std::string why = flag.idle(o); !why.empty())
      return createStringError(Twine("--") + flag.name +
                               (flag.form == Flag::Switch ? "" : " " + flag.text(o)) +
                               " changes nothing: " + why);
  }
  if (o.gradReduceDtype != GradientWire::asSummed && o.dataSync == DataSync::parameterServer)
    return createStringError("--grad-reduce-dtype " + optionText(o.gradReduceDtype) +
                             " does not go with --data-sync parameter-server, which adds on one rank; use --data-sync "
                             "all-reduce, or leave it out");
  if (o.gradReduceDtype != GradientWire::asSummed && isOffload(o.offload.parameters))
    return createStringError("--grad-reduce-dtype " + optionText(o.gradReduceDtype) +
                             " does not go with --offload parameters, which keeps gradients of layers off the device; use "
                             "--offload optimizer, or leave it out");
  if (o.frozenWeights == FrozenWeights::int8 && o.precision.isFp8())
    return createStringError("--frozen-weights int8 does not go with --precision fp8, whose products read weights in E4M3; "
                             "use --precision bf16, or leave it out");
  if (Error error = checkCompression(o))
    return error;
  if (o.gradDtype == GradientType::bf16 && o.precision != MixedPrecision::bf16)
    return createStringError("--grad-dtype bf16 is not supported; it goes with --precision bf16 and fp8; "
                             "with " +
                             optionText(o.precision) + " leave it out");
  if (o.microbatches < 1 || o.microbatches > INT32_MAX)
    return createStringError("--microbatches " + Twine(o.microbatches) +
                             " must be at least 1 and at most 2147483647");
  if (o.expertParts < 1 || o.expertParts > 16)
    return createStringError("--expert-parts " + Twine(o.expertParts) + " must be from 1 to 16");
  if (o.redundantExperts < 0 || o.redundantExperts > 65536)
    return createStringError("--redundant-experts " + Twine(o.redundantExperts) + " must be from 0 to 65536");
  if (o.zero < 0 || o.zero > 3)
    return createStringError("--zero " + Twine(o.zero) + ": levels are 0, 1, 2 and 3");
  if (o.devices < 1 && o.given.count("devices"))
    return createStringError("--devices " + Twine(o.devices) + " must be positive");
  if (o.batch < 1 && o.given.count("batch"))
    return createStringError("--batch " + Twine(o.batch) + " must be positive");
  if (o.sequence < 1 && o.given.count("seq"))
    return createStringError("--seq " + Twine(o.sequence) + " must be positive");
  if (o.sourceSequence < 1 && o.given.count("source-seq"))
    return createStringError("--source-seq " + Twine(o.sourceSequence) + " must be positive");
  return Error::success();
}

} // namespace meshwright
