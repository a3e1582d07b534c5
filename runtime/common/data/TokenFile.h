//===- TokenFile.h - a stream of tokens on disk ---------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_RUNTIME_COMMON_TOKENFILE_H
#define MESHWRIGHT_RUNTIME_COMMON_TOKENFILE_H

#include "common/data/MappedFile.h"
#include "meshwright/runtime/TokenShard.h"

#include <functional>
#include <optional>

namespace meshwright {

/// Little-endian tokens of one, two or four bytes: plain; after the 1024-byte header of llm.c (magic,
/// version, number of tokens as int32); or as `meshwright tokenize` writes them (TokenShard.h). Headers
/// say how many bytes a token has.
class TokenFile {
public:
  static constexpr int64_t headerBytes = 1024;

  /// Maps `path`, given by `flag`, and checks its size. `type` is u8, u16 or u32; a file of `meshwright
  /// tokenize` has its own.
  TokenFile(const std::string &path, const std::string &flag, const std::string &type);

  int64_t tokens() const { return count; }
  const std::string &path() const { return file.path(); }
  /// Sequences of `length` inputs with targets shifted by one: floor((n-1)/length).
  /// An Error if there are fewer than a `batch`.
  int64_t sequences(int64_t length, int64_t batch = 1) const;

  /// How many documents the file says where they begin; 0: it says nothing of them. `documentStart` is
  /// the number of the first token of one.
  int64_t documents() const { return shard ? int64_t(shard->documents) : 0; }
  uint64_t documentStart(int64_t number) const;
  /// Whether `path` is a file that says so, without an Error where it cannot be read.
  static bool hasDocuments(const std::string &path);

  /// Bytes of the text that the tokens encode; none if the file does not say it.
  std::optional<int64_t> textBytes() const;

  /// The tokenizer that the file was made with: the path of its file beside it, empty where tokens are
  /// bytes or nothing is known of it. An Error if it should be there and is not, or is another.
  std::string tokenizer() const;

  /// The checksum of that tokenizer, 0 where tokens are bytes; none if the file does not say it.
  std::optional<uint64_t> tokenizerSum() const {
    return shard ? std::optional(shard->tokenizer) : std::nullopt;
  }

  /// An Error if the file looks like one of another format or of wider integers: text that is not read as bytes, tokens of a model with this `vocabulary` that take more
  /// bytes than --tokens says.
  void checkFormat(int64_t vocabulary) const;

  /// Reads the `part`-th of `parts` equal pieces with `threads` threads; an Error naming the
  /// first token there that is not below `vocabulary`, or tokens that are not what their checksum was made
  /// of. Takes no time where every token of the type is one and there are no checksums. `done` is told of the bytes that have been read.
  void checkTokens(int64_t vocabulary, int64_t part, int64_t parts, int threads,
                   const std::function<void(int64_t bytes)> &done = {}) const;
  int64_t bytes() const { return count * width; }

  /// Whether `token` is among the first `most` tokens.
  bool has(int64_t token, int64_t most) const;

  /// Asks the system to read sequence `index` ahead.
  void readAhead(int64_t index, int64_t length) const {
    file.readAhead(start + index * length * width, (length + 1) * width);
  }

  /// Copies sequence `index` of `length` tokens and its targets; an Error if a
  /// token is not below `vocabulary`.
  void read(int64_t index, int64_t length, int64_t vocabulary, int32_t *inputs,
            int32_t *targets) const;
  /// Copies `count` tokens from number `first` on.
  void readTokens(int64_t first, int64_t count, int64_t vocabulary, int32_t *to) const;

private:
  /// With the version and the type that its magic number stands for.
  void readHeader(int32_t version, const std::string &itsType);
  void readShard();
  /// An Error if the file begins as one of another format does.
  void checkMagic() const;
  /// The checksum of block `number` that the file has.
  uint64_t blockSum(int64_t number) const;
  int64_t decode(const unsigned char *at) const;
  [[noreturn]] void failToken(int64_t position, int64_t value, int64_t vocabulary) const;

  MappedFile file;
  std::string prefix; ///< "--data corpus.bin: "
  std::string type;
  int64_t width, start = 0, count = 0;
  std::optional<TokenShardHeader> shard; ///< of a file of `meshwright tokenize`
};

} // namespace meshwright

#endif // MESHWRIGHT_RUNTIME_COMMON_TOKENFILE_H
