//===- OutputFiles.cpp - where the compiler may write -------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "OutputFiles.h"

#include "meshwright/Codegen.h"
#include "meshwright/PlanJson.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

using llvm::createStringError;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;

namespace meshwright {

/// What a model is called: its file's name, or its folder's where the file is a config.json
/// like all others.
static std::string modelName(StringRef model) {
  StringRef stem = llvm::sys::path::stem(model);
  if (stem != "config")
    return stem.str();
  llvm::SmallString<256> path(model);
  if (llvm::sys::fs::make_absolute(path))
    return stem.str();
  llvm::sys::path::remove_dots(path, /*remove_dot_dot=*/true);
  StringRef folder = llvm::sys::path::filename(llvm::sys::path::parent_path(path));
  return folder.empty() || llvm::sys::path::is_separator(folder.front()) ? stem.str()
                                                                         : folder.str();
}

std::string outputPath(const CompileOptions &options) {
  if (!options.output.empty())
    return options.output;
  if (options.emit != "exe")
    return "-";
  std::string name = modelName(options.model);
  // The folder of the model, as a rule.
  return llvm::sys::fs::is_directory(name) ? name + "-train" : name;
}

Error checkFiles(const CompileOptions &options) {
  std::vector<FileArgument> files = {{"MODEL", options.model, FileUse::Input}};
  for (const Flag &flag : compileFlags()) {
    // A list's files are below.
    std::string file = flag.use == FileUse::None || flag.form == Flag::List ? "" : flag.text(options);
    if (!file.empty() && flag.name != StringRef("output"))
      files.push_back({std::string("--") + flag.name, file, flag.use, flag.writes});
  }
  for (const std::string &plugin : options.passPlugins)
    files.push_back({"--load-pass-plugin", plugin, FileUse::Input});
  if (std::string output = outputPath(options); output != "-" || options.emit == "exe")
    files.push_back(options.emit == "chakra"
                        ? FileArgument{"-o", output, FileUse::OutputFolder, "step.*.et groups.json"}
                        : FileArgument{"-o", output, FileUse::Output});
  std::string clash = clashOf(files);
  return clash.empty() ? Error::success() : createStringError(clash);
}

Error refuseOutput(CompileOptions &options, StringRef command) {
  for (const Flag &flag : compileFlags()) {
    bool writes = flag.use == FileUse::Output || flag.use == FileUse::OutputFolder;
    bool asserts = flag.name == StringRef("assert");
    bool certifies = flag.name == StringRef("certify");
    if (!writes && !asserts && !certifies && flag.name != StringRef("emit"))
      continue;
    if (options.given.count(flag.name) && !options.fromRecipe.count(flag.name))
      return createStringError(llvm::Twine("--") + flag.name + (*flag.without ? "=" : " ") + flag.text(options) +
                               " changes nothing: " + command +
                               (asserts && command == "fit"
                                    ? " holds plans to --memory-limit alone"
                                : asserts || certifies ? " checks nothing"
                                          : " writes nothing") +
                               "; give it to 'meshwright compile'");
  }
  options.dumpIr.clear();
  options.report.clear();
  options.certify = Certify::none;
  options.emit = "exec";
  return Error::success();
}

Error prepareFolder(StringRef flag, StringRef folder) {
  std::error_code error = llvm::sys::fs::create_directories(folder);
  if (!error && !llvm::sys::fs::is_directory(folder)) // A file of this name is no error above.
    error = std::make_error_code(std::errc::not_a_directory);
  if (!error)
    error = llvm::sys::fs::access(folder, llvm::sys::fs::AccessMode::Write);
  if (!error)
    return Error::success();
  return createStringError("--" + flag + ": cannot write in the folder '" + folder +
                           "': " + error.message());
}

Error checkReplaced(const CompileOptions &options, const CompiledPlan &plan) {
  std::string output = outputPath(options);
  if (!options.output.empty() || !llvm::sys::fs::exists(output))
    return Error::success();
  auto refuse = [&](StringRef what) {
    return createStringError("'" + llvm::Twine(output) + "' " + what +
                             " and would be overwritten; name the executable with -o");
  };
  Expected<std::string> text = readPlan(output);
  if (!text) {
    consumeError(text.takeError());
    return refuse("is there already, is no executable of this compiler,");
  }
  Expected<plan::Plan> there = plan::parse<plan::Plan>(*text);
  bool same = there && there->model == plan.model && there->config == plan.config;
  if (!there)
    consumeError(there.takeError());
  if (!same)
    return refuse("is an executable of another model");
  return Error::success();
}

} // namespace meshwright
