//===- AtomicFile.h - files that appear complete or not at all --------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_ATOMICFILE_H
#define MESHWRIGHT_ATOMICFILE_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

namespace meshwright {

/// Writes `bytes` to `output` by way of a temporary file beside it. The error names the file.
llvm::Error writeFileAtomically(llvm::StringRef bytes, llvm::StringRef output);

} // namespace meshwright

#endif // MESHWRIGHT_ATOMICFILE_H
