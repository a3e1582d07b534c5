//===- Tokenize.h - the commands that make tokens ------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_TOKENIZE_H
#define MESHWRIGHT_TOKENIZE_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/raw_ostream.h"

namespace meshwright {

/// `meshwright tokenize`: text to files of tokens.
llvm::Error tokenize(llvm::ArrayRef<std::string> args, llvm::raw_ostream &os);

/// `meshwright tokenizer train`: a tokenizer.json from text.
llvm::Error makeTokenizer(llvm::ArrayRef<std::string> args, llvm::raw_ostream &os);

} // namespace meshwright

#endif // MESHWRIGHT_TOKENIZE_H
