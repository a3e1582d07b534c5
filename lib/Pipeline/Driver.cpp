//===- Driver.cpp - the `meshwright` command ---------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "meshwright/Driver.h"
#include "CertifyCommand.h"
#include "meshwright/Frontend.h"
#include "meshwright/Pipeline.h"
#include "meshwright/Register.h"
#include "meshwright/Report.h"
#include "meshwright/Tokenize.h"
#include "meshwright/runtime/ShortMessage.h"
#include "meshwright/runtime/Suggestion.h"
#include "meshwright/runtime/Version.h"

#include "mlir/IR/MLIRContext.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Config/llvm-config.h"

#include <csignal>

using llvm::Error;

namespace meshwright {

static constexpr const char *usage =
    "Meshwright compiles transformer training into parallel executables.\n\n"
    "  meshwright compile MODEL [flags] -o EXE     compile a config.json, its folder, or a .mlir "
    "file\n"
    "  meshwright fit MODEL --largest batch        find the largest batch that a memory budget "
    "allows\n"
    "  meshwright predict MODEL --cluster CLUSTER  predict step time, MFU and peak memory on a cluster\n"
    "  meshwright plan MODEL --cluster CLUSTER     find the fastest parallel layout that fits in memory\n"
    "  meshwright calibrate -o FILE.toml           measure this machine as a cluster file for predict and\n"
    "                                              plan\n"
    "  meshwright convert SETTINGS                 convert settings of Megatron-LM, DeepSpeed, torchtitan or\n"
    "                                              nanotron into flags\n"
    "  meshwright inspect EXE [--json|--kernels]   show the plan of an executable, or of a report\n"
    "  meshwright verify MODEL [flags]             train a small model with the compiled program and with the\n"
    "                                              sequential one, and compare\n"
    "  meshwright certify GLOBAL.mlir LOCAL.mlir   prove that a rank's program computes the training graph\n"
    "  meshwright models                           list the model families and their keys\n"
    "  meshwright schedule NAME --stages P ...     draw a pipeline schedule\n"
    "  meshwright diff A B                         compare two plans\n"
    "  meshwright tokenize TEXT... -o DIR          tokenize text into files of training data\n"
    "  meshwright tokenizer train TEXT...          train a BPE tokenizer on text\n"
    "  meshwright run -n N EXE ARGS...             start an executable's ranks\n"
    "  meshwright plot FILE... [-o SVG]            plot the losses in --metrics files; with --experts,\n"
    "                                              the load of each expert\n"
    "  meshwright replay DIR                       check a step that --dump wrote, op by op\n"
    "  meshwright coord-check MODEL --widths W,..  check that activations do not grow with the width of a\n"
    "                                              model (muP)\n"
    "  meshwright help [COMMAND]                   show this, or a command's flags\n"
    "  meshwright --version                        show the version\n";

static const std::vector<std::string> commands = {"compile", "fit", "predict", "plan", "calibrate", "convert", "inspect", "verify", "certify", "models", "schedule",
                                                  "diff",    "run", "plot",    "replay", "coord-check", "tokenize", "tokenizer", "help"};

static Error listModels(llvm::ArrayRef<std::string> args) {
  static constexpr const char *modelsUsage =
      "usage: meshwright models\n"
      "  Lists the supported model families. For each, it shows the keys of config.json that are\n"
      "  read, with their defaults, the keys for which only one value is supported, and the keys\n"
      "  that are ignored because they do not affect training. Any other key is an error.\n";
  if (!args.empty() && (args[0] == "-h" || args[0] == "--help"))
    return llvm::make_error<HelpRequested>(modelsUsage);
  if (!args.empty())
    return llvm::createStringError("unexpected '" + args[0] + "'\n" + modelsUsage);
  describeFamilies(llvm::outs());
  return Error::success();
}

static Error compare(llvm::ArrayRef<std::string> args, bool &differ) {
  static constexpr const char *diffUsage =
      "usage: meshwright diff A B\n"
      "  Shows the differences between two plans: memory, shardings, communication, FLOPs.\n"
      "  A and B are executables or files of 'inspect --json' or '--report'. Exits with 0 if\n"
      "  the plans are the same, 1 if they differ, 2 if they cannot be compared.\n";
  for (const std::string &arg : args) {
    if (arg == "-h" || arg == "--help")
      return llvm::make_error<HelpRequested>(diffUsage);
    if (llvm::StringRef(arg).starts_with("-"))
      return llvm::createStringError("unknown option '" + arg + "'\n" + diffUsage);
  }
  if (args.size() != 2)
    return llvm::createStringError("needs two plans, not " + llvm::Twine(args.size()) + "\n" +
                                   diffUsage);
  llvm::Expected<bool> result = diff(args[0], args[1], llvm::outs());
  if (!result)
    return result.takeError();
  differ = *result;
  return Error::success();
}

static Error replayDump(llvm::ArrayRef<std::string> args, bool &diverges) {
  static constexpr const char *replayUsage =
      "usage: meshwright replay DIR\n"
      "  Checks a step that an executable compiled with --replay wrote with --dump DIR: interprets\n"
      "  its program in f64 from the same inputs, each op on the operands that the executable had,\n"
      "  and names the first op, over all ranks, whose result diverges. The tolerance is the effect\n"
      "  of changing operands and result by 2^-15 (f32), 2^-8 (f16) or 2^-5 (bf16) of their size,\n"
      "  for the narrowest type of the op or in its kernel; f16 also by 2^-24. Exits with 0 if all\n"
      "  results agree, 1 if one diverges, 2 if the dump cannot be checked.\n";
  for (const std::string &arg : args) {
    if (arg == "-h" || arg == "--help")
      return llvm::make_error<HelpRequested>(replayUsage);
    if (llvm::StringRef(arg).starts_with("-"))
      return llvm::createStringError("unknown option '" + arg + "'\n" + replayUsage);
  }
  if (args.size() != 1)
    return llvm::createStringError("needs one directory, not " + llvm::Twine(args.size()) + "\n" +
                                   replayUsage);
  mlir::DialectRegistry registry;
  registerDialects(registry);
  mlir::MLIRContext context(registry);
  context.loadAllAvailableDialects();
  context.printOpOnDiagnostic(false);
  llvm::Expected<bool> result = replay(args[0], context, llvm::outs());
  if (!result)
    return result.takeError();
  diverges = *result;
  return Error::success();
}

static Error proveProgram(llvm::ArrayRef<std::string> args) {
  static constexpr const char *certifyUsage =
      "usage: meshwright certify GLOBAL.mlir LOCAL.mlir\n"
      "  Proves that all ranks together compute with the program LOCAL.mlir, of --emit local or of\n"
      "  --dump-ir after dist-partition, what the training graph GLOBAL.mlir, of --emit step, computes:\n"
      "  each output and each variable's next value. The checker shares no code with propagation and\n"
      "  partitioning. Prints what was proved and what is assumed; without a proof it names the op and\n"
      "  the reason, and exits with 1.\n"
      "  `meshwright compile --certify` does the same while it compiles.\n";
  for (const std::string &arg : args) {
    if (arg == "-h" || arg == "--help")
      return llvm::make_error<HelpRequested>(certifyUsage);
    if (llvm::StringRef(arg).starts_with("-"))
      return llvm::createStringError("unknown option '" + arg + "'\n" + certifyUsage);
  }
  if (args.size() != 2)
    return llvm::createStringError("needs a training graph and a program, not " + llvm::Twine(args.size()) +
                                   " files\n" + certifyUsage);
  mlir::DialectRegistry registry;
  registerDialects(registry);
  mlir::MLIRContext context(registry);
  context.loadAllAvailableDialects();
  context.printOpOnDiagnostic(false);
  return certifyFiles(args, context, llvm::outs());
}

/// Runs a command that compiles several modules and says whether something differs.
using Check = llvm::Expected<bool> (*)(llvm::ArrayRef<std::string>, mlir::MLIRContext &, llvm::raw_ostream &);
template <Check check> static Error runCheck(llvm::ArrayRef<std::string> args, bool &differ) {
  mlir::DialectRegistry registry;
  registerDialects(registry);
  registerPasses();
  mlir::MLIRContext context(registry);
  context.loadAllAvailableDialects();
  context.printOpOnDiagnostic(false);
  llvm::Expected<bool> result = check(args, context, llvm::outs());
  if (!result)
    return result.takeError();
  differ = *result;
  return Error::success();
}

static Error dispatch(llvm::ArrayRef<std::string> args) {
  if (args.empty())
    return llvm::createStringError(llvm::Twine("no command given\n\n") + usage);
  const std::string &command = args[0];
  if (command == "-h" || command == "--help")
    return llvm::make_error<HelpRequested>(usage);
  if (command == "--version")
    return llvm::make_error<HelpRequested>(
        (llvm::Twine("meshwright ") + version + ", with LLVM " + LLVM_VERSION_STRING + "\n").str());
  args = args.drop_front();
  if (command == "compile" || command == "fit" || command == "predict" || command == "plan" ||
      command == "calibrate") {
    mlir::DialectRegistry registry;
    registerDialects(registry);
    registerPasses();
    mlir::MLIRContext context(registry);
    // Code generation builds ops of dialects that no pass declares.
    context.loadAllAvailableDialects();
    context.printOpOnDiagnostic(false); // An op may hold a whole program.
    if (command == "fit")
      return fit(args, context, llvm::outs());
    if (command == "predict")
      return predict(args, context, llvm::outs());
    if (command == "calibrate")
      return calibrateMachine(args, context, llvm::outs());
    if (command == "plan")
      return planLayout(args, context, llvm::outs());
    llvm::Expected<CompileOptions> options = parseCompileOptions(args);
    return options ? compile(*options, context, llvm::outs()) : options.takeError();
  }
  if (command == "convert")
    return convertSettings(args, llvm::outs());
  if (command == "certify")
    return proveProgram(args);
  if (command == "inspect")
    return inspect(args, llvm::outs());
  if (command == "plot")
    return plot(args, llvm::outs());
  if (command == "models")
    return listModels(args);
  if (command == "schedule")
    return showSchedule(args, llvm::outs());
  if (command == "tokenize")
    return tokenize(args, llvm::outs());
  if (command == "tokenizer")
    return makeTokenizer(args, llvm::outs());
  if (command == "run")
    return run(args);
  std::string meant = nearestName(command, commands);
  return llvm::createStringError("unknown command '" + command + "'" +
                                 (meant.empty() ? "\n\n" + llvm::Twine(usage)
                                                : "; did you mean '" + llvm::Twine(meant) +
                                                      "'? 'meshwright help' lists all commands"));
}

/// `help COMMAND` as `COMMAND --help`; help has no flags of its own.
static std::vector<std::string> withoutHelp(std::vector<std::string> args) {
  if (args.empty() || args[0] != "help")
    return args;
  if (args.size() == 1 || args[1] == "help")
    return {"--help"};
  return {args[1], "--help"};
}

int driverMain(const std::vector<std::string> &given) {
  std::vector<std::string> args = withoutHelp(given);
  // A limit on file sizes then shows as an error of write(), the linker's too.
  signal(SIGXFSZ, SIG_IGN);
  // As diff(1): 1 is no failure, but that something differs.
  using Comparison = Error (*)(llvm::ArrayRef<std::string>, bool &);
  auto comparison = llvm::StringSwitch<Comparison>(args.empty() ? "" : args[0])
                        .Case("diff", compare)
                        .Case("replay", replayDump)
                        .Case("coord-check", runCheck<checkCoordinates>)
                        .Case("verify", runCheck<verifyTraining>)
                        .Default(nullptr);
  bool differ = false;
  Error error = comparison ? comparison(llvm::ArrayRef(args).drop_front(), differ) : dispatch(args);
  if (!error)
    return differ;
  if (error.isA<HelpRequested>()) {
    llvm::outs() << toString(std::move(error));
    return 0;
  }
  llvm::errs() << "meshwright: error: " << shortMessage(toString(std::move(error))) << "\n";
  return comparison ? 2 : 1;
}

} // namespace meshwright
