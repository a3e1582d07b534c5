//===- Sections.h - what executables tell the compiler -----------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_LIB_CODEGEN_SECTIONS_H
#define MESHWRIGHT_LIB_CODEGEN_SECTIONS_H

#include "llvm/Support/Error.h"

#include <string>

namespace meshwright {

/// The contents of section .meshwright.NAME of a file; empty where there is none.
llvm::Expected<std::string> readSection(llvm::StringRef file, llvm::StringRef name);

} // namespace meshwright

#endif // MESHWRIGHT_LIB_CODEGEN_SECTIONS_H
