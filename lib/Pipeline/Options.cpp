//===- Options.cpp - flags and recipes ---------------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "meshwright/Options.h"
#include "meshwright/Bytes.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"

#include <CLI/CLI.hpp>
#include <charconv>
#include <iomanip>
#include <sstream>
#define TOML_EXCEPTIONS 0
#include <toml++/toml.h>

using namespace llvm;

namespace meshwright {

char HelpRequested::ID;

static std::vector<std::string> targetChoices() {
  std::vector<std::string> names;
  for (const auto &target : exec::getTargets())
    names.push_back(target->getName().str());
  return names;
}

static std::vector<std::string> emissions() {
  std::vector<std::string> names = {"train",    "step", "dist", "local", "stages",
                                    "schedule", "exec", "llvm"};
  for (const auto &target : exec::getTargets())
    for (StringRef name : target->getEmissions())
      names.push_back(name.str());
  names.insert(names.end(), {"object", "exe"});
  return names;
}

/// The flags of all targets behind those of the compiler.
static std::vector<Flag> withTargets(std::vector<Flag> flags) {
  for (const auto &target : exec::getTargets())
    for (const exec::TargetFlag &flag : target->getFlags())
      flags.push_back({flag.name, flag.value, flag.help, OfTarget{target.get(), flag.initial},
                       flag.choices});
  return flags;
}

ArrayRef<Flag> compileFlags() {
  using O = CompileOptions;
  static const std::vector<Flag> flags = withTargets({
      {"output", "FILE", "executable to write, or the file of --emit (default: the model's name)",
       &O::output},
      {"recipe", "FILE.toml", "read flags from a file; flags given here win", &O::recipe},
      {"target", "T", "what the executable runs on", &O::target, targetChoices()},
      {"mesh", "AXES",
       "device mesh, outermost axis first, e.g. pipe=2,data=4,tensor=2; absent: one rank",
       &O::mesh},
      {"batch", "B",
       "sequences per optimizer step over all ranks (default: one per data rank and microbatch)",
       &O::batch},
      {"seq", "S", "tokens per sequence (default: the model's positions, at most 1024)",
       &O::sequence},
      {"microbatches", "M", "parts a batch is computed in, gradients summed", &O::microbatches},
      {"zero", "STAGE",
       "what data ranks share out: 0 nothing, 1 optimizer state, 2 gradients too, 3 parameters too",
       &O::zero},
      {"sequence-parallel", "", "split the sequence between tensor ranks outside matmuls",
       &O::sequenceParallel},
      {"tensor-2d", "", "two-dimensional tensor parallelism over tensor=RxC", &O::tensor2d},
      {"data-sync",
       "HOW",
       "who adds gradients and updates: all-reduce (all ranks) or parameter-server (the first data rank)",
       &O::dataSync,
       {"all-reduce", "parameter-server"}},
      {"schedule", "NAME",
       "pipeline schedule: naive, gpipe, 1f1b, interleaved:V, zb-h1, zb-h2, zb-v", &O::schedule},
      {"cuts", "L1,L2,..", "first layers of the pipeline's chunks after the first: a chunk a stage, or V", &O::cuts},
      {"remat", "POLICY",
       "what the backward computes again: none, full, every:K, sqrt, selective, price:P, "
       "every:K+price:P (P FLOPs for a byte), between commas one for each pipeline stage, or "
       "auto[:BYTES], the least work that fits",
       &O::remat},
      {"memory-limit", "BYTES",
       "bytes a rank may use, e.g. 70GiB; also the budget of --remat auto", &O::memoryLimit},
      {"offload", "WHAT",
       "what is kept in memory of the host, between commas: optimizer (its states, which pass through "
       "the device part by part), activations (what layers keep for their backward)",
       &O::offload},
      {"offload-buffer", "BYTES",
       "bytes of the largest part of one optimizer state on its way, of which the device has three places",
       &O::offloadBuffer},
      {"collective-algorithm",
       "NAME",
       "messages of all-reduces: native (the runtime's), sequential, ring, parallel, doubling, "
       "halving-doubling, or auto, the fastest by the alpha-beta model",
       &O::collectiveAlgorithm,
       {"native", "sequential", "ring", "parallel", "doubling", "halving-doubling", "auto"}},
      {"collective-matmul",
       "HOW",
       "on: matrix products with a gathered operand or a scattered result run part by part, while the "
       "next part is on its way",
       &O::collectiveMatmul,
       {"on", "off"}},
      {"overlap",
       "HOW",
       "on: collectives run while the program computes; layers' gathers and gradients get two places. auto: on "
       "where what communicates needs no core that computes",
       &O::overlap,
       {"auto", "on", "off"}},
      {"replay", "", "make an executable that can dump a step for `meshwright replay`", &O::replay},
      {"precision",
       "TYPE",
       "type of weights and activations: f32, or bf16 or fp16 with f32 copies of the weights",
       &O::precision,
       {"f32", "bf16", "fp16", "fp8"}},
      {"grad-dtype",
       "TYPE",
       "type that parameters' gradients are summed in: f32, or bf16 with --precision bf16",
       &O::gradDtype,
       {"f32", "bf16"}},
      {"optimizer", "NAME", "sgd or adamw", &O::optimizer, {"sgd", "adamw"}},
      {"dropout", "P",
       "probability for all of the model's dropouts (default: what the config says)", &O::dropout},
      {"emit",
       "STAGE",
       "stop at train, step, dist, local, stages, schedule, exec, llvm, object or what only a "
       "target has; exe goes all the way",
       &O::emit, emissions()},
      {"dump-ir", "DIR", "write the IR after each pass into numbered files", &O::dumpIr},
      {"explain-sharding", "NAME",
       "say which seed put each axis on this parameter or input, and what it competed with",
       &O::explainSharding},
      {"report", "DIR", "write the plan as report.json and index.html", &O::report},
      {"assert", "COND",
       "fail unless the plan satisfies e.g. 'peak<=70GiB'; quantities: peak, device, host, parameter, gradient, "
       "optimizer, activation, temporary, workspace, input, output, communication, "
       "communication[AXES], flops, recomputed_flops, collectives, sums with +; may be repeated",
       &O::assertions},
  });
  return flags;
}

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

static Error readRecipe(CompileOptions &options) {
  auto fail = [&](const Twine &message) {
    return createStringError("recipe '" + options.recipe + "': " + message);
  };
  if (std::error_code error = sys::fs::access(options.recipe, sys::fs::AccessMode::Exist))
    return fail("cannot read the file: " + error.message());
  toml::parse_result parsed = toml::parse_file(options.recipe);
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
      return fail("unknown key '" + name +
                  "'; keys are the flags of 'meshwright compile --help', model and seeds");
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
              return fail("'" + name + "' is '" + value + "'; expected one of " +
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

Expected<CompileOptions> parseCompileOptions(ArrayRef<std::string> args) {
  // Twice over the same flags: once to learn the recipe's name, then on top of
  // what the recipe says.
  CompileOptions options;
  options.target = exec::getDefaultTarget().getName();
  for (bool second : {false, true}) {
    CLI::App app("Compiles a model description into one training executable.",
                 "meshwright compile");
    app.add_option("MODEL", options.model, "Hugging Face config.json, or .mlir at any floor");
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
                  option->check(CLI::IsMember(flag.choices))->type_name(flag.value);
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
      return createStringError(std::string(error.what()) + "\nSee 'meshwright compile --help'.");
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
  if (options.model.empty())
    return createStringError("no model given: name a Hugging Face config.json or a .mlir file");
  return options;
}

Error checkSupported(const CompileOptions &o) {
  auto refuse = [](const Twine &flag, const Twine &value, const Twine &works) {
    return createStringError("--" + flag + (value.isTriviallyEmpty() ? "" : " ") + value +
                             " is not supported; " + works);
  };
  for (const Flag &flag : compileFlags())
    if (auto *ofTarget = std::get_if<OfTarget>(&flag.member);
        ofTarget && o.given.count(flag.name) && ofTarget->target->getName() != o.target)
      return refuse(flag.name, o.targetFlags.at(flag.name),
                    "it is for --target " + ofTarget->target->getName());
  if (o.precision == "fp8")
    return refuse("precision", o.precision, "f32, bf16 and fp16 work");
  if (o.gradDtype == "bf16" && o.precision != "bf16")
    return refuse("grad-dtype", o.gradDtype,
                  "it goes with --precision bf16; with " + o.precision + " leave it out");
  if (const exec::Target *target = exec::findTarget(o.target);
      target && !target->getExits().empty() && !is_contained(target->getExits(), o.emit))
    return refuse("emit", o.emit,
                  "--target " + o.target + " has " + join(target->getExits(), ", "));
  for (const auto &target : exec::getTargets())
    if (target->getName() != o.target && is_contained(target->getEmissions(), o.emit))
      return refuse("emit", o.emit,
                    "it is for --target " + target->getName() + "; llvm and object work for " +
                        o.target);
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
  if (o.given.count("offload-buffer") && !is_contained(offloaded, "optimizer"))
    return createStringError("--offload-buffer " + o.offloadBuffer +
                             " is about --offload optimizer, which is not asked for");
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
