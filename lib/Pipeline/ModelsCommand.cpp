//===- ModelsCommand.cpp - meshwright models --------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "ModelsCommand.h"

#include "DiagnosticCollector.h"
#include "Train/Train.h"
#include "meshwright/Frontend.h"
#include "meshwright/HelpRequested.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"

using namespace meshwright;
using llvm::Error;
using llvm::StringRef;

static constexpr const char *modelsUsage =
    "usage: meshwright models [FILE|DIR]...\n"
    "  Without arguments: lists the supported model families. For each, it shows what its results are\n"
    "  compared with, releases whose configurations are read, the keys of config.json that are\n"
    "  read, with their defaults, the keys for which only one value is supported, and the keys\n"
    "  that are ignored because they do not affect training. Any other key is an error. Then it lists\n"
    "  model types that are refused, and why.\n"
    "  FILE: a config.json; says of which family it is and how many parameters are trained, or why it\n"
    "  is refused. DIR: the same for each .json file in it and in the folders below that has a\n"
    "  \"model_type\". The exit status is 1 if one is refused.\n";

/// The configurations that `path` stands for, in order. Not every JSON file of a folder is one.
static llvm::Expected<std::vector<std::string>> configurationsAt(StringRef path) {
  if (!llvm::sys::fs::is_directory(path))
    return std::vector<std::string>{path.str()};
  std::vector<std::string> files;
  std::error_code error;
  for (llvm::sys::fs::recursive_directory_iterator entry(path, error), end; entry != end && !error;
       entry.increment(error)) {
    if (llvm::sys::path::extension(entry->path()) != ".json")
      continue;
    auto buffer = llvm::MemoryBuffer::getFile(entry->path(), /*IsText=*/true);
    if (buffer && (*buffer)->getBuffer().contains("\"model_type\""))
      files.push_back(entry->path());
  }
  if (error)
    return llvm::createStringError("cannot list the folder '" + path + "': " + error.message());
  if (files.empty())
    return llvm::createStringError("the folder '" + path + "' has no .json file with a \"model_type\"; name one");
  llvm::sort(files);
  return files;
}

/// 1234567 as 1,234,567.
static std::string grouped(int64_t number) {
  std::string digits = std::to_string(number);
  for (size_t at = digits.size(); at > 3;)
    digits.insert(at -= 3, ",");
  return digits;
}

/// The numbers that steps change.
static int64_t trainedNumbers(mlir::ModuleOp module) {
  int64_t count = 0;
  for (auto variable : module.getOps<train::VariableOp>())
    if (!variable->hasAttr(train::frozenAttr))
      count += llvm::cast<mlir::RankedTensorType>(variable.getType()).getNumElements();
  return count;
}

/// Says of the configuration `path` what it is, or why it is refused; false then.
static bool answer(StringRef path, mlir::MLIRContext &context, llvm::raw_ostream &os) {
  DiagnosticCollector diagnostics(context);
  ModelOptions options;
  // An encoder needs some task; which tokens are masked changes no parameter.
  auto module = importHuggingFace(path, options, context);
  if (mlir::failed(module)) {
    std::string message = llvm::toString(diagnostics.take("it is refused"));
    if (StringRef(message).contains("--mlm")) {
      DiagnosticCollector again(context);
      options.masked = MaskedTokens{0.15, 0};
      module = importHuggingFace(path, options, context);
      message = mlir::failed(module) ? llvm::toString(again.take("it is refused")) : "";
    }
    if (mlir::failed(module)) {
      os << path << ": refused\n";
      for (StringRef line : llvm::split(message, '\n'))
        os << "  " << line << "\n";
      return false;
    }
  }
  auto name = (**module)->getAttrOfType<mlir::StringAttr>(train::modelAttr);
  os << path << ": " << name.getValue() << ", " << grouped(trainedNumbers(**module)) << " parameters\n";
  return true;
}

Error meshwright::listModels(llvm::ArrayRef<std::string> args, mlir::MLIRContext &context, llvm::raw_ostream &os) {
  if (!args.empty() && (args[0] == "-h" || args[0] == "--help"))
    return llvm::make_error<HelpRequested>(modelsUsage);
  if (args.empty()) {
    describeFamilies(os);
    return Error::success();
  }
  int64_t all = 0, refused = 0;
  for (StringRef path : args) {
    if (path.starts_with("-"))
      return llvm::createStringError("unexpected '" + path + "'\n" + modelsUsage);
    auto files = configurationsAt(path);
    if (!files)
      return files.takeError();
    for (const std::string &file : *files) {
      ++all;
      refused += !answer(file, context, os);
    }
  }
  if (all > 1)
    os << all - refused << " of " << all << " are supported\n";
  if (refused)
    return llvm::createStringError(llvm::Twine(refused) + " of " + llvm::Twine(all) +
                                   (all == 1 ? " configuration is refused" : " configurations are refused"));
  return Error::success();
}
