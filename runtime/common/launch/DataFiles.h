//===- DataFiles.h - the files that flags of data mean --------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_RUNTIME_COMMON_DATAFILES_H
#define MESHWRIGHT_RUNTIME_COMMON_DATAFILES_H

#include "common/launch/Options.h"

namespace meshwright {

/// The files that `value` of `flag` means: those of a folder or a pattern by name, or itself.
Options::Files filesNamed(const char *flag, const std::string &value);

/// Replaces the values of --data, PATH or PATH:WEIGHT, by the files that they mean, says which sources these
/// are, and, where no flag says it, whether they are shuffled: unless all data is one file that is named.
void resolveData(Options &options);

/// Replaces the values of --eval-data and of its masks and documents, PATH or NAME=PATH, by the files that they
/// mean, and says which sets these are.
void resolveEvaluation(Options &options);

} // namespace meshwright

#endif // MESHWRIGHT_RUNTIME_COMMON_DATAFILES_H
