//===- TomlText.h - values as TOML writes them ------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_PIPELINE_TOMLTEXT_H
#define MESHWRIGHT_PIPELINE_TOMLTEXT_H

#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"

namespace meshwright {

/// `text` as a string of TOML, which a string of JSON is.
inline std::string tomlString(llvm::StringRef text) {
  return llvm::formatv("{0}", llvm::json::Value(text)).str();
}

} // namespace meshwright

#endif // MESHWRIGHT_PIPELINE_TOMLTEXT_H
