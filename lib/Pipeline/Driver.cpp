//===- Driver.cpp - the `meshwright` command ---------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "meshwright/Driver.h"
#include "CertifyCommand.h"
#include "Commands.h"
#include "ModelsCommand.h"
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

/// Configurations are read, but not compiled.
static Error describeModels(llvm::ArrayRef<std::string> args) {
  mlir::DialectRegistry registry;
  registerDialects(registry);
  mlir::MLIRContext context(registry);
  context.printOpOnDiagnostic(false);
  return listModels(args, context, llvm::outs());
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
      "  for floats of 8 bits by one of these numbers (2^-3, E4M3, or 2^-2, E5M2),\n"
      "  for the narrowest type of the op or in its kernel; f16 also by 2^-24. One in 64\n"
      "  codes of 8 bits may be the next one. Exits with 0 if all results agree, 1 if one diverges,\n"
      "  2 if the dump cannot be checked.\n";
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
      "       meshwright certify EXE\n"
      "  Proves that all ranks together compute with LOCAL.mlir, of --emit local, stages or schedule or of\n"
      "  --dump-ir after dist-partition, what the training graph GLOBAL.mlir, of --emit step, computes:\n"
      "  each output and each variable's next value. The checker shares no code with the passes. Prints\n"
      "  what was proved and what is assumed; without a proof it names the op and the reason, and exits\n"
      "  with 1.\n"
      "  Of an executable that was compiled with --certify it proves the program that EXE carries, of\n"
      "  another one what partitioning makes of the sharded IR that it carries.\n"
      "  `meshwright compile --certify` does the same while it compiles.\n";
  for (const std::string &arg : args) {
    if (arg == "-h" || arg == "--help")
      return llvm::make_error<HelpRequested>(certifyUsage);
    if (llvm::StringRef(arg).starts_with("-"))
      return llvm::createStringError("unknown option '" + arg + "'\n" + certifyUsage);
  }
  if (args.size() != 1 && args.size() != 2)
    return llvm::createStringError("needs a training graph and a program, or an executable, not " + llvm::Twine(args.size()) +
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
    return llvm::createStringError("no command given\n\n" + usageText());
  const std::string &command = args[0];
  if (command == "-h" || command == "--help")
    return llvm::make_error<HelpRequested>(usageText());
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
  if (command == "topology")
    return convertTopology(args, llvm::outs());
  if (command == "convert")
    return convertSettings(args, llvm::outs());
  if (command == "certify")
    return proveProgram(args);
  if (command == "inspect")
    return inspect(args, llvm::outs());
  if (command == "plot")
    return plot(args, llvm::outs());
  if (command == "models")
    return describeModels(args);
  if (command == "schedule")
    return showSchedule(args, llvm::outs());
  if (command == "tokenize")
    return tokenize(args, llvm::outs());
  if (command == "tokenizer")
    return makeTokenizer(args, llvm::outs());
  if (command == "run")
    return run(args);
  if (command == "completion")
    return writeCompletion(args, llvm::outs());
  if (command == "manual")
    return writeManual(args, llvm::outs());
  std::vector<llvm::StringRef> names;
  for (const Command &row : commands())
    names.push_back(row.name);
  std::string meant = nearestName(command, names);
  // What other tools have as commands.
  llvm::StringRef instead = llvm::StringSwitch<llvm::StringRef>(command)
                                .Cases({"train", "pretrain", "finetune", "generate"},
                                       "; 'meshwright compile' makes an executable that does this, whose --help lists its flags")
                                .Default("");
  if (instead.empty() && !meant.empty())
    return llvm::createStringError("unknown command '" + command + "'; did you mean '" + meant + "'? 'meshwright help' lists all commands");
  return llvm::createStringError("unknown command '" + command + "'" + instead + "; 'meshwright help' lists all commands");
}

/// `help COMMAND` as `COMMAND --help`; help has no flags of its own.
static std::vector<std::string> withoutHelp(std::vector<std::string> args) {
  if (args.empty() || args[0] != "help")
    return args;
  if (args.size() == 1 || args[1] == "help")
    return {"--help"};
  return {args[1], "--help"};
}

using Comparison = Error (*)(llvm::ArrayRef<std::string>, bool &);

/// Commands whose answer may be that something differs.
static Comparison comparisonNamed(llvm::StringRef name) {
  return llvm::StringSwitch<Comparison>(name)
      .Case("diff", compare)
      .Case("replay", replayDump)
      .Case("checkpoint", useCheckpoints)
      .Case("coord-check", runCheck<checkCoordinates>)
      .Case("verify", runCheck<verifyTraining>)
      .Default(nullptr);
}

llvm::Expected<std::string> helpOf(llvm::StringRef command) {
  if (command == "help")
    return usageText();
  bool differ = false;
  Comparison comparison = comparisonNamed(command);
  Error error = comparison ? comparison({std::string("--help")}, differ) : dispatch({command.str(), std::string("--help")});
  std::string text;
  error = llvm::handleErrors(std::move(error), [&](const HelpRequested &help) { text = help.text; });
  if (error)
    return std::move(error);
  return text;
}

int driverMain(const std::vector<std::string> &given) {
  std::vector<std::string> args = withoutHelp(given);
  // A limit on file sizes then shows as an error of write(), the linker's too.
  signal(SIGXFSZ, SIG_IGN);
  // As diff(1): 1 is no failure, but that something differs.
  Comparison comparison = comparisonNamed(args.empty() ? "" : args[0]);
  bool differ = false;
  Error error = comparison ? comparison(llvm::ArrayRef(args).drop_front(), differ) : dispatch(args);
  if (!error)
    return differ;
  if (error.isA<HelpRequested>()) {
    llvm::outs() << toString(std::move(error));
    return 0;
  }
  llvm::outs().flush(); // What was said before comes before, also where both go to one file.
  llvm::errs() << "meshwright: error: " << shortMessage(toString(std::move(error))) << "\n";
  return comparison ? 2 : 1;
}

} // namespace meshwright
