//===- TokenIds.h - text that is numbers of tokens ------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_RUNTIME_COMMON_TOKENIDS_H
#define MESHWRIGHT_RUNTIME_COMMON_TOKENIDS_H

#include "Tokenizer/Core/Tokenizer.h"

namespace meshwright {

/// The tokenizer called "ids", of models whose own is not read here: its texts are the tokens' ids in decimal,
/// with spaces between them. It adds no tokens.
std::unique_ptr<tokenizer::Tokenizer> makeIdTokenizer(int64_t vocabulary);

} // namespace meshwright

#endif // MESHWRIGHT_RUNTIME_COMMON_TOKENIDS_H
