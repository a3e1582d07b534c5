//===- OptimizerGroups.h - groups of parameters in files --------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_LIB_PIPELINE_OPTIMIZERGROUPS_H
#define MESHWRIGHT_LIB_PIPELINE_OPTIMIZERGROUPS_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <string>

namespace meshwright {

/// What `value` of --optimizer-groups says: the value itself, or if it names a file (*.toml) the groups of its tables
/// [[group]], in their order.
llvm::Expected<std::string> optimizerGroupsOf(llvm::StringRef value);

} // namespace meshwright

#endif // MESHWRIGHT_LIB_PIPELINE_OPTIMIZERGROUPS_H
