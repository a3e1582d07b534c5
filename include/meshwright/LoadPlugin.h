//===- LoadPlugin.h - passes from shared libraries --------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_LOADPLUGIN_H
#define MESHWRIGHT_LOADPLUGIN_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/Error.h"

#include <string>

namespace meshwright {

/// Refuses a file that is no shared library, or a plugin for another MLIR or another Meshwright,
/// without loading it: a second libMLIR in one process ends it.
llvm::Error checkPlugin(llvm::StringRef path);

/// Loads plugins, which register their passes and optimizers; a file that is loaded already is left as it is.
llvm::Error loadPlugins(llvm::ArrayRef<std::string> paths);

} // namespace meshwright

#endif // MESHWRIGHT_LOADPLUGIN_H
