//===- TokenShard.h - what files of tokens begin with -------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// Shared by `meshwright tokenize`, which writes such files, and the runtime, which reads them.
// Everything is little-endian. A file is
//
//   the header                                    1024 bytes
//   the tokens                                    tokenBytes each
//   zeros up to a multiple of 8 bytes
//   the number of each document's first token     u64 each, ascending, the first 0
//   a checksum of each block of 2^20 tokens       u64 each: XXH3 (64 bits) of its bytes
//
// The first 256 integers of the header are as llm.c has them: a magic number, then a version.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_RUNTIME_TOKENSHARD_H
#define MESHWRIGHT_RUNTIME_TOKENSHARD_H

#include <cstdint>

namespace meshwright {

struct TokenShardHeader {
  static constexpr int32_t itsMagic = 20261127, itsVersion = 1;
  static constexpr int64_t bytes = 1024, blockTokens = int64_t(1) << 20;

  int32_t magic = itsMagic, version = itsVersion;
  int32_t tokenBytes = 0; ///< 1, 2 or 4
  int32_t vocabulary = 0; ///< ids that the tokenizer has
  uint64_t tokens = 0;
  uint64_t documents = 0; ///< how many starts follow the tokens; 0: documents are not known
  /// XXH3 (64 bits) of the header, this field being 0, and of all behind the tokens.
  uint64_t checksum = 0;
  uint64_t tokenizer = 0; ///< XXH3 (64 bits) of the tokenizer's file; 0: tokens are bytes
  int32_t endToken = -1;  ///< ends each document; -1: none does
  int32_t reserved = 0;
  uint64_t textBytes = 0; ///< of the text that the tokens encode; 0: not known
  int32_t unused[240] = {};

  uint64_t tokensEnd() const { return uint64_t(bytes) + tokens * uint64_t(tokenBytes); }
  uint64_t documentsBegin() const { return (tokensEnd() + 7) / 8 * 8; }
  uint64_t blocksBegin() const { return documentsBegin() + 8 * documents; }
  uint64_t blocks() const { return (tokens + uint64_t(blockTokens) - 1) / uint64_t(blockTokens); }
  uint64_t fileBytes() const { return blocksBegin() + 8 * blocks(); }
};
static_assert(sizeof(TokenShardHeader) == TokenShardHeader::bytes);

} // namespace meshwright

#endif // MESHWRIGHT_RUNTIME_TOKENSHARD_H
