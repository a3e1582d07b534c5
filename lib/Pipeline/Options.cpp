//===- Options.cpp - flags and recipes ---------------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "meshwright/Options.h"
#include "meshwright/Bytes.h"
#include "meshwright/Strategy.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
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

//===--- where flags have an effect -------------------------------------------===//

static std::string unlessCpu(const CompileOptions &o) {
  return o.target == "cpu" ? "" : "it is for --target cpu";
}

static std::string unlessGpu(const CompileOptions &o) {
  return o.target == "cuda" ? "" : "it is for --target cuda";
}

static std::string unlessCudnnMayAdd(const CompileOptions &o) {
  if (o.target != "cuda")
    return "it is for --target cuda; code for processors gives the same bits in every run";
  return o.deterministic == "off" && o.attention == "generated"
             ? "kernels of --attention generated give the same bits in every run"
             : "";
}

static std::string unlessStatesOnHost(const CompileOptions &o) {
  return is_contained(split(o.offload, ','), "optimizer")
             ? ""
             : "it is about --offload optimizer, which is not asked for";
}

static std::string unlessOnlyBudget(const CompileOptions &o) {
  return StringRef(o.remat).starts_with("auto:")
             ? "--remat " + o.remat + " names the bytes already; write --remat auto, or leave it out"
             : "";
}

/// IR has its mesh, and what asks for nothing may be said of every mesh.
static std::string onOneRank(const CompileOptions &o, bool asksForNothing) {
  if (asksForNothing || StringRef(o.model).ends_with(".mlir"))
    return "";
  Expected<dist::Mesh> mesh = dist::parseMesh(o.mesh);
  if (!mesh) {
    consumeError(mesh.takeError()); // Others refuse it.
    return "";
  }
  return mesh->size() > 1 ? ""
                          : "one rank has no collectives; leave it out, or add e.g. --mesh data=2";
}

static std::string unlessAlgorithm(const CompileOptions &o) {
  return onOneRank(o, o.collectiveAlgorithm == "native" || o.collectiveAlgorithm == "auto");
}

static std::string unlessLooped(const CompileOptions &o) {
  return onOneRank(o, o.collectiveMatmul == "off");
}

static std::string unlessOverlap(const CompileOptions &o) { return onOneRank(o, o.overlap != "on"); }

