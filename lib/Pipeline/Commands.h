//===- Commands.h - the commands of `meshwright` -----------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_LIB_PIPELINE_COMMANDS_H
#define MESHWRIGHT_LIB_PIPELINE_COMMANDS_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/Error.h"

#include <string>

namespace meshwright {

/// A command: help, completions and manual pages are made of this table.
struct Command {
  const char *name;
  const char *arguments; ///< "MODEL [flags] -o EXE"
  const char *summary;
  bool compiles = false; ///< whether it takes the flags of `compile` beside its own
};

llvm::ArrayRef<Command> commands();

/// What `meshwright` says of itself.
std::string usageText();

/// What `meshwright COMMAND --help` says.
llvm::Expected<std::string> helpOf(llvm::StringRef command);

/// `meshwright completion SHELL`: a shell's completions, as a script.
llvm::Error writeCompletion(llvm::ArrayRef<std::string> args, llvm::raw_ostream &os);

/// `meshwright manual [COMMAND]`: a manual page, as man(1) reads it; with -o DIR all of them.
llvm::Error writeManual(llvm::ArrayRef<std::string> args, llvm::raw_ostream &os);

} // namespace meshwright

#endif // MESHWRIGHT_LIB_PIPELINE_COMMANDS_H
