//===- OutputFiles.h - where the compiler may write ---------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_PIPELINE_OUTPUTFILES_H
#define MESHWRIGHT_PIPELINE_OUTPUTFILES_H

#include "meshwright/Options.h"
#include "meshwright/Report.h"

namespace meshwright {

/// The file of -o; without it the executable is called after its model, and "-", the standard
/// output, is where the other phases go.
std::string outputPath(const CompileOptions &options);

/// Refuses files of the command line that are one file and not only read.
llvm::Error checkFiles(const CompileOptions &options);

/// Refuses flags of output where `command` writes nothing; what a recipe says of an executable is
/// left out.
llvm::Error refuseOutput(CompileOptions &options, llvm::StringRef command);

/// Makes the folder that --`flag` names; an error if nothing can be written there.
llvm::Error prepareFolder(llvm::StringRef flag, llvm::StringRef folder);

/// Refuses to overwrite what a user has not named: without -o, another model's executable or
/// any other file. `plan` is of what is to be written.
llvm::Error checkReplaced(const CompileOptions &options, const CompiledPlan &plan);

} // namespace meshwright

#endif // MESHWRIGHT_PIPELINE_OUTPUTFILES_H
