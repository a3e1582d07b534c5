//===- TokenizerJson.cpp - any bytes as a tokenizer.json --------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Tokenizer/Core/Error.h"
#include "Tokenizer/Core/Tokenizer.h"

#include <cstdint>

using namespace meshwright::tokenizer;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  try {
    std::unique_ptr<Tokenizer> tokenizer = makeJsonTokenizer({reinterpret_cast<const char *>(data), size}, "tokenizer.json");
    for (bool specialAsText : {false, true}) {
      std::vector<int32_t> ids;
      tokenizer->makeEncoder(specialAsText)->encode("A cat's 12345 caf\xc3\xa9s <|endoftext|>\n\n  \xff", ids);
      tokenizer->decode(ids);
    }
    tokenizer->cut("two words\nand more", 3);
    tokenizer->marksNotFound();
    tokenizer->idOf("a");
    tokenizer->decode(tokenizer->before());
    tokenizer->decode(tokenizer->behind());
    tokenizer->endToken();
  } catch (const Error &) {
  }
  return 0;
}
