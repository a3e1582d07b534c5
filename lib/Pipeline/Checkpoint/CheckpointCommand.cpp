//===- CheckpointCommand.cpp - the `checkpoint` command -------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Commands.h"
#include "meshwright/Pipeline.h"

#include "common/monitor/Error.h"
#include "meshwright/runtime/Suggestion.h"

#include "llvm/Support/raw_ostream.h"

#include <sstream>

namespace meshwright {

using namespace checkpoint;

static constexpr const char *usage =
    "usage: meshwright checkpoint COMMAND PATH... [flags]\n"
    "  inspect PATH... [--tensors]       show step, flags and files, with --tensors all tensors\n"
    "  verify PATH...                    check every checksum, and that all values are finite\n"
    "  diff A B [--all]                  compare states and tensors\n"
    "  convert PATH -o DIR [--dtype f32|bf16|f16] [--shard-size BYTES] [--ema]\n"
    "                                    write the weights as a folder of Hugging Face; --ema takes\n"
    "                                    the averages of weights, --shard-size several files with\n"
    "                                    an index\n"
    "  merge PATH... -o DIR [--weights W,..]\n"
    "                                    average the weights of several checkpoints of one model\n"
    "  surgery PATH -o DIR [--rename OLD=NEW].. [--drop PATTERN].. [--reinit PATTERN=HOW].. [--seed N]\n"
    "          [--reset-optimizer] [--reset-step]\n"
    "                                    write a checkpoint that resumes, with weights renamed, dropped\n"
    "                                    or begun anew (zeros, ones, normal:STD), together with their\n"
    "                                    states of the optimizer\n"
    "  PATH is a checkpoint, a folder of --save (its latest; for verify all), a model's folder or a\n"
    "  safetensors file. DIR must be new: it appears when all of it is on the disk. Exits with 0; with\n"
    "  1 if diff finds a difference or verify damage; with 2 on errors.\n";

namespace {
struct Subcommand {
  const char *name;
  bool (*run)(const Arguments &, std::ostream &);
  size_t least, most; ///< paths
  std::vector<std::string> switches, values; ///< flags without and with a value
  bool writes;
};
} // namespace

static const Subcommand subcommands[] = {
    {"inspect", inspect, 1, SIZE_MAX, {"--tensors"}, {}, false},
    {"verify", verify, 1, SIZE_MAX, {}, {}, false},
    {"diff", checkpoint::diff, 2, 2, {"--all"}, {}, false},
    {"convert", convert, 1, 1, {"--ema"}, {"-o", "--dtype", "--shard-size"}, true},
    {"merge", merge, 2, SIZE_MAX, {}, {"-o", "--weights"}, true},
    {"surgery", surgery, 1, 1, {"--reset-optimizer", "--reset-step"},
     {"-o", "--rename", "--drop", "--reinit", "--seed"}, true}};

std::string Arguments::value(const std::string &name, const std::string &otherwise) const {
  auto found = flags.find(name);
  if (found == flags.end())
    return otherwise;
  if (found->second.size() > 1)
    fail(name, " is given twice: drop one of them");
  return found->second.front();
}

std::vector<std::string> Arguments::values(const std::string &name) const {
  auto found = flags.find(name);
  return found == flags.end() ? std::vector<std::string>() : found->second;
}

/// The command line of `command`.
static Arguments parse(const Subcommand &command, llvm::ArrayRef<std::string> args) {
  auto has = [](const std::vector<std::string> &names, const std::string &name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  Arguments arguments;
  for (size_t i = 0; i < args.size(); ++i) {
    if (has(command.switches, args[i])) {
      arguments.flags[args[i]].push_back("");
    } else if (has(command.values, args[i])) {
      if (i + 1 == args.size() || args[i + 1].empty())
        fail(args[i], " needs a value\n", usage);
      arguments.flags[args[i]].push_back(args[i + 1]);
      ++i;
    } else if (args[i].rfind("-", 0) == 0) {
      fail("unknown option '", args[i], "' of checkpoint ", command.name, "\n", usage);
    } else {
      arguments.paths.push_back(args[i]);
    }
  }
  if (arguments.paths.size() < command.least || arguments.paths.size() > command.most)
    fail("checkpoint ", command.name, " needs ", command.least == 1 ? "a path" : command.most == 2 ? "two paths" : "two paths or more",
         ", not ", arguments.paths.size(), "\n", usage);
  if (command.writes && !arguments.has("-o"))
    fail("checkpoint ", command.name, " needs -o DIR, the folder to write\n", usage);
  return arguments;
}

llvm::Error useCheckpoints(llvm::ArrayRef<std::string> args, bool &found) {
  if (args.empty())
    return llvm::createStringError(llvm::Twine("no command given\n") + usage);
  for (const std::string &arg : args)
    if (arg == "-h" || arg == "--help")
      return llvm::make_error<HelpRequested>(usage);
  std::vector<std::string> names;
  for (const Subcommand &command : subcommands)
    names.push_back(command.name);
  try {
    for (const Subcommand &command : subcommands) {
      if (args[0] != command.name)
        continue;
      std::ostringstream text;
      found = command.run(parse(command, args.drop_front()), text);
      llvm::outs() << text.str();
      return llvm::Error::success();
    }
  } catch (const std::exception &error) {
    return llvm::createStringError(llvm::Twine(error.what()));
  }
  std::string meant = nearestName(args[0], names);
  return llvm::createStringError("unknown command 'checkpoint " + args[0] + "'" +
                                 (meant.empty() ? "\n" + llvm::Twine(usage) : "; did you mean '" + llvm::Twine(meant) + "'?"));
}

} // namespace meshwright
