//===- ShardWriter.h - files of tokens ----------------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_TOKENIZER_SHARDWRITER_H
#define MESHWRIGHT_TOKENIZER_SHARDWRITER_H

#include "meshwright/runtime/TokenShard.h"

#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

namespace meshwright::tokenizer {

/// Writes tokens to files `tokens-00000.bin`, .. of a folder, each with a TokenShardHeader, and
/// with a loss mask beside each, `tokens-00000.mask`. A file gets its name when it is whole.
class ShardWriter {
public:
  struct Options {
    std::string folder;
    uint64_t shardTokens = 0; ///< a file ends with the first document that reaches so many
    bool documents = false;   ///< whether to write where they begin
    size_t together = 1;      ///< documents in a row that are in one file
    bool mask = false;        ///< whether `add` is given masks
    TokenShardHeader header;  ///< what it says of tokens and tokenizer
  };
  explicit ShardWriter(Options options);
  ~ShardWriter();

  /// Appends tokens of the current document, which encode `textBytes` bytes of text, and whether
  /// each counts as a target.
  void add(const int32_t *ids, const uint8_t *mask, size_t count, uint64_t textBytes);
  void endDocument();
  /// Completes the last file.
  void finish();

  uint64_t tokens() const { return allTokens; }
  uint64_t documents() const { return allDocuments; }
  uint64_t textBytes() const { return allTextBytes; }
  int shards() const { return number; }

private:
  void open();
  void close();
  void write(FILE *to, const void *bytes, size_t size);
  std::string pathOf(std::string_view ending) const;

  Options options;
  FILE *file = nullptr, *maskFile = nullptr;
  TokenShardHeader header; ///< of the current file
  std::vector<uint64_t> starts, blocks;
  std::vector<unsigned char> block; ///< the tokens since the last whole block
  bool inDocument = false;
  int number = 0;
  uint64_t allTokens = 0, allDocuments = 0, allTextBytes = 0;
};

} // namespace meshwright::tokenizer

#endif // MESHWRIGHT_TOKENIZER_SHARDWRITER_H
