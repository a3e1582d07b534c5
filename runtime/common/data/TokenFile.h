//===- TokenFile.h - a stream of tokens on disk ---------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_RUNTIME_COMMON_TOKENFILE_H
#define MESHWRIGHT_RUNTIME_COMMON_TOKENFILE_H

#include "common/data/MappedFile.h"

#include <functional>

namespace meshwright {

/// Little-endian tokens of one, two or four bytes, plain or after the 1024-byte
/// header of llm.c (magic, version, number of tokens as int32), which says how many bytes
/// a token has.
class TokenFile {
public:
  static constexpr int64_t headerBytes = 1024;

  /// Maps `path`, given by `flag`, and checks its size. `type` is u8, u16 or u32.
  TokenFile(const std::string &path, const std::string &flag, const std::string &type);

  int64_t tokens() const { return count; }
  const std::string &path() const { return file.path(); }
  /// Sequences of `length` inputs with targets shifted by one: floor((n-1)/length).
  /// An Error if there are fewer than a `batch`.
  int64_t sequences(int64_t length, int64_t batch = 1) const;

  /// An Error if the file looks like one of another format or of wider integers: a .npy file,
  /// text that is not read as bytes, tokens of a model with this `vocabulary` that take more
  /// bytes than --tokens says.
  void checkFormat(int64_t vocabulary) const;

  /// Reads the `part`-th of `parts` equal pieces with `threads` threads; an Error naming the
  /// first token there that is not below `vocabulary`. Takes no time where every token of the
  /// type is. `done` is told of the bytes that have been read.
  void checkTokens(int64_t vocabulary, int64_t part, int64_t parts, int threads,
                   const std::function<void(int64_t bytes)> &done = {}) const;
  int64_t bytes() const { return count * width; }

  /// Whether `token` is among the first `most` tokens.
  bool has(int64_t token, int64_t most) const;

  /// Copies sequence `index` of `length` tokens and its targets; an Error if a
  /// token is not below `vocabulary`.
  void read(int64_t index, int64_t length, int64_t vocabulary, int32_t *inputs,
            int32_t *targets) const;

private:
  /// With the version and the type that its magic number stands for.
  void readHeader(int32_t version, const std::string &itsType);
  int64_t decode(const unsigned char *at) const;
  [[noreturn]] void failToken(int64_t position, int64_t value, int64_t vocabulary) const;

  MappedFile file;
  std::string prefix; ///< "--data corpus.bin: "
  std::string type;
  int64_t width, start = 0, count = 0;
};

} // namespace meshwright

#endif // MESHWRIGHT_RUNTIME_COMMON_TOKENFILE_H
