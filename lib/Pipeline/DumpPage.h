//===- DumpPage.h - what each pass changes, as a page ------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_LIB_PIPELINE_DUMPPAGE_H
#define MESHWRIGHT_LIB_PIPELINE_DUMPPAGE_H

#include "llvm/ADT/StringRef.h"

#include <string>

namespace meshwright {

/// The beginning of index.html: style and script, of this file alone. Sections follow; what a page
/// ends with, HTML lets out, so a page is complete after each.
std::string dumpPageHead();

/// The section of a pass whose file is `name`.mlir, with the lines that it changes.
std::string dumpPageSection(llvm::StringRef name, llvm::StringRef before, llvm::StringRef after);

/// The section of a pass that changed nothing.
std::string dumpPageIdle(llvm::StringRef name);

} // namespace meshwright

#endif // MESHWRIGHT_LIB_PIPELINE_DUMPPAGE_H
