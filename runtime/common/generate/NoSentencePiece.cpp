//===- NoSentencePiece.cpp - what executables do not read -----------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// SentencePiece is a shared library of its own in Debian, and executables need none.
//
//===----------------------------------------------------------------------===//
#include "Tokenizer/Core/Error.h"
#include "Tokenizer/Core/Tokenizer.h"

std::unique_ptr<meshwright::tokenizer::Tokenizer>
meshwright::tokenizer::makeSentencePieceTokenizer(const std::string &, const std::string &path) {
  fail("'", path,
       "' is a model of SentencePiece, which executables do not read; give the model's "
       "tokenizer.json with --tokenizer");
}