ArrayRef<Flag> compileFlags() {
  using O = CompileOptions;
  static const std::vector<Flag> flags = {
      Flag{"output", "FILE", "executable to write, or the file of --emit (default: the model's name, of " "a config.json its folder's)", &O::output}.file(FileUse::Output),
      Flag{"recipe", "FILE.toml", "read flags from a file; flags given here win", &O::recipe}.file(FileUse::Input),
      {"target", "T", "cpu or cuda", &O::target, {"cpu", "cuda"}},
      Flag{"gpu-arch", "ARCHS", "architectures for cuda, e.g. sm_90,sm_80", &O::gpuArch}.unless(unlessGpu),
      Flag{"cpu", "NAME", "processor the cpu target's code is for, as LLVM names it; native is this one", &O::cpu}.unless(unlessCpu),
      {"mesh", "AXES", "device mesh, outermost axis first, e.g. pipe=2,data=4,tensor=2; absent: one rank", &O::mesh},
      {"batch", "B", "sequences per optimizer step over all ranks (default: one per data rank and microbatch)", &O::batch},
      {"seq", "S", "tokens per sequence (default: the model's positions, at most 1024)", &O::sequence},
      {"microbatches", "M", "parts a batch is computed in, gradients summed", &O::microbatches},
      Flag{"zero", "STAGE", "what data ranks share out: 0 nothing, 1 optimizer state, 2 gradients too, 3 parameters too", &O::zero}.until("dist"),
      Flag{"sequence-parallel", "", "split the sequence between tensor ranks outside matmuls", &O::sequenceParallel}.until("dist"),
      Flag{"tensor-2d", "", "two-dimensional tensor parallelism over tensor=RxC", &O::tensor2d}.until("dist"),
      Flag{"data-sync", "HOW", "who adds gradients and updates: all-reduce (all ranks) or parameter-server (the first data rank)", &O::dataSync, {"all-reduce", "parameter-server"}}.until("dist"),
      Flag{"schedule", "NAME", "pipeline schedule: naive, gpipe, 1f1b, interleaved:V, zb-h1, zb-h2, zb-v", &O::schedule}.until("schedule"),
      Flag{"cuts", "L1,L2,..", "first layers of the pipeline's chunks after the first: a chunk a stage, or V", &O::cuts}.until("step"),
      Flag{"remat", "POLICY", "what the backward computes again: none, full, every:K, sqrt, selective, price:P, " "every:K+price:P (P FLOPs for a byte), between commas one for each pipeline stage, or " "auto[:BYTES], the least work that fits", &O::remat}.until("stages"),
      Flag{"memory-limit", "BYTES", "bytes a rank may use, e.g. 70GiB; also the budget of --remat auto", &O::memoryLimit}.unless(unlessOnlyBudget),
      Flag{"offload", "WHAT", "what is kept in memory of the host, between commas: optimizer (its states, which pass through " "the device part by part), activations (what layers keep for their backward)", &O::offload}.until("exec"),
      Flag{"offload-buffer", "BYTES", "bytes of the largest part of one optimizer state on its way, of which the device has three places", &O::offloadBuffer}.unless(unlessStatesOnHost).until("exec"),
      Flag{"collective-algorithm", "NAME", "messages of all-reduces: native (the runtime's), sequential, ring, parallel, doubling, " "halving-doubling, or auto, the fastest by the alpha-beta model", &O::collectiveAlgorithm, {"native", "sequential", "ring", "parallel", "doubling", "halving-doubling", "auto"}}.unless(unlessAlgorithm).until("schedule"),
      Flag{"collective-matmul", "HOW", "on: matrix products with a gathered operand or a scattered result run part by part, while the " "next part is on its way", &O::collectiveMatmul, {"on", "off"}}.unless(unlessLooped).until("schedule"),
      Flag{"overlap", "HOW", "on: collectives run while the program computes; layers' gathers and gradients get two places. auto: on " "for cuda, off for cpu", &O::overlap, {"auto", "on", "off"}}.unless(unlessOverlap).until("exec"),
      Flag{"attention", "HOW", "attention for cuda: cudnn, generated, or auto, cudnn where it can and generated " "kernels otherwise", &O::attention, {"auto", "cudnn", "generated"}}.unless(unlessGpu).until("exec"),
      Flag{"deterministic", "HOW", "on: the same bits in every run; off: cudnn's gradients of attention may be added in any order, which takes " "less memory", &O::deterministic, {"on", "off"}}.unless(unlessCudnnMayAdd).until("exec"),
      Flag{"epilogues", "LIST", "what cuBLASLt does with a product before it writes it: some of bias, addend, gelu, gelu-grad, " "bias-grad between commas, or none; auto: all for sm_90 and later, those without gelu for earlier ones", &O::epilogues}.unless(unlessGpu).until("exec"),
      Flag{"replay", "", "make an executable that can dump a step for `meshwright replay`", &O::replay}.until("exec"),
      {"precision", "TYPE", "type of weights and activations: f32, or bf16 or fp16 with f32 copies of the weights", &O::precision, {"f32", "bf16", "fp16", "fp8"}},
      {"grad-dtype", "TYPE", "type that parameters' gradients are summed in: f32, or bf16 with --precision bf16", &O::gradDtype, {"f32", "bf16"}},
      {"optimizer", "NAME", "sgd or adamw", &O::optimizer, {"sgd", "adamw"}},
      Flag{"dropout", "P", "probability for all of the model's dropouts (default: what the config says)", &O::dropout}.until("train"),
      {"emit", "STAGE", "stop at train, step, dist, local, stages, schedule, exec, llvm, ptx or object; exe goes " "all the way", &O::emit, {"train", "step", "dist", "local", "stages", "schedule", "exec", "llvm", "ptx", "object", "exe"}},
      Flag{"dump-ir", "DIR", "write the IR after each pass into numbered files", &O::dumpIr}.file(FileUse::OutputFolder, "[0-9]*-*.mlir"),
      Flag{"explain-sharding", "NAME", "say which seed put each axis on this parameter or input, and what it competed with", &O::explainSharding}.until("dist"),
      Flag{"report", "DIR", "write the plan as report.json and index.html", &O::report}.file(FileUse::OutputFolder, "report.json trace.json index.html *.svg"),
      {"assert", "COND", "fail unless the plan satisfies e.g. 'peak<=70GiB'; quantities: peak, device, host, parameter, gradient, " "optimizer, activation, temporary, workspace, input, output, communication, " "communication[AXES], flops, recomputed_flops, collectives, sums with +; may be repeated", &O::assertions},
  };
  return flags;
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
static Error checkNotEmpty(const CompileOptions &options) {
  for (const Flag &flag : compileFlags()) {
    if (!options.given.count(flag.name))
      continue;
    bool empty = false;
    if (auto *text = std::get_if<std::string CompileOptions::*>(&flag.member))
      empty = StringRef(options.**text).trim().empty();
    else if (auto *texts = std::get_if<std::vector<std::string> CompileOptions::*>(&flag.member))
      empty = any_of(options.**texts, [](StringRef text) { return text.trim().empty(); });
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
      return fail("unknown key '" + name +
                  "'; keys are the flags of 'meshwright compile --help', model and seeds");
    Error error = std::visit(
        [&](auto member) -> Error {
          using T = std::decay_t<decltype(options.*member)>;
          if constexpr (std::is_same_v<T, std::vector<std::string>>) {
            if (auto text = node.value<std::string>()) {
              options.*member = {*text};
              return Error::success();
            }
            if (!node.is_array())
              return fail("'" + name + "' must be a string or a list of strings");
            for (auto &&item : *node.as_array()) {
              auto text = item.value<std::string>();
              if (!text)
                return fail("'" + name + "' must be a list of strings");
              (options.*member).push_back(*text);
            }
          } else if constexpr (std::is_same_v<T, std::string>) {
            if (node.is_string())
              options.*member = *node.value<std::string>();
            else if (node.is_integer())
              options.*member = std::to_string(*node.value<int64_t>());
            else if (node.is_floating_point()) {
              std::ostringstream text;
              text << std::setprecision(17) << *node.value<double>();
              options.*member = text.str();
            } else
              return fail("'" + name + "' must be a string");
            if (!flag->choices.empty() && !is_contained(flag->choices, options.*member))
              return fail("'" + name + "' is '" + options.*member + "'; expected one of " +
                          join(flag->choices, ", "));
          } else {
            bool fits = std::is_same_v<T, bool> ? node.is_boolean() : node.is_integer();
            if (!fits)
              return fail("'" + name + "' must be " +
                          (std::is_same_v<T, bool> ? "true or false" : "an integer"));
            options.*member = *node.value<T>();
          }
          return Error::success();
        },
        flag->member);
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
  for (bool second : {false, true}) {
    CLI::App app("Compiles a model description into one training executable.",
                 "meshwright compile");
    app.add_option("MODEL", options.model, "Hugging Face config.json, or .mlir at any floor");
    for (const Flag &flag : compileFlags()) {
      std::string spelling =
          std::string(flag.name) == "output" ? "-o,--output" : std::string("--") + flag.name;
      std::visit(
          [&](auto member) {
            using T = std::decay_t<decltype(options.*member)>;
            if constexpr (std::is_same_v<T, bool>) {
              app.add_flag(spelling, options.*member, flag.help);
            } else {
              CLI::Option *option =
                  app.add_option(spelling, options.*member, flag.help)->type_name(flag.value);
              if constexpr (std::is_same_v<T, std::vector<std::string>>)
                option->allow_extra_args(false); // one value each time, the next word is the model
              if constexpr (std::is_same_v<T, std::string>) {
                if (!flag.choices.empty())
                  option->check(CLI::IsMember(flag.choices))->type_name(flag.value);
                if (!(options.*member).empty())
                  option->capture_default_str();
              } else if constexpr (std::is_same_v<T, int64_t>) {
                option->transform(CLI::Validator(checkInteger, ""));
                if (options.*member)
                  option->capture_default_str();
              }
            }
          },
          flag.member);
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
      fresh.recipe = options.recipe;
      if (Error error = readRecipe(fresh))
        return std::move(error);
      fresh.fromRecipe = fresh.given;
      options = fresh;
    }
  }
  if (options.model.empty())
    return createStringError("no model given: name a Hugging Face config.json or a .mlir file");
  return options;
}

static std::string textOf(const Flag &flag, const CompileOptions &options) {
  auto *text = std::get_if<std::string CompileOptions::*>(&flag.member);
  return text ? options.**text : "";
}

Error checkSupported(const CompileOptions &o) {
  auto refuse = [](const Twine &flag, const Twine &value, const Twine &works) {
    return createStringError("--" + flag + (value.isTriviallyEmpty() ? "" : " ") + value +
                             " is not supported; " + works);
  };
  for (const Flag &flag : compileFlags()) {
    if (!flag.idle || !o.given.count(flag.name))
      continue;
    if (std::string why = flag.idle(o); !why.empty())
      return createStringError(Twine("--") + flag.name + " " + textOf(flag, o) +
                               " changes nothing: " + why);
  }
  if (o.epilogues != "auto" && o.epilogues != "none")
    for (StringRef name : split(o.epilogues, ','))
      if (!is_contained({"bias", "addend", "gelu", "gelu-grad", "bias-grad"}, name))
        return refuse("epilogues", o.epilogues,
                      "there are bias, addend, gelu, gelu-grad and bias-grad, or auto or none");
  if (o.emit == "ptx" && StringRef(o.gpuArch).contains(','))
    return refuse("emit ptx with --gpu-arch", o.gpuArch,
                  "PTX is one module: name one architecture");
  if (o.precision == "fp8")
    return refuse("precision", o.precision, "f32, bf16 and fp16 work");
  if (o.gradDtype == "bf16" && o.precision != "bf16")
    return refuse("grad-dtype", o.gradDtype,
                  "it goes with --precision bf16; with " + o.precision + " leave it out");
  if (o.emit == "ptx" && o.target != "cuda")
    return refuse("emit", o.emit, "the cpu target has no PTX; llvm and object work");
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
